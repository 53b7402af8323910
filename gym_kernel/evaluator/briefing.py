"""What is known about a task on a device before anything is submitted."""

from __future__ import annotations

from dataclasses import dataclass, field

from gym_kernel.evaluator.roofline import Roofline
from gym_kernel.evaluator.timing import Timing

__all__ = ["Briefing", "DeviceFacts", "TensorFacts"]


@dataclass(frozen=True)
class DeviceFacts:
    """The device that evaluates, and the software that drives it.

    Attributes:
        id: Name of the device for ``torch.device``: ``"cpu"`` or ``"cuda:0"``.
        name: Marketing name, for instance ``"NVIDIA H200"``.
        memory_bytes: Size of the device's memory.
        l2_bytes: Size of its last shared cache; 0 where unknown.
        compute_capability: ``"9.0"`` and the like; empty on a CPU.
        threads: Host threads a C++ kernel may use on a CPU; 0 on a GPU.
        driver: Driver version; empty on a CPU.
        torch: Version of torch.
        triton: Version of triton.
        cuda: CUDA version torch was built for; empty on a CPU.
    """

    id: str
    name: str
    memory_bytes: int
    l2_bytes: int
    compute_capability: str
    threads: int
    driver: str
    torch: str
    triton: str
    cuda: str

    @property
    def is_cuda(self) -> bool:
        """Whether this is a GPU."""
        return self.id.startswith("cuda")


@dataclass(frozen=True)
class TensorFacts:
    """Shape and dtype (``"float32"``) of one tensor that goes in or comes out."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Briefing:
    """Facts about one task on one device, for the prompt.

    Attributes:
        device: The evaluating device.
        roofline: The task's floor on it.
        reference: Timing of the eager reference on it.
        inputs: The tensors ``forward`` receives, in order (non-tensor arguments left out).
        outputs: The tensors it must return.
        isolation: Name of the isolation tier that workers run under.
        sizes: Sizes of the reference that differ from its text on this device, by name.
    """

    device: DeviceFacts
    roofline: Roofline
    reference: Timing
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    isolation: str
    sizes: dict[str, int] = field(default_factory=dict)
