"""Infer from a problem's text which hidden inputs its function makes sense for.

An input gets every kind of hidden values only where the text says that any real number will do: it is drawn by
``torch.rand`` or ``torch.randn``, scaled by scalars at most, and everything that the module calls is a function of
the whole real line. Else it keeps the distribution of ``get_inputs``:

- indices, masks, labels, distributions and structured matrices, by how ``get_inputs`` makes them;
- every input of a module that calls something which is not known to be total, or takes a logarithm, a root or a
  power of what need not be positive, or multiplies a long row together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from gym_kernel.tasks.kernelbench.static import InputFacts, ModuleFacts, called_name
from gym_kernel.tasks.task import Domain

__all__ = ["FunctionKind", "InferredDomains", "infer_domains", "infer_kind"]

_POINTWISE = frozenset(
    "relu relu_ leaky_relu sigmoid tanh gelu selu elu celu hardsigmoid hardswish hardtanh softplus softsign mish silu "
    "relu6 clamp clip abs exp sign neg multiply mul add sub square maximum minimum where masked_fill "
    "ReLU ReLU6 LeakyReLU Sigmoid Tanh GELU SELU ELU Hardswish Hardsigmoid Hardtanh Softplus Softsign Mish SiLU "
    "Identity round".split()
)
_TOTAL = frozenset(
    "matmul bmm mm einsum linear dot sum mean max min amax amin argmax argmin cumsum norm normalize var "
    "std softmax log_softmax logsumexp cross_entropy smooth_l1_loss mse_loss huber_loss l1_loss "
    "triplet_margin_loss pairwise_distance cosine_similarity scaled_dot_product_attention max_pool1d "
    "max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
    "adaptive_avg_pool3d conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "layer_norm group_norm batch_norm instance_norm dropout Linear Bilinear Conv1d Conv2d Conv3d "
    "ConvTranspose1d ConvTranspose2d ConvTranspose3d BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d "
    "InstanceNorm2d InstanceNorm3d GroupNorm LayerNorm RMSNorm Softmax LogSoftmax Dropout MaxPool1d "
    "MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d "
    "AdaptiveAvgPool3d MultiheadAttention TransformerEncoder TransformerEncoderLayer LSTM GRU RNN "
    "TripletMarginLoss MSELoss SmoothL1Loss HuberLoss L1Loss CrossEntropyLoss".split()
)
# Layout, bookkeeping and construction: what they give is as good as what they are given.
_NEUTRAL = frozenset(
    "super view size append transpose t int cat flatten range unsqueeze squeeze contiguous permute isinstance reshape "
    "tensor len slice float double bool rearrange zeros ones zeros_like ones_like empty full enumerate tuple list dict "
    "arange stack split chunk pad zeros_ ones_ detach clone to expand hasattr getattr ValueError repeat item linspace "
    "meshgrid roll unfold flip copy_ modules extend kaiming_normal_ normal_ xavier_uniform_ narrow select triu tril "
    "register_buffer Parameter Sequential ModuleList ModuleDict randn rand dim type type_as numel zip sorted print "
    "checkpoint no_grad items values keys Flatten format join".split()
)
_POSITIVE_ONLY = frozenset({"sqrt", "rsqrt", "log", "log2", "log10", "log1p", "pow"})
# Arguments that are not negative, or a number and no tensor, so that a root or a logarithm of them is harmless.
_POSITIVE = frozenset(
    "abs exp square var std norm sigmoid softplus softmax relu linspace arange cosh clamp_min".split()
)
_NUMERIC_MODULES = frozenset({"math", "np", "numpy"})


class FunctionKind(str, Enum):
    """What a module does with its inputs, as far as its text tells."""

    POINTWISE = "pointwise"
    """Each output element comes from the elements at its own place alone."""
    TOTAL = "total"
    """Any finite inputs will do."""
    PARTIAL = "partial"
    """Some inputs are outside what the function is for, or nobody can tell."""


@dataclass(frozen=True)
class InferredDomains:
    """Domains of a problem's tensors.

    Attributes:
        domains: One for each tensor of ``get_inputs``; empty where their number is not known.
        kind: What the module does.
        reason: Why inputs are left as ``get_inputs`` makes them; empty where none is.
    """

    domains: tuple[Domain, ...]
    kind: FunctionKind
    reason: str


def infer_domains(facts: ModuleFacts) -> InferredDomains:
    """Infer the domain of each tensor of ``get_inputs``.

    Args:
        facts: The problem's module.
    """
    kind, doubt = infer_kind(facts)
    if facts.inputs is None:
        return InferredDomains((), kind, doubt)
    if kind is FunctionKind.PARTIAL:
        return InferredDomains(tuple(Domain(fixed=True) for _ in facts.inputs), kind, doubt)
    plain = [_is_plain(each) for each in facts.inputs]
    reason = "" if all(plain) else "get_inputs gives an input a form or range of its own"
    return InferredDomains(tuple(Domain(fixed=not each) for each in plain), kind, reason)


def infer_kind(facts: ModuleFacts) -> tuple[FunctionKind, str]:
    """What a module does, and what stands in the way of hidden inputs of every kind (empty: nothing)."""
    own = _defined(facts.tree)
    pointwise = True
    for call in _calls(facts.tree):
        name = called_name(call)
        if _is_numeric(call) or name in own or name in _NEUTRAL:
            pointwise = pointwise and (_is_numeric(call) or name in ("super", "__init__"))
        elif name in _POSITIVE_ONLY:
            if not _is_harmless(call, name):
                return FunctionKind.PARTIAL, f"{name} is taken of what may be negative"
        elif name in _TOTAL:
            pointwise = False
        elif name not in _POINTWISE:
            return (
                FunctionKind.PARTIAL,
                f"{name or 'something computed'} is called, which is not known to be total",
            )
    for power in (n for n in _forwards(facts.tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow)):
        if not _is_whole(power.right):
            return FunctionKind.PARTIAL, "a power is taken that is no whole number"
    structured = any(isinstance(n, (ast.Subscript, ast.MatMult)) for n in _forwards(facts.tree))
    return (FunctionKind.POINTWISE if pointwise and not structured else FunctionKind.TOTAL), ""


def _is_plain(each: InputFacts) -> bool:
    """Whether an input is random numbers, scaled by scalars at most."""
    return _plain(each.expression)


def _plain(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) in ("rand", "randn")
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(_plain(side) for side in sides) and all(_plain(side) or _is_scalar(side) for side in sides)
    return False


def _is_scalar(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return _is_scalar(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _defined(tree: ast.Module) -> set[str]:
    """Names that the module gives to functions, classes, methods, variables and attributes of its own."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
            names.add(node.attr if isinstance(node, ast.Attribute) else node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    return (node for node in _forwards(tree) if isinstance(node, ast.Call))


def _forwards(tree: ast.Module) -> Iterator[ast.AST]:
    """Everything but what makes the inputs."""
    for top in tree.body:
        if not (isinstance(top, ast.FunctionDef) and top.name in ("get_inputs", "get_init_inputs")):
            yield from ast.walk(top)


def _is_numeric(call: ast.Call) -> bool:
    """Whether a call computes with numbers, not tensors."""
    where = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(where, ast.Name) and where.id in _NUMERIC_MODULES


def _is_harmless(call: ast.Call, name: str) -> bool:
    arguments = list(call.args)
    if isinstance(call.func, ast.Attribute) and not (
        isinstance(call.func.value, ast.Name) and call.func.value.id in ("torch", "th", "F")
    ):
        arguments = [call.func.value, *arguments]
    if name == "pow":
        return len(arguments) == 2 and _is_whole(arguments[1])
    return bool(arguments) and any(_is_positive(node) for node in ast.walk(arguments[0]))


def _is_positive(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return called_name(node) in _POSITIVE
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is_even(node.right)


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and _natural(node.value)


def _natural(value: float) -> bool:
    return value >= 0 and float(value).is_integer()


def _is_even(node: ast.expr) -> bool:
    return _is_whole(node) and isinstance(node, ast.Constant) and float(str(node.value)) % 2 == 0
