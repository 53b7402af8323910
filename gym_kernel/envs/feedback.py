"""The observation after a submission: what an engineer wants to know, and nothing that must stay secret."""

from __future__ import annotations

from collections.abc import Callable

from gym_kernel.envs.advice import advice
from gym_kernel.envs.markdown import fenced
from gym_kernel.envs.units import bandwidth_text, flop_rate_text, time_text
from gym_kernel.evaluator.roofline import Roofline
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.verdict import Agreement, Verdict
from gym_kernel.rewards import CORRECT_REWARD, SPEED_REWARD

__all__ = ["feedback"]

_LEAST_FOR_INTERVAL = 6
_ABOUT_AS_FAST = 0.95

_HEADLINES = {
    Status.CORRECT: "correct",
    Status.INCORRECT: "incorrect output",
    Status.REJECTED: "rejected before it was run",
    Status.COMPILE_ERROR: "does not load or compile",
    Status.RUNTIME_ERROR: "failed while it ran",
    Status.TIMEOUT: "took too long",
    Status.CRASHED: "ended its process",
    Status.CHEATING: "cheating",
    Status.INFRASTRUCTURE_ERROR: "not evaluated: the evaluator failed, not your submission",
}


def feedback(verdict: Verdict, reward: float) -> str:
    """Word a verdict for the policy, as Markdown.

    Expected values and seeds never appear. Errors are rounded so that an expected value cannot be worked
    out from the value beside it.

    Args:
        verdict: Any verdict.
        reward: The reward it earned.

    Returns:
        The text. It may be longer than an observation and hold any character of the submission's own output:
        see :func:`gym_kernel.envs.text_space.clean_text`.
    """
    facts = _FACTS.get(verdict.status, _reason)
    paragraphs = [_headline(verdict, reward), facts(verdict), _detail(verdict), _next(verdict)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _headline(verdict: Verdict, reward: float) -> str:
    name = f" ({verdict.cheat})" if verdict.cheat else ""
    most = CORRECT_REWARD + SPEED_REWARD
    return f"Verdict: {_HEADLINES[verdict.status]}{name}. Reward: {reward:.3f} of {most:g}."


def _reason(verdict: Verdict) -> str:
    return verdict.detail.strip() if _detail_is_reason(verdict) else verdict.reason


def _detail(verdict: Verdict) -> str:
    if _detail_is_reason(verdict) or not verdict.detail.strip():
        return ""
    return fenced(verdict.detail, "text")


def _detail_is_reason(verdict: Verdict) -> bool:
    # A single finding of the source check: "line 3: " and the reason.
    detail = verdict.detail.strip()
    return "\n" not in detail and detail.endswith(verdict.reason) and bool(verdict.reason)


def _next(verdict: Verdict) -> str:
    hint = advice(verdict)
    return f"Next: {hint}" if hint else ""


def _incorrect(verdict: Verdict) -> str:
    if verdict.agreement is None:
        return verdict.reason
    return f"{verdict.reason}\n{_comparison(verdict.agreement)}"


def _comparison(agreement: Agreement) -> str:
    if not agreement.mismatched and agreement.is_biased:
        return (
            f"- No single element is out of bounds, but all of them together are, for inputs of the kind "
            f"{agreement.input_kind.replace('_', ' ')!r}.\n"
            f"- Relative errors: {agreement.rms_error:.1e} in their root mean square, where "
            f"{agreement.rms_tolerance:.1e} is allowed; the largest is {agreement.max_rel_error:.1e}."
        )
    share = agreement.mismatched / agreement.elements if agreement.elements else 1.0
    lines = [
        f"- {agreement.mismatched:,} of {agreement.elements:,} elements are wrong ({share * 100:.3g} %), "
        f"for inputs of the kind {agreement.input_kind.replace('_', ' ')!r}.",
        f"- Largest error: {agreement.max_abs_error:.1e} absolute, {agreement.max_rel_error:.1e} relative; "
        f"{agreement.tolerance:.1e} relative is allowed.",
    ]
    if agreement.worst_index and agreement.worst_actual is not None:
        lines.append(
            f"- Worst element: {list(agreement.worst_index)}, where yours is {agreement.worst_actual:.6g}."
        )
    if agreement.nan_count or agreement.inf_count:
        lines.append(
            f"- Your output holds {agreement.nan_count:,} NaN and {agreement.inf_count:,} Inf."
            f"{_none(agreement)}"
        )
    elif agreement.expected_nonfinite:
        lines.append("- Your output is finite where the reference's is NaN or Inf.")
    return "\n".join(lines)


def _none(agreement: Agreement) -> str:
    return "" if agreement.expected_nonfinite else " The reference has none."


def _correct(verdict: Verdict) -> str:
    runtime, roofline = verdict.runtime, verdict.roofline
    assert runtime is not None
    assert roofline is not None
    low, high = runtime.interval_us
    # Of fewer samples the interval is all there is, and no 95 %.
    interval = "95 % interval" if len(runtime.samples_us) >= _LEAST_FOR_INTERVAL else "range"
    lines = [
        f"- Time: {time_text(runtime.median_us)} (median of {len(runtime.samples_us)} verified calls, "
        f"{interval} {time_text(low)} to {time_text(high)}){_speedup(verdict)}.",
        f"- Roofline: {roofline.fraction(runtime.median_us) * 100:.1f} % of the floor, "
        f"t_min = {time_text(roofline.t_min_us)}; {_achieved(roofline, runtime.median_us)}.",
    ]
    if verdict.contended:
        lines.append("- Another process computed on the device meanwhile, so the time may be too long.")
    return "\n".join(lines)


def _speedup(verdict: Verdict) -> str:
    if verdict.speedup is None or verdict.reference is None:
        return ""
    speedup = verdict.speedup
    digits = 1 if speedup >= 0.1 else 0
    slower = f"{1 / speedup:,.{digits}f} times slower than"
    # A hundredth slower is no ratio to speak of.
    ratio = slower if speedup < _ABOUT_AS_FAST else f"{speedup:.2f} times as fast as"
    return f", {ratio} eager PyTorch ({time_text(verdict.reference.median_us)})"


def _achieved(roofline: Roofline, runtime_us: float) -> str:
    if roofline.memory_bound:
        bandwidth = bandwidth_text(roofline.work.bytes / runtime_us * 1e6)
        peak = bandwidth_text(roofline.ceilings.bandwidth_bytes_per_s)
        return f"memory-bound, {bandwidth} of {peak} achieved"
    flops = roofline.work.total_flops
    rate, ceiling = (flop_rate_text(flops / time_us * 1e6) for time_us in (runtime_us, roofline.t_min_us))
    return f"compute-bound, {rate} of {ceiling} achieved"


_FACTS: dict[Status, Callable[[Verdict], str]] = {Status.CORRECT: _correct, Status.INCORRECT: _incorrect}
