"""The prompt: everything a policy must know about a task before its first submission."""

from __future__ import annotations

from gym_kernel.envs.markdown import fenced
from gym_kernel.envs.units import bandwidth_text, bytes_text, flop_rate_text, flops_text, time_text
from gym_kernel.evaluator.briefing import Briefing, DeviceFacts, TensorFacts
from gym_kernel.tasks.task import Task, WorkPolicy

__all__ = ["task_prompt"]

_TASK = """\
# Task: {title}

Write a faster replacement for the PyTorch module below, in kernels of your own.

{source}
{sizes}"""

_TARGET = """\
## Device and target

{device}
{tensors}
The task must move at least {bytes}{flops}: its roofline floor is t_min = {t_min} ({bound}-bound). \
Eager PyTorch takes {reference}.

Reward of a submission: 0 unless it is correct, else 0.3 + 2.7 * min(t_min / t, 1), where t is \
its measured time."""

_CONTRACT = """\
## Contract

- Define `class ModelNew(torch.nn.Module)` with the constructor and `forward` of `Model`, in one \
self-contained module with all of its imports. Parameters and buffers are copied from `Model` by name, so \
keep their names.
- Return new, contiguous tensors of the shape and dtype given above, on the same device. Inputs are read-only.
- {work}
- {languages}"""

_OWN_WORK = (
    "Every value of the output must be computed by your kernels. PyTorch may allocate, view and describe "
    "tensors; its operators, `torch.compile` and vendor libraries may not compute."
)
_MIXED_WORK = "Your kernels and PyTorch operators may share the work."

_GPU_LANGUAGES = (
    "Languages: Triton (`@triton.jit`), or CUDA C++ through `torch.utils.cpp_extension.load_inline`."
)
_CPU_LANGUAGES = (
    "Languages: C++ through `torch.utils.cpp_extension.load_inline` (g++, {threads}), or Triton "
    "(`@triton.jit`), which runs in Triton's interpreter on this CPU: exact, but slow."
)

_CHECKS = """\
## What is checked

1. Correctness, on inputs that you cannot foresee: values as the module draws them, and signed, tiny, huge, \
shifted, sparse, repeated and outlying ones, as far as they make sense for the task. The outputs are \
compared with a float64 computation, within the rounding error that an accurate kernel of this dtype makes. \
NaN and Inf must stand where the reference has them.
2. Time: the median of many calls. Each gets new data (on a GPU with a cold L2), and its output is checked.

Cheating earns nothing: values that are not computed by your code, results kept from an earlier call, work \
that goes on after `forward` returns, changed inputs, a time below what the hardware allows, tampering with \
the clock, the checks or the process.

## How to reply

Think as you like, then give the whole module in one ```python block. Only the last fenced block counts."""


def task_prompt(task: Task, briefing: Briefing) -> str:
    """Word the prompt of a task on a device, as Markdown.

    Args:
        task: The task; its reference is shown as it stands.
        briefing: Device, roofline, reference time and tensors, as the evaluator knows them.

    Returns:
        The prompt. It may be longer than an observation and hold any character of the reference: see
        :func:`gym_kernel.envs.text_space.clean_text`.
    """
    parts = (_task(task, briefing), _target(briefing), _contract(task, briefing.device), _CHECKS)
    return "\n\n".join(part.strip() for part in parts)


def _task(task: Task, briefing: Briefing) -> str:
    sizes = ", ".join(f"{name} = {value}" for name, value in briefing.sizes.items())
    return _TASK.format(
        title=f"{task.title} ({task.id})",
        source=fenced(task.source, "python"),
        sizes=f"\nOn this device the sizes are: {sizes}." if sizes else "",
    )


def _target(briefing: Briefing) -> str:
    roofline = briefing.roofline
    flops = roofline.work.total_flops
    return _TARGET.format(
        device=_device(briefing),
        tensors=_tensors(briefing),
        bytes=bytes_text(roofline.work.bytes),
        flops=f" and do {flops_text(flops)}" if flops else "",
        t_min=time_text(roofline.t_min_us),
        bound="memory" if roofline.memory_bound else "compute",
        reference=time_text(briefing.reference.median_us),
    )


def _device(briefing: Briefing) -> str:
    device, ceilings = briefing.device, briefing.roofline.ceilings
    facts = [f"{bytes_text(device.memory_bytes)} of memory"]
    if device.is_cuda:
        facts.insert(0, f"compute capability {device.compute_capability}")
    rates = ", ".join(f"{dtype} {flop_rate_text(rate)}" for dtype, rate in ceilings.flops_per_s.items())
    return (
        f"{device.name} ({', '.join(facts)}); {ceilings.source.value} ceilings: "
        f"{bandwidth_text(ceilings.bandwidth_bytes_per_s)} of bandwidth; {rates}.\n"
        f"{_versions(device)}"
    )


def _versions(device: DeviceFacts) -> str:
    versions = {"torch": device.torch, "triton": device.triton, "CUDA": device.cuda}
    return (
        "Software: " + ", ".join(f"{name} {version}" for name, version in versions.items() if version) + "."
    )


def _tensors(briefing: Briefing) -> str:
    return f"`forward` receives {_listed(briefing.inputs)} and returns {_listed(briefing.outputs)}."


def _listed(tensors: tuple[TensorFacts, ...]) -> str:
    return ", ".join(f"{tensor.dtype}{list(tensor.shape)}" for tensor in tensors) or "no tensor"


def _contract(task: Task, device: DeviceFacts) -> str:
    threads = f"{device.threads} threads" if device.threads != 1 else "1 thread"
    return _CONTRACT.format(
        work=_MIXED_WORK if task.work_policy is WorkPolicy.MIXED else _OWN_WORK,
        languages=_GPU_LANGUAGES if device.is_cuda else _CPU_LANGUAGES.format(threads=threads),
    )
