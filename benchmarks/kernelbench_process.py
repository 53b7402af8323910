"""One evaluation by KernelBench's own evaluator, in a process of its own, as its users run it.

    python -m benchmarks.kernelbench_process CHECKOUT REFERENCE KERNEL BACKEND LIMIT ANSWER

What runs is ``kernelbench.eval.eval_kernel_against_ref`` of the checkout's ``src`` folder, unchanged, with the settings
of its ``scripts/run_and_check.py``: 5 correctness trials, 100 timed calls, ``cuda_event`` timing, a build folder of its
own. It times the reference as well, as it does for its users.

``kernelbench/__init__.py`` and ``utils.py`` import clients of language models (``openai``, ``litellm``) and ``dotenv``,
none of which an evaluation uses. Where one of these is not installed, an empty module stands in for it, which raises
when it is used; ANSWER names them in ``stand_ins``. It makes KernelBench start faster than for its users, not slower.

ANSWER gets ``imported``, ``needs`` (what the machine lacks), ``stand_ins``, ``problem``, ``import_s``, and, where it
ran, ``compiled``, ``correct``, ``runtime_ms``, ``reference_ms`` and ``eval_s``. Nothing of this project is imported
here. LIMIT is in seconds; the process ends itself then.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["evaluate", "import_evaluator"]

_NOT_USED = ("openai", "litellm", "dotenv")
_CORRECTNESS_TRIALS = 5
_TIMED_CALLS = 100
_NEEDS_A_GPU = "KernelBench's evaluator needs a CUDA GPU, and torch sees none here."


def import_evaluator(checkout: Path) -> tuple[Any, list[str]]:
    """Import ``kernelbench.eval`` of a checkout.

    Args:
        checkout: Its root.

    Returns:
        The module, and the names of the libraries that empty modules stand in for.

    Raises:
        ImportError: It needs something else that is not installed.
    """
    stand_ins = [name for name in _NOT_USED if importlib.util.find_spec(name) is None]
    for name in stand_ins:
        sys.modules[name] = _StandIn(name)
    sys.path.insert(0, str(checkout / "src"))
    return importlib.import_module("kernelbench.eval"), stand_ins


class _StandIn(ModuleType):
    """A library that is not installed; its import succeeds, a use of it does not."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        # Called when KernelBench is imported, to read an .env file that there is none of.
        if (self.__name__, name) == ("dotenv", "load_dotenv"):
            return lambda: False

        def refuse(*arguments: Any, **named: Any) -> None:
            raise RuntimeError(f"{self.__name__}.{name} was called; pip install {self.__name__}.")

        return refuse


def evaluate(evaluator: Any, reference: str, kernel: str, backend: str) -> dict[str, Any]:
    """Evaluate one kernel.

    Args:
        evaluator: ``kernelbench.eval``.
        reference: Text of the problem.
        kernel: Text with ``ModelNew``.
        backend: ``"triton"`` or ``"cuda"``.
    """
    import torch

    with tempfile.TemporaryDirectory(prefix="kernelbench-build-") as build_folder:
        started = time.perf_counter()
        result = evaluator.eval_kernel_against_ref(
            original_model_src=reference,
            custom_model_src=kernel,
            measure_performance=True,
            timing_method="cuda_event",
            verbose=False,
            num_correct_trials=_CORRECTNESS_TRIALS,
            num_perf_trials=_TIMED_CALLS,
            build_dir=build_folder,
            device=torch.device("cuda:0"),
            backend=backend,
            precision=torch.float32,
        )
        eval_s = time.perf_counter() - started
    if result is None:
        return {"problem": "KernelBench gave no result: a lock of the extension builder was held."}
    correct = bool(result.compiled and result.correctness and result.runtime > 0)
    return {
        "compiled": bool(result.compiled),
        "correct": correct,
        "problem": "" if correct else f"KernelBench did not find it correct: {result.metadata}"[:1000],
        "runtime_ms": float(result.runtime),
        "reference_ms": float(result.ref_runtime),
        "eval_s": eval_s,
    }


def main() -> None:
    """Run one evaluation."""
    checkout, reference, kernel, backend, limit, answer = sys.argv[1:]
    # Its default action ends the process, whatever this is doing.
    signal.alarm(max(int(float(limit)), 1))
    report: dict[str, Any] = {"imported": False, "needs": "", "stand_ins": [], "problem": ""}
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: Path(answer).write_text(json.dumps(report), encoding="utf-8"))
        started = time.perf_counter()
        try:
            evaluator, report["stand_ins"] = import_evaluator(Path(checkout))
        except ImportError as error:
            report["problem"] = f"KernelBench's evaluator cannot be imported: {error}. Install what it names."
            return
        report.update(imported=True, import_s=time.perf_counter() - started)
        import torch

        if not torch.cuda.is_available():
            report["needs"] = _NEEDS_A_GPU
            return
        problem, module = (Path(path).read_text(encoding="utf-8") for path in (reference, kernel))
        report.update(evaluate(evaluator, problem, module, backend))


if __name__ == "__main__":
    main()
