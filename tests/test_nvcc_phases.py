"""CUDA programs built in phases that run side by side: the same as nvcc's own."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import torch
from compilers import NVCC, needs_compiler, needs_nvcc, run
from torch.utils import cpp_extension

from gym_kernel.evaluator import nvcc_phases, prepared_headers
from gym_kernel.evaluator.extension_build import plan_build
from gym_kernel.evaluator.prepare_headers import prepare_headers
from gym_kernel.evaluator.prepared_headers import PreparedHeaders

_OF_TORCH = re.compile(r"_ZNK?(?:2at|3c10|5torch)")

GELU = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cmath>

__global__ void gelu_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

torch::Tensor gelu_cuda(torch::Tensor x) {
  auto y = torch::empty_like(x);
  gelu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
SIGMOID = """
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <vector>

// Named like an operator of ATen, and a template: with that operator in sight, a tensor would be given to it.
template <typename scalar_t> __device__ scalar_t sigmoid(scalar_t z) { return scalar_t(1) / (scalar_t(1) + exp(-z)); }

template <typename scalar_t> __global__ void run(const scalar_t* x, scalar_t* y, int size, int stride) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += stride) {
    float sum = 0.0f;
    sum += float(x[i]);
    y[i] = scalar_t(sigmoid(sum));
  }
}

std::vector<at::Tensor> sigmoid_cuda(const torch::Tensor& input, double alpha) {
  auto x = input.contiguous();
  auto y = torch::zeros({x.size(0), 2}, torch::TensorOptions().dtype(x.dtype()).device(x.device()));
  auto spare = torch::empty({1 << 3}, x.options().dtype(torch::kFloat32).requires_grad(false));
  const int size = x.numel(), stride = 1024;
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "sigmoid", ([&] {
    run<scalar_t><<<4, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), size, stride);
  }));
  return {y, spare, torch::full_like(y, alpha)};
}
"""
PLAIN_CUDA = """
#include <cstdint>
#include <cuda_runtime.h>
namespace { __device__ int counter; __constant__ float weights[3]; }
template <class T> __global__ void fill(T* x, int64_t n) {
  __shared__ T part[32];
  part[threadIdx.x % 32] = T(counter) + T(weights[1]);
  __syncthreads();
  if (threadIdx.x < n) x[threadIdx.x] = part[threadIdx.x % 32];
}
void go(float* x, cudaStream_t stream) { fill<float><<<1, 32, 0, stream>>>(x, 32); }
"""


@pytest.fixture(scope="module")
def cuda_flags(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Flags of torch for one architecture."""
    extra = tmp_path_factory.mktemp("include")
    macros = Path(torch.__file__).parent / "include" / "c10" / "cuda" / "impl" / "cuda_cmake_macros.h"
    if not macros.exists():
        # A torch for CPUs comes without this one.
        (extra / "c10" / "cuda" / "impl").mkdir(parents=True)
        (extra / "c10" / "cuda" / "impl" / "cuda_cmake_macros.h").write_text("#pragma once\n")
    folders = [*cpp_extension.include_paths("cpu"), str(extra), _python_include()]
    return (
        "-DTORCH_EXTENSION_NAME=x", "-DTORCH_API_INCLUDE_EXTENSION_H",
        *(part for folder in folders for part in ("-isystem", folder)),
        "--expt-relaxed-constexpr", "-gencode=arch=compute_90,code=sm_90", "-gencode=arch=compute_90,code=compute_90",
        "--compiler-options", "-fPIC", "-std=c++20",
    )  # fmt: skip


def _python_include() -> str:
    import sysconfig

    return sysconfig.get_path("include")


def _symbols(file: Path, kind: str) -> set[str]:
    rows = [line.split() for line in run("nm", str(file)).stdout.splitlines()]
    unique = re.compile(r"_[0-9a-f]{8}_\d+_\w+?_cu_[0-9a-f]{8}")
    return {unique.sub("_unit", row[-1]) for row in rows if row[-2] == kind}


@needs_nvcc
def test_phases_side_by_side_give_what_nvcc_gives(cuda_flags: tuple[str, ...], tmp_path: Path) -> None:
    """The same code for the device and the same symbols, but for the unit's unique name."""
    source = tmp_path / "plain.cu"
    source.write_text(PLAIN_CUDA)
    options = [*cuda_flags[-6:], "-c", str(source), "-o"]
    objects = [tmp_path / "ordinary.o", tmp_path / "fast.o"]
    assert run(str(NVCC), *options, str(objects[0])).returncode == 0
    program = [sys.executable, "-ISB", nvcc_phases.__file__, str(NVCC)]
    # torch asks for a list of included files, too.
    done = run(*program, "-MD", "-MF", str(tmp_path / "fast.d"), *options, str(objects[1]))
    assert (done.returncode, done.stderr) == (0, "")
    for kind in "TtWwUdDbB":
        assert _symbols(objects[0], kind) == _symbols(objects[1], kind)


