"""The submission inside its worker: loaded from a file, constructed, called.

Everything here runs in the worker. What goes wrong is raised as :class:`CandidateError`, whose kind the judge
turns into a status.
"""

from __future__ import annotations

import copy
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gym_kernel.evaluator.compiled_kernels import hand_on_compiled
from gym_kernel.evaluator.diagnostics import compiler_output, python_traceback
from gym_kernel.evaluator.source_check import check_source
from gym_kernel.evaluator.worker_messages import FailureKind, TensorSlot

__all__ = ["Candidate", "CandidateError", "is_out_of_memory", "out_of_memory_text"]

_MODULE_NAME = "submission"
# Bound now, before a submission can put its own in its place.
_Tensor = torch.Tensor
_is_neg = torch.Tensor.is_neg
_is_conj = torch.Tensor.is_conj


class CandidateError(Exception):
    """The submission failed.

    Args:
        kind: What sort of failure.
        message: One sentence to the policy.
        detail: Traceback or compiler output, trimmed.
    """

    def __init__(self, kind: FailureKind, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.detail = detail


class Candidate:
    """A constructed ``ModelNew``.

    Args:
        code: Source of the submitted module.
        folder: Scratch folder in which the module's file is written.
        init_arguments: Positional arguments of the constructor.
        device: Device the model is moved to.

    Raises:
        CandidateError: The source is not acceptable, does not build, or its constructor raises.
    """

    def __init__(self, code: str, folder: Path, init_arguments: Sequence[Any], device: torch.device) -> None:
        self._code = code
        self._path = folder / f"{_MODULE_NAME}.py"
        findings = check_source(code)
        if findings:
            listing = "\n".join(f"line {f.line}: {f.message}" for f in findings)
            raise CandidateError(FailureKind.SOURCE, findings[0].message, listing)
        self._path.write_text(code, encoding="utf-8", errors="surrogatepass")
        self.module = self._guard(self._import)
        self.model = self._guard(lambda: self._construct(init_arguments, device))

    def renewed(self, init_arguments: Sequence[Any], device: torch.device) -> Candidate:
        """The same submission imported and constructed anew, with the kernels that are compiled already.

        Raises:
            CandidateError: The second import or construction fails.
        """
        old = vars(self.module)
        again = copy.copy(self)
        again.module = again._guard(again._import)
        for name, value in vars(again.module).items():
            hand_on_compiled(old.get(name), value)
        again.model = again._guard(lambda: again._construct(init_arguments, device))
        return again

    def load_parameters(self, values: dict[str, torch.Tensor]) -> None:
        """Copy the reference's parameters and buffers in, by name.

        Raises:
            CandidateError: A name is missing, or its shape differs.
        """
        own = dict(self.model.state_dict(keep_vars=True))
        for name, value in values.items():
            target = own.get(name)
            if target is None:
                raise CandidateError(
                    FailureKind.CONTRACT,
                    f"ModelNew has no parameter or buffer named {name!r}; give it the reference's names, "
                    "because the weights are copied by name.",
                )
            if tuple(target.shape) != tuple(value.shape):
                raise CandidateError(
                    FailureKind.CONTRACT,
                    f"{name!r} has shape {tuple(target.shape)}; the reference's has {tuple(value.shape)}.",
                )
            with torch.no_grad():
                target.copy_(value)

    def forward(self, arguments: Sequence[Any]) -> Any:
        """Call the model once.

        Raises:
            CandidateError: ``forward`` raised.
        """
        return self._guard(lambda: self.model(*arguments))

    def outputs(
        self, result: Any, expected: Sequence[TensorSlot], device: torch.device
    ) -> list[torch.Tensor]:
        """Check that a result is made of plain tensors of the right kind, and list them.

        Raises:
            CandidateError: Wrong arity, type, device, dtype or shape.
        """
        found = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(found) != len(expected):
            raise CandidateError(
                FailureKind.CONTRACT, f"forward returned {len(found)} values; {len(expected)} are expected."
            )
        for position, (tensor, slot) in enumerate(zip(found, expected, strict=True)):
            _check_output(tensor, slot, device, f"Output {position}" if len(expected) > 1 else "The output")
        return found

    def _import(self) -> ModuleType:
        spec = importlib.util.spec_from_file_location(_MODULE_NAME, self._path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE_NAME] = module
        spec.loader.exec_module(module)
        return module

    def _construct(self, init_arguments: Sequence[Any], device: torch.device) -> Any:
        factory = getattr(self.module, "ModelNew", None)
        if factory is None:
            raise CandidateError(FailureKind.SOURCE, "The module defines no ModelNew once it is imported.")
        model = factory(*init_arguments)
        if not isinstance(model, torch.nn.Module):
            raise CandidateError(
                FailureKind.CONTRACT, f"ModelNew must be a torch.nn.Module, not a {type(model).__name__}."
            )
        return model.to(device)

    def _guard(self, action: Any) -> Any:
        # SystemExit and KeyboardInterrupt are the submission's own doing here.
        try:
            return action()
        except CandidateError:
            raise
        except BaseException as error:
            raise self._explain(error) from error

    def _explain(self, error: BaseException) -> CandidateError:
        trace = python_traceback(error, self._path, self._code)
        name = type(error).__name__
        if is_out_of_memory(error):
            return CandidateError(FailureKind.MEMORY, out_of_memory_text(error), trace)
        if _is_build_failure(error):
            built = compiler_output(_words_of(error), self._code)
            return CandidateError(FailureKind.COMPILE, "The C++/CUDA extension does not compile.", built)
        if _is_triton_compile_failure(error):
            return CandidateError(FailureKind.COMPILE, f"The Triton kernel does not compile: {name}.", trace)
        return CandidateError(FailureKind.RUNTIME, f"{name}: {_first_line(error)}", trace)


def _check_output(tensor: Any, slot: TensorSlot, device: torch.device, what: str) -> None:
    dtype = getattr(torch, slot.dtype)
    if type(tensor) is not _Tensor:
        raise CandidateError(
            FailureKind.CONTRACT, f"{what} must be a plain torch.Tensor, not a {type(tensor).__name__}."
        )
    if tensor.layout is not torch.strided:
        raise CandidateError(FailureKind.CONTRACT, f"{what} must be a dense tensor, not {tensor.layout}.")
    if _is_neg(tensor) or _is_conj(tensor):
        raise CandidateError(
            FailureKind.CONTRACT, f"{what} still has to be negated or conjugated; write its values."
        )
    if tensor.device.type != device.type:
        raise CandidateError(FailureKind.CONTRACT, f"{what} is on {tensor.device}, expected on {device}.")
    if tensor.dtype != dtype:
        raise CandidateError(FailureKind.CONTRACT, f"{what} has dtype {tensor.dtype}, expected {dtype}.")
    if tuple(tensor.shape) != tuple(slot.shape):
        raise CandidateError(
            FailureKind.CONTRACT, f"{what} has shape {tuple(tensor.shape)}, expected {tuple(slot.shape)}."
        )


def _words_of(error: BaseException) -> str:
    """What an exception says; a submission's own class may say nothing but another exception."""
    try:
        return str(error)
    except BaseException as again:
        return f"its message cannot be read ({type(again).__name__})"


def _first_line(error: BaseException) -> str:
    lines = _words_of(error).strip().splitlines()
    return lines[0] if lines else "no message"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that there was no memory left, on the device or on the host."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or _lacks_figures(error)


def out_of_memory_text(error: BaseException) -> str:
    """What to tell a policy of an exception for which :func:`is_out_of_memory` holds."""
    what = "the GPU has none left." if _lacks_figures(error) else _first_line(error)
    return f"Out of memory: {what}"


def _lacks_figures(error: BaseException) -> bool:
    # Out of GPU memory, torch asks NVML for the figures of its message, and fails where NVML cannot be reached.
    text = _words_of(error)
    return "nvmlInit" in text and "CUDACachingAllocator" in text


def _is_build_failure(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "Error building extension" in _words_of(error)


def _is_triton_compile_failure(error: BaseException) -> bool:
    # Looked up by name: the classes moved between the Triton versions that are supported.
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & {"CompilationError", "CompileTimeAssertionFailure", "OutOfResources", "PTXASError"})
