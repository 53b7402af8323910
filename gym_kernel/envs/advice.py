"""One sentence on what to try next, from what a verdict shows."""

from __future__ import annotations

import re

from gym_kernel.envs.diagnosis import diagnosis
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.verdict import Verdict

__all__ = ["advice"]

_BY_STATUS = {
    Status.COMPILE_ERROR: "Fix the first error; later ones often follow from it.",
    Status.RUNTIME_ERROR: "Start from the first line of your module that the traceback names.",
    Status.TIMEOUT: "Look for an endless loop, a barrier that some thread never reaches, far too much work.",
    Status.CRASHED: "Look for accesses out of bounds (masks, strides, last block) and for calls that end a process.",
    Status.CHEATING: "Compute every value of the output in kernels of your own, anew on each call.",
    Status.INFRASTRUCTURE_ERROR: "Nothing is known against your submission; it may be sent again.",
}

_NAMES_LINES = re.compile(r"\bline \d+")
_AS_MODEL = "`ModelNew` is constructed and called as `Model` is, with the same arguments in the same order."

_AT_THE_FLOOR = 0.95
_NEAR_THE_FLOOR = 0.7
_LAUNCH_BOUND_US = 10.0


def advice(verdict: Verdict) -> str:
    """Suggest the next step to a policy.

    Args:
        verdict: Any verdict.

    Returns:
        One or two sentences; empty where the verdict's reason says it all.
    """
    if verdict.status is Status.CORRECT:
        return _faster(verdict)
    if verdict.status is Status.INCORRECT:
        return diagnosis(verdict.agreement) if verdict.agreement else ""
    if verdict.status is Status.RUNTIME_ERROR and not _NAMES_LINES.search(verdict.detail):
        return _AS_MODEL if "argument" in verdict.reason else ""
    return _BY_STATUS.get(verdict.status, "")


def _faster(verdict: Verdict) -> str:
    runtime, roofline = verdict.runtime, verdict.roofline
    assert runtime is not None
    assert roofline is not None
    fraction = roofline.fraction(runtime.median_us)
    if fraction >= _AT_THE_FLOOR:
        return "This is the hardware's floor; what is left is noise."
    if not verdict.device.startswith("cuda"):
        return "On a CPU the way to the floor is C++: contiguous loops that the compiler vectorises, over all threads."
    if runtime.median_us < _LAUNCH_BOUND_US:
        return "At this size launches dominate: use one kernel, and do little in `forward` beside it."
    if not roofline.memory_bound:
        return (
            "Tile for reuse in registers and shared memory, use tensor cores, overlap loads with arithmetic."
        )
    if fraction >= _NEAR_THE_FLOOR:
        return (
            "Close to the bandwidth: try other block sizes, 16-byte loads, more bytes in flight per thread."
        )
    return "Memory is not kept busy: move every byte once, coalesced, and with enough work in parallel."
