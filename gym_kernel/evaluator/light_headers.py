"""torch's headers with less in them, made of the installed ones.

An extension includes all of torch for a handful of functions, and parsing it is what building one takes its time
for. The folders made here stand first in the compiler's search path. Their files are torch's own, under ``#line`` with
the original's name and number, without some of the includes; a program may use them where :mod:`hidden_names` finds
nothing that it could miss. Nothing is declared differently, with a single exception: ``make_variable``, through which
torch's factory functions go, is called out of line in CUDA files. Its definition, inline in torch's header, needs half
of autograd; it comes from an object file that is compiled from that header.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from gym_kernel.evaluator.declared_names import Declaration

__all__ = [
    "MAKE_VARIABLE",
    "OPERATORS_HEADER",
    "UnknownHeaders",
    "cure_for",
    "make_cpp_headers",
    "make_cuda_headers",
]

OPERATORS_HEADER = "gym_kernel_operators.h"
"""Included by the light headers for CUDA; a build puts one of its own in front, with what its program needs."""

MAKE_VARIABLE = """\
#include <torch/csrc/autograd/variable.h>
namespace {
__attribute__((used)) at::Tensor (*const keep)(at::Tensor, bool, bool) = &torch::autograd::make_variable;
}
"""
"""The file whose object holds the function that the light headers for CUDA leave out."""

_API = "torch/csrc/api/include"
_TENSOR_FACTORY = "GYM_KERNEL_TENSOR_FACTORY"
# What every header of an operator includes and none of them needs.
_BOILERPLATE = (
    "ATen/Context.h", "ATen/DeviceGuard.h", "ATen/TensorUtils.h", "ATen/TracerMode.h", "ATen/core/Generator.h",
    "ATen/core/Reduction.h",
)  # fmt: skip
_NOT_FOR_KERNELS = (
    "ATen/Context.h", "ATen/DeviceGuard.h", "ATen/NativeFunctions.h", "ATen/ScalarOps.h",
    "ATen/TensorGeometry.h", "ATen/TensorIndexing.h", "ATen/core/ivalue.h", "ATen/core/jit_type.h",
)  # fmt: skip
_CURABLE = frozenset({*_BOILERPLATE, "ATen/ScalarOps.h", "ATen/TensorGeometry.h", "ATen/TensorIndexing.h"})
_OPERATOR_FILE = re.compile(r"ATen/ops/(\w+?)(?:_ops|_native|_meta|_[a-z]+_dispatch)?\.h$")
_OPERATOR_INCLUDE = re.compile(r"#include <ATen/ops/(\w+)\.h>")
_FACTORIES = "torch/csrc/autograd/generated/variable_factories.h"
_TENSOR_DATA = "#include <torch/csrc/api/include/torch/detail/TensorDataContainer.h>"
_TENSOR_FUNCTION = re.compile(r"inline at::Tensor tensor\(detail::TensorDataContainer .*?\n}\n", re.DOTALL)

_CPP_EXTENSION = """\
#ifndef GYM_KERNEL_EXTENSION_H
#define GYM_KERNEL_EXTENSION_H
#include <torch/types.h>
#include <torch/cuda.h>
#include <torch/utils.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#endif
"""
_CUDA_EXTENSION = """\
#ifndef GYM_KERNEL_EXTENSION_H
#define GYM_KERNEL_EXTENSION_H
#include <torch/types.h>
#include <torch/cuda.h>
#endif
"""
_CUDA_VARIABLE = """\
#ifndef GYM_KERNEL_VARIABLE_H
#define GYM_KERNEL_VARIABLE_H
#include <ATen/core/Tensor.h>
namespace torch::autograd {
using Variable = at::Tensor;
Variable make_variable(at::Tensor data, bool requires_grad = false, bool allow_tensor_metadata_change = true);
}
#endif
"""


class UnknownHeaders(Exception):
    """This torch's headers are not written as expected, so no lighter ones can be made of them."""


