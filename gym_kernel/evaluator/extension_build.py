"""Fast builds of C++ and CUDA extensions inside a worker.

A submission calls ``torch.utils.cpp_extension`` as it always does. What that hands to ninja is built here with the
prepared headers first, where the program mentions nothing that they hide, and with nvcc's two sides at the same time.
If that fails for any reason, the build goes on the ordinary way, as if nothing had been tried; so a submission that
does not compile hears what the ordinary build says.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_kernel.evaluator import nvcc_phases
from gym_kernel.evaluator.fence import Isolation
from gym_kernel.evaluator.hidden_names import mentions_of
from gym_kernel.evaluator.light_headers import OPERATORS_HEADER
from gym_kernel.evaluator.prepared_headers import PreparedHeaders, prepared_headers

__all__ = ["FastBuild", "plan_build", "use_fast_builds"]

# As load_inline begins the files that it writes.
_CPP_BEGINNING = "#include <torch/extension.h>"
_CUDA_BEGINNING = "#include <torch/types.h>"
# They put something in front of the program, or take macros away.
_UNSURE_FLAGS = ("-include", "--pre-include", "-imacros", "-U", "-x", "--undefine-macro")
_INCLUDE_FOLDER = "light"
# Read by torch: what to call instead of nvcc.
_NVCC = "PYTORCH_NVCC"


@dataclass(frozen=True)
class FastBuild:
    """How an extension is built in less time.

    Attributes:
        cpp: Include folder for the C++ files; ``None`` where they take torch's own headers.
        cuda: Include folder for the CUDA files; ``None`` where they take torch's own headers.
        needs: Text of the header with which CUDA files get what they mention.
    """

    cpp: Path | None
    cuda: Path | None
    needs: str = ""


def use_fast_builds(tier: Isolation) -> None:
    """From now on, have this process build extensions fast where it can.

    Args:
        tier: The tier it is in. Headers that it could write to itself may hold anything, and are not used.
    """
    from torch.utils import cpp_extension

    ordinary = cpp_extension._write_ninja_file_and_build_library
    signature = inspect.signature(ordinary)

    @functools.wraps(ordinary)
    def build(*positional: Any, **named: Any) -> None:
        arguments = dict(signature.bind(*positional, **named).arguments)
        prepared = None if arguments.get("with_sycl") else prepared_headers()
        if prepared is not None and tier is Isolation.PROCESS and os.access(prepared.folder, os.W_OK):
            prepared = None
        if prepared is None or not _built_fast(ordinary, arguments, prepared):
            ordinary(**arguments)

    cpp_extension._write_ninja_file_and_build_library = build


def plan_build(
    sources: Sequence[str], cpp_flags: Sequence[str], cuda_flags: Sequence[str], prepared: PreparedHeaders
) -> FastBuild | None:
    """Decide with what an extension can be built.

    Args:
        sources: Its files.
        cpp_flags: Flags for its C++ files.
        cuda_flags: Flags for its CUDA files.
        prepared: What is prepared.

    Returns:
        The plan; ``None`` where nothing can be done for it.
    """
    cuda = [source for source in sources if source.endswith((".cu", ".cuh"))]
    cpp = [source for source in sources if source not in cuda]
    for_cpp = for_cuda = None
    needs = ""
    if cpp and _cures(cpp, cpp_flags, _CPP_BEGINNING, prepared, "cpp") is not None:
        for_cpp = prepared.cpp
    if cuda and prepared.cuda.is_dir():
        cures = _cures(cuda, cuda_flags, _CUDA_BEGINNING, prepared, "cuda")
        if cures is not None:
            for_cuda, needs = prepared.cuda, "".join(f"{cure}\n" for cure in cures)
    return FastBuild(for_cpp, for_cuda, needs) if for_cpp or cuda else None


def _cures(
    files: Sequence[str], flags: Sequence[str], beginning: str, prepared: PreparedHeaders, language: str
) -> tuple[str, ...] | None:
    """What light headers need to serve these files; ``None`` where they cannot."""
    if any(flag.strip().startswith(_UNSURE_FLAGS) for flag in flags):
        return None
    definitions = "\n".join(flag for flag in flags if flag.strip().startswith("-D"))
    cures: set[str] = set()
    for file in files:
        code = Path(file).read_text(encoding="utf-8", errors="replace")
        mentions = mentions_of(f"{code}\n{definitions}") if code.startswith(beginning) else None
        if mentions is None:
            return None
        for hidden in prepared.hidden(language):
            if mentions.find(hidden):
                if not hidden.cure:
                    return None
                cures.add(hidden.cure)
    return tuple(sorted(cures))


def _built_fast(ordinary: Callable[..., None], arguments: dict[str, Any], prepared: PreparedHeaders) -> bool:
    if _NVCC in os.environ:
        # A compiler of the submission's own choice.
        return False
    try:
        plan = plan_build(
            arguments["sources"], arguments["extra_cflags"], arguments["extra_cuda_cflags"], prepared
        )
    except (OSError, ValueError, TypeError):
        # A list of names that is spoilt, or a file that is missing: the ordinary build knows what to say.
        return False
    if plan is None:
        return False
    changed = {**arguments, "verbose": False}
    includes: list[str] = []
    if plan.cpp is not None:
        changed["extra_cflags"] = [f"-I{shlex.quote(str(plan.cpp))}", *arguments["extra_cflags"]]
    if plan.cuda is not None:
        own = Path(arguments["build_directory"], _INCLUDE_FOLDER)
        own.mkdir(exist_ok=True)
        (own / OPERATORS_HEADER).write_text(plan.needs, encoding="utf-8")
        includes = [f"-I{own}", f"-I{plan.cuda}"]
        changed["extra_ldflags"] = [shlex.quote(str(prepared.cuda_object)), *arguments["extra_ldflags"]]
    with _parallel_nvcc(includes):
        try:
            ordinary(**changed)
        except Exception:
            # Whatever it is: the build that follows succeeds, or says it in its own words.
            return False
    return True


@contextlib.contextmanager
def _parallel_nvcc(options: Sequence[str]) -> Iterator[None]:
    """Have torch call nvcc through the program that runs its phases side by side.

    Args:
        options: To go before all others. Given to torch among the flags, a path with the letters of ``arch`` in it
            would be taken for the choice of an architecture.
    """
    from torch.utils import cpp_extension

    if cpp_extension.CUDA_HOME is None:
        yield
        return
    nvcc = os.path.join(cpp_extension.CUDA_HOME, "bin", "nvcc")
    os.environ[_NVCC] = shlex.join([sys.executable, "-ISB", nvcc_phases.__file__, nvcc, *options])
    try:
        yield
    finally:
        del os.environ[_NVCC]
