"""Watching, and changing, what a reference does operator by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry
from torch.utils.hooks import RemovableHandle

__all__ = ["Clamp", "ForwardWatch", "WithoutClamp", "clamp_of"]

Clamp = tuple[str, str]
"""Name and bounds of an operator that cuts values off."""

_GUARD = 1e-2
# A plain operator is a few operations an element; these are a formula each.
_PLAIN_FLOPS, _FUSED_FLOPS = 4.0, 20.0
_FUSED = (
    "softmax", "gelu", "silu", "mish", "norm", "elu", "softplus", "sort", "topk", "cum", "logsumexp", "sigmoid",
    "var", "std", "loss", "interpolate", "upsample", "grid", "erf", "median", "scan",
)  # fmt: skip


class ForwardWatch(TorchDispatchMode):
    """Notes what happens inside the forward passes of modules, and nothing around them.

    Args:
        look_for_zeros: Whether to look at the values of the operands of matrix products.

    Attributes:
        elementwise_flops: An upper bound of the operations that are not matrix products or convolutions.
        clamps: The operators that cut values off, each once, guards of tiny bounds left out.
        narrowed: Whether a float64 tensor was converted to a narrower floating-point dtype.
        output_dtypes: Dtypes of what the outermost module returned last.
        zero_share: Largest share of exact zeros in a floating-point operand of a matrix product, 0 to 1.
    """

    def __init__(self, look_for_zeros: bool = False) -> None:
        super().__init__()
        self._look_for_zeros = look_for_zeros
        self.zero_share = 0.0
        self.elementwise_flops = 0.0
        self.clamps: dict[Clamp, None] = {}
        self.narrowed = False
        self.output_dtypes: tuple[torch.dtype, ...] = ()
        self._depth = 0
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> ForwardWatch:
        self._handles = [
            register_module_forward_pre_hook(self._enter_forward),
            register_module_forward_hook(self._leave_forward),
        ]
        super().__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        for handle in self._handles:
            handle.remove()

    def _enter_forward(self, module: torch.nn.Module, arguments: Any) -> None:
        self._depth += 1

    def _leave_forward(self, module: torch.nn.Module, arguments: Any, output: Any) -> None:
        self._depth -= 1
        self.output_dtypes = tuple(
            leaf.dtype for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)
        )

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if self._depth:
            self._note(func, args, kwargs or {}, result)
        return result

    def _note(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        clamp = clamp_of(func, args, kwargs)
        if clamp is not None:
            self.clamps[clamp] = None
        inputs, outputs = _tensors(args), _tensors(result)
        self.narrowed |= _narrows(func, args, inputs, outputs)
        if func._overloadpacket in flop_registry:
            self._look_at_operands(inputs)
            return
        if func.is_view:
            return
        largest = max((tensor.numel() for tensor in (*inputs, *outputs)), default=0)
        name = func._overloadpacket.__name__
        weight = _FUSED_FLOPS if any(part in name for part in _FUSED) else _PLAIN_FLOPS
        self.elementwise_flops += weight * largest

    def _look_at_operands(self, operands: list[torch.Tensor]) -> None:
        if self._look_for_zeros:
            shares = [
                float((t == 0).double().mean()) for t in operands if t.is_floating_point() and t.numel()
            ]
            self.zero_share = max((self.zero_share, *shares))


class WithoutClamp(TorchDispatchMode):
    """Runs a model with some of its clamps left out.

    Args:
        clamp: Which.
    """

    def __init__(self, clamp: Clamp) -> None:
        super().__init__()
        self._clamp = clamp

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if clamp_of(func, args, kwargs) != self._clamp:
            return func(*args, **(kwargs or {}))
        name = func._overloadpacket.__name__
        if name.endswith("_"):
            return args[0]
        return _UNCLAMPED.get(name, torch.clone)(args[0])


def clamp_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Clamp | None:
    """Name and bounds where an operator cuts floating-point values off at numbers, else ``None``."""
    name = func._overloadpacket.__name__
    if name.removesuffix("_") not in _CLAMPS or not (args and isinstance(args[0], torch.Tensor)):
        return None
    bounds = (*args[1:], *(kwargs or {}).values())
    if not args[0].is_floating_point() or any(isinstance(bound, torch.Tensor) for bound in bounds):
        return None
    numbers = [bound for bound in bounds if isinstance(bound, (int, float))]
    if any(0 < abs(number) <= _GUARD for number in numbers):
        return None
    return name, ", ".join(f"{number:g}" for number in numbers)


_CLAMPS = frozenset(
    {"clamp", "clamp_min", "clamp_max", "relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "threshold"}
)
_UNCLAMPED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "hardsigmoid": lambda x: x / 6 + 0.5,
    "hardswish": lambda x: x * (x / 6 + 0.5),
}


def _narrows(
    func: Any, args: tuple[Any, ...], inputs: list[torch.Tensor], outputs: list[torch.Tensor]
) -> bool:
    name = func._overloadpacket.__name__
    if name == "copy_" and len(inputs) > 1:
        inputs, outputs = inputs[1:2], inputs[:1]
    elif name not in ("_to_copy", "to"):
        return False
    return any(
        before.dtype == torch.float64 and after.is_floating_point() and after.dtype != torch.float64
        for before, after in zip(inputs, outputs, strict=False)
    )


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