def make_cpp_headers(folder: Path) -> None:
    """Write the light ``torch/extension.h`` for C++: all of ATen and the bindings, without ``torch::nn`` and the like.

    Args:
        folder: Folder for the compiler's search path.
    """
    _write(folder, "torch/extension.h", _CPP_EXTENSION)


def make_cuda_headers(folder: Path, torch_include: Path) -> None:
    """Write the light headers for CUDA: tensors and their factories; operators as the program names them.

    Args:
        folder: Folder for the compiler's search path.
        torch_include: torch's own headers.

    Raises:
        UnknownHeaders: They are not as expected.
    """

    def adapt(name: str, change: Callable[[str], str], before: str = "", root: str = "") -> None:
        original = torch_include / root / name
        _write(folder, name, f'{before}#line 1 "{original}"\n{change(original.read_text(encoding="utf-8"))}')

    per_operator = "#ifndef AT_PER_OPERATOR_HEADERS\n#define AT_PER_OPERATOR_HEADERS\n#endif\n"
    adapt("torch/types.h", lambda text: _without(text, ("torch/library.h",)), f"{per_operator}", _API)
    adapt("ATen/ATen.h", _light_aten, per_operator)
    adapt("ATen/Functions.h", _light_functions)
    adapt(_FACTORIES, _light_factories)
    _write(folder, "torch/csrc/autograd/variable.h", _CUDA_VARIABLE)
    _write(folder, "torch/extension.h", _CUDA_EXTENSION)
    _write(folder, OPERATORS_HEADER, "")
    for header in sorted((torch_include / "ATen/ops").glob("*.h")):
        text = header.read_text(encoding="utf-8")
        if f"#include <ATen/ops/{header.stem}_ops.h>" in text:
            _write(folder, f"ATen/ops/{header.name}", f'#line 1 "{header}"\n{_without(text, _BOILERPLATE)}')


def cure_for(declaration: Declaration) -> str:
    """The line with which the light headers for CUDA make a declaration; empty where none does."""
    operator = _OPERATOR_FILE.search(declaration.file)
    if operator and Path(declaration.file).with_name(f"{operator[1]}.h").exists():
        return f"#include <ATen/ops/{operator[1]}.h>"
    if declaration.name == "tensor" and declaration.file.endswith(_FACTORIES):
        return f"#define {_TENSOR_FACTORY}"
    name = "/".join(declaration.file.split("/include/")[-1:])
    return f"#include <{name}>" if name in _CURABLE else ""


def _light_aten(text: str) -> str:
    end = text.rfind("#include")
    end = text.index("\n", end)
    text = f"{text[:end]}\n#include <c10/util/Logging.h>\n#include <{OPERATORS_HEADER}>{text[end:]}"
    return _without(text, _NOT_FOR_KERNELS)


def _light_functions(text: str) -> str:
    rest = _OPERATOR_INCLUDE.sub("", text)
    needed = set(re.findall(r"\bat::(\w+)\(", rest))
    text = _OPERATOR_INCLUDE.sub(lambda match: match[0] if match[1] in needed else "", text)
    return _without(text, _BOILERPLATE)


def _light_factories(text: str) -> str:
    function = _TENSOR_FUNCTION.search(text)
    if _TENSOR_DATA not in text or function is None:
        raise UnknownHeaders(f"{_FACTORIES} is not as expected.")
    include = _under_condition(_TENSOR_DATA + "\n", text[: text.index(_TENSOR_DATA)])
    text = text.replace(function[0], _under_condition(function[0], text[: function.start()]))
    return text.replace(_TENSOR_DATA + "\n", include)


def _under_condition(part: str, before: str) -> str:
    """Make a part depend on the program's wish, with the line numbers as they were."""
    first = before.count("\n") + 1
    after = first + part.count("\n")
    return f"#ifdef {_TENSOR_FACTORY}\n#line {first}\n{part}#endif\n#line {after}\n"


def _without(text: str, headers: Iterable[str]) -> str:
    for header in headers:
        text = text.replace(f"#include <{header}>", "")
    return text


def _write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