@needs_nvcc
def test_what_is_not_one_file_for_one_architecture_is_left_to_nvcc(
    cuda_flags: tuple[str, ...], tmp_path: Path
) -> None:
    """Two architectures, an error, a question about the version."""
    source = tmp_path / "plain.cu"
    source.write_text(PLAIN_CUDA)
    program = [sys.executable, "-ISB", nvcc_phases.__file__, str(NVCC)]
    two = [
        *cuda_flags[-6:],
        "-gencode=arch=compute_80,code=sm_80",
        "-c",
        str(source),
        "-o",
        str(tmp_path / "two.o"),
    ]
    assert run(*program, *two).returncode == 0
    assert (tmp_path / "two.o").exists()
    source.write_text(PLAIN_CUDA.replace("part[32]", "part[no_such_thing]"))
    failed = run(*program, *cuda_flags[-6:], "-c", str(source), "-o", str(tmp_path / "bad.o"))
    assert failed.returncode != 0
    assert "no_such_thing" in failed.stdout + failed.stderr
    assert "release" in run(*program, "--version").stdout


@needs_nvcc
@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_cuda_programs_built_both_ways_are_the_same(
    cuda_flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PTX to the letter, the program's symbols, and nothing to link that torch or the extra object does not have."""
    assert NVCC is not None
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", str(Path(_nvcc_home())))
    monkeypatch.setenv("GYM_KERNEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CPATH", cuda_flags[cuda_flags.index("--expt-relaxed-constexpr") - 3])
    prepared_headers.extensions_root.cache_clear()
    folder = prepare_headers(optimisations=())
    prepared_headers.extensions_root.cache_clear()
    assert folder is not None
    prepared = PreparedHeaders(folder)
    known = {name for library in ("torch_cpu", "c10") for name in _exported(library)}
    known |= _symbols(prepared.cuda_object, "W")
    for name, code in (("gelu", GELU), ("sigmoid", SIGMOID)):
        source = tmp_path / f"{name}.cu"
        source.write_text(f"#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n{code}")
        plan = plan_build([str(source)], (), (), prepared)
        assert plan is not None
        assert plan.cuda == prepared.cuda
        own = tmp_path / f"{name}-includes"
        own.mkdir()
        (own / "gym_kernel_operators.h").write_text(plan.needs)
        light = [f"-I{own}", f"-I{plan.cuda}"]
        texts, objects = [], []
        for way, more in (("ordinary", []), ("fast", light)):
            kept, built = tmp_path / f"{name}-{way}", tmp_path / f"{way}.o"
            kept.mkdir()
            options = [
                *more,
                *cuda_flags,
                "--keep",
                "--keep-dir",
                str(kept),
                "-c",
                str(source),
                "-o",
                str(built),
            ]
            assert run(str(NVCC), *options).returncode == 0
            texts.append((kept / f"{name}.ptx").read_text())
            objects.append(built)
        assert texts[0] == texts[1]
        for kind in "TD":
            assert _symbols(objects[0], kind) == _symbols(objects[1], kind)
        own_inline = [{s for s in _symbols(file, "W") if _OF_TORCH.match(s)} for file in objects]
        assert own_inline[1] <= own_inline[0]
        torchs = {
            symbol for symbol in _symbols(objects[1], "U") if re.search(r"N[KR]*(?:2at|3c10|5torch)", symbol)
        }
        assert "_ZN5torch8autograd13make_variableEN2at6TensorEbb" in torchs
        assert torchs <= known


def _nvcc_home() -> str:
    """Folder of the toolkit; ``nvcc`` on the path may be a script that calls it."""
    dry = run(str(NVCC), "--dryrun", "-c", "x.cu").stderr
    match = re.search(r"^#\$ TOP=(\S+)", dry, re.MULTILINE)
    return os.path.normpath(match[1]) if match else str(Path(str(NVCC)).parent.parent)


def _exported(library: str) -> set[str]:
    file = Path(torch.__file__).parent / "lib" / f"lib{library}.so"
    return {line.split()[-1] for line in run("nm", "-D", "--defined-only", str(file)).stdout.splitlines()}
