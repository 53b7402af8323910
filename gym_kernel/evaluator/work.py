"""Count what a reference must do at the very least: the bytes and FLOPs of its roofline."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry

from gym_kernel.evaluator.roofline import Work

__all__ = ["count_work"]


def count_work(model: torch.nn.Module, inputs: Sequence[Any], flops_per_element: float) -> Work:
    """Count a reference's work without doing it.

    The model runs on fake tensors, which have shapes and dtypes but no memory, so sizes do not matter. Where
    it cannot (its shapes depend on data), it runs once for real, on the device its inputs are on.

    Args:
        model: The reference, constructed.
        inputs: Arguments of ``forward``; tensors of any device, ``meta`` included.
        flops_per_element: Elementwise operations for each output element (see ``Task``).

    Returns:
        ``bytes``: each distinct input, parameter, buffer and output once. ``flops``: what torch's
        FlopCounterMode counts (matrix products, convolutions, attention), by the dtype of the first operand,
        and the elementwise operations under ``"float32"``, the unit that does them for every dtype but
        ``"float64"``.
    """
    try:
        weights, arguments, outputs, flops = _dry_run(model, inputs)
    except (Exception, SystemExit, KeyboardInterrupt):
        # Whatever a model may raise on fake tensors, the real run decides whether it is usable at all.
        counter = _FlopsByDtype()
        with torch.no_grad(), counter:
            outputs = model(*inputs)
        weights, arguments, flops = _weights(model), list(inputs), counter.flops
    counts = defaultdict(float, flops)
    made = _tensors(outputs)
    for tensor in made:
        unit = "float64" if tensor.dtype == torch.float64 else "float32"
        counts[unit] += flops_per_element * tensor.numel()
    moved = [*_tensors(arguments), *weights.values(), *made]
    return Work(bytes=_distinct_bytes(moved), flops={unit: n for unit, n in counts.items() if n})


def _dry_run(
    model: torch.nn.Module, inputs: Sequence[Any]
) -> tuple[Mapping[str, torch.Tensor], list[Any], Any, dict[str, float]]:
    # Tensors that a model keeps outside its buffers are taken as constants.
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    counter = _FlopsByDtype()

    def imitate(value: Any) -> Any:
        return fake.from_tensor(value.detach()) if isinstance(value, torch.Tensor) else value

    weights = {name: imitate(value) for name, value in _weights(model).items()}
    arguments = [tree_map(imitate, value) for value in inputs]
    # Fused attention has no formula on every device; its plain form is made of products that do.
    with sdpa_kernel(SDPBackend.MATH), _math_attention_in_its_own_dtype(), fake, counter, torch.no_grad():
        outputs = torch.func.functional_call(model, dict(weights), tuple(arguments))
    return weights, arguments, outputs, counter.flops


@contextlib.contextmanager
def _math_attention_in_its_own_dtype() -> Iterator[None]:
    """Keep half-precision attention from being counted as float32, to which its plain form widens by default."""
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)


class _FlopsByDtype(TorchDispatchMode):
    """FlopCounterMode's own formulas, summed by dtype; it keeps modules and operators apart instead."""

    def __init__(self) -> None:
        super().__init__()
        self.flops: dict[str, float] = defaultdict(float)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        formula = flop_registry.get(func._overloadpacket)
        if formula is None and func.namespace == "prim":
            return func(*args, **kwargs)
        if formula is None:
            with self:
                decomposed = func.decompose(*args, **kwargs)
            return func(*args, **kwargs) if decomposed is NotImplemented else decomposed
        out = func(*args, **kwargs)
        operand = next((leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)), None)
        if operand is not None:
            self.flops[str(operand.dtype).removeprefix("torch.")] += formula(*args, **kwargs, out_val=out)
        return out


def _weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _distinct_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the storages behind ``tensors``; of an expanded tensor, only what is really there."""
    sizes: dict[int, int] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        size = min(tensor.numel() * tensor.element_size(), storage.nbytes())
        sizes[storage._cdata] = max(size, sizes.get(storage._cdata, 0))
    return sum(sizes.values())
