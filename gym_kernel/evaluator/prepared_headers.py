"""What the trusted side prepares so that extensions build fast: light headers, precompiled ones, hidden names.

It lies in the cache folder, once for a compiler and a torch, written by :mod:`prepare_headers`, and workers
only read it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from gym_kernel.evaluator.cache import cache_dir
from gym_kernel.evaluator.hidden_names import HiddenName, Place

__all__ = ["PreparedHeaders", "extensions_root", "headers_folder", "prepared_headers"]

# To be changed with what is written into the folder.
_LAYOUT = "1"


@dataclass(frozen=True)
class PreparedHeaders:
    """A complete folder of prepared headers.

    Attributes:
        folder: The folder.
    """

    folder: Path

    @property
    def cpp(self) -> Path:
        """Include folder for C++; its ``torch/extension.h`` is precompiled."""
        return self.folder / "cpp"

    @property
    def cuda(self) -> Path:
        """Include folder for CUDA; there is none where there was no nvcc."""
        return self.folder / "cuda"

    @property
    def cuda_object(self) -> Path:
        """Object to link with what was compiled with the headers for CUDA."""
        return self.folder / "cuda" / "make_variable.o"

    def hidden(self, language: str) -> list[HiddenName]:
        """Names that the light headers hide.

        Args:
            language: ``"cpp"`` or ``"cuda"``.
        """
        rows = json.loads((self.folder / f"{language}.json").read_text(encoding="utf-8"))
        return [HiddenName(name, needs, Place(place), cure) for name, needs, place, cure in rows]

    def write_hidden(self, language: str, names: Iterable[HiddenName]) -> None:
        """Write what :meth:`hidden` reads."""
        rows = sorted([*asdict(name).values()] for name in names)
        (self.folder / f"{language}.json").write_text(json.dumps(rows), encoding="utf-8")


@functools.lru_cache(maxsize=1)
def extensions_root() -> Path | None:
    """Folder that workers may read, made where it is missing; ``None`` where it cannot be had.

    Asked for by the host first, since a worker has another home.
    """
    root = cache_dir() / "extensions"
    try:
        root.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError:
        return None
    return root


def headers_folder(root: Path) -> Path:
    """Folder for this torch, this Python and these compilers; it need not exist.

    Args:
        root: Folder of all of them.
    """
    import torch
    from torch.utils import cpp_extension

    tools = [os.environ.get("CXX", "c++")]
    if cpp_extension.CUDA_HOME:
        tools.append(os.path.join(cpp_extension.CUDA_HOME, "bin", "nvcc"))
    parts = [_LAYOUT, torch.__version__, torch.__file__, sys.version, sysconfig.get_path("include")]
    for tool in tools:
        found = Path(shutil.which(tool) or tool).resolve()
        # Where a compiler is a link to another one, that is the one that counts.
        state = found.stat() if found.exists() else None
        parts += [str(found), *([str(state.st_size), str(state.st_mtime_ns)] if state else ["missing"])]
    return root / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def prepared_headers() -> PreparedHeaders | None:
    """The headers prepared for this process's compilers; ``None`` where there are none yet."""
    root = extensions_root()
    if root is None:
        return None
    folder = headers_folder(root)
    return PreparedHeaders(folder) if (folder / "cpp.json").is_file() else None
