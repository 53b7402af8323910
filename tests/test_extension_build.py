"""Fast builds of extensions: the same programs, in less time; and the ordinary build wherever that is in doubt."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils import cpp_extension

from gym_kernel.evaluator import nvcc_phases, prepared_headers
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.declared_names import Kind, declarations
from gym_kernel.evaluator.extension_build import plan_build, use_fast_builds
from gym_kernel.evaluator.fence import Isolation
from gym_kernel.evaluator.fence_probe import probe_isolation
from gym_kernel.evaluator.hidden_names import hidden_names, mentions_of
from gym_kernel.evaluator.prepare_headers import prepare_headers
from gym_kernel.evaluator.prepared_headers import PreparedHeaders
from gym_kernel.evaluator.submission import Submission
from gym_kernel.tasks import load

_CXX = shutil.which(os.environ.get("CXX", "c++"))
_NVCC = shutil.which("nvcc")
_OF_TORCH = re.compile(r"_ZNK?(?:2at|3c10|5torch)")
needs_compiler = pytest.mark.skipif(
    _CXX is None or shutil.which("ninja") is None, reason="a C++ compiler and ninja are needed"
)
needs_nvcc = pytest.mark.skipif(_NVCC is None, reason="nvcc is not on the path")

SCALE = """
torch::Tensor scale(torch::Tensor x, double by) {
  TORCH_CHECK(x.scalar_type() == torch::kFloat32, "scale takes float32, not ", x.scalar_type());
  auto output = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = output.data_ptr<float>();
  at::parallel_for(0, x.numel(), 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = in[i] * static_cast<float>(by);
  });
  return output;
}
"""
ROWS = """
#include <vector>
#include <algorithm>
std::vector<at::Tensor> rows(const at::Tensor& x, c10::optional<int64_t> top) {
  auto options = x.options().requires_grad(false);
  auto sum = torch::zeros({x.size(0)}, options), max = torch::full({x.size(0)}, -1e30, options);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rows", ([&] {
    auto a = x.accessor<scalar_t, 2>();
    for (int64_t i = 0; i < x.size(0); ++i)
      for (int64_t j = 0; j < std::min<int64_t>(top.value_or(x.size(1)), x.size(1)); ++j) {
        sum.data_ptr<scalar_t>()[i] += a[i][j];
        max.data_ptr<scalar_t>()[i] = std::max(max.data_ptr<scalar_t>()[i], a[i][j]);
      }
  }));
  return {sum, max};
}
"""
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
LIGHT = """
namespace lib {
struct Box { int chosen = 3; };
inline int kept(int) { return 5; }
inline int pick(long) { return 1; }
template <class T> int operator<<(T, int) { return 1; }
}
"""
MORE = """
#define LIB_SWITCH 1
namespace lib {
inline int chosen(Box) { return 2; }
inline int pick(int) { return 2; }
inline int operator<<(Box, int) { return 2; }
struct Unseen {};
inline int operator-(Unseen, int) { return 9; }
}
"""
TELL = '''
import os, re, subprocess
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline(name="told", cpp_sources=r"""SCALE""", functions=["scale"])
folder = os.path.dirname(extension.__file__)
command = subprocess.run(["ninja", "-t", "commands", "main.o"], cwd=folder, capture_output=True, text=True).stdout
command = command.strip() + " -H -fsyntax-only"
told = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True).stderr
raise RuntimeError(f"precompiled headers used: {re.findall(r'^! .*/(.*)$', told, re.M)}")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
'''
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


def _run(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **options)


@pytest.fixture(scope="module")
def prepared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PreparedHeaders]:
    """Headers prepared for C++, and for CUDA where torch knows an nvcc.

    They are precompiled only where slow tests run, which alone build with them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GYM_KERNEL_CACHE", str(tmp_path_factory.mktemp("cache")))
        prepared_headers.extensions_root.cache_clear()
        folder = prepare_headers(optimisations=("",) if request.config.getoption("--run-slow") else ())
        assert folder is not None
        yield PreparedHeaders(folder)
    prepared_headers.extensions_root.cache_clear()


def test_program_that_prepares_headers_says_how_it_is_called() -> None:
    for words, code, said in (
        (["--help"], 0, "about a minute and 1.1 GB"),
        (["--nonsense"], 2, "--nonsense"),
    ):
        done = _run(sys.executable, "-m", "gym_kernel.evaluator.prepare_headers", *words)
        assert done.returncode == code
        assert said in " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def fast(prepared: PreparedHeaders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PreparedHeaders:
    """This process builds fast, until the test is over."""
    name = "_write_ninja_file_and_build_library"
    monkeypatch.setattr(cpp_extension, name, getattr(cpp_extension, name))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    use_fast_builds(Isolation.FULL)
    return prepared


def _load(name: str, source: str, functions: list[str], **options: Any) -> Any:
    return cpp_extension.load_inline(name=name, cpp_sources=source, functions=functions, **options)


def _compile_command(folder: Path, target: str) -> str:
    return _run("ninja", "-t", "commands", target, cwd=folder).stdout.strip()


# Names.


@needs_compiler
def test_declarations_are_found_at_namespace_scope_and_nowhere_else(tmp_path: Path) -> None:
    """What lookup finds is listed, overload by overload; parameters, members and locals are not."""
    header = tmp_path / "names.h"
    header.write_text(
        """
namespace outer { inline namespace v1 { struct Tensor { int member(int parameter); friend int held(Tensor); }; } }
namespace outer {
using std_like = int;
enum Plain { red, green }; enum class Scoped { hidden_enumerator };
template <class T = Tensor> T twice(T first) { int local = 0; return first; }
int twice(int a = 3, int b = (4)); inline bool operator<<(Tensor const& left, int right) { return left.member(right); }
extern int (*callback)(int given); int array[3], plain = 5, *pointer = nullptr;
template <> inline double twice<double>(double x) { return x; }
constexpr bool is_it = false;
}
using outer::twice;
extern "C" { __attribute__((visibility("default"))) int c_function(void); }
"""
    )
    text = _run(str(_CXX), "-std=c++20", "-E", "-x", "c++", str(header)).stdout
    found = list(declarations(text))
    names = {d.name for d in found}
    assert {
        "outer", "Tensor", "std_like", "Plain", "red", "green", "Scoped", "twice", "<<", "callback", "array", "plain",
        "pointer", "is_it", "c_function",
    } <= names  # fmt: skip
    assert not names & {
        "member", "parameter", "local", "hidden_enumerator", "given", "first", "left", "false", "nullptr", "T",
        "visibility",
    }  # fmt: skip
    assert len({d.line for d in found if d.name == "twice" and d.kind is Kind.FUNCTION}) == 2
    assert next(d for d in found if d.kind is Kind.DEFINITION and d.name == "Tensor").scope == ("outer",)
    assert all(d.file == str(header) for d in found)


@needs_compiler
@pytest.mark.parametrize(
    ("program", "differs"),
    [
        # The overload that only the full header has is the better one: compiles both ways, means something else.
        ("template <class T> int chosen(T) { return 1; }\nint answer() { return chosen(lib::Box()); }", True),
        ("int answer() { return lib::pick(1); }", True),
        ("int answer() { return lib::Box() << 1; }", True),
        ("int answer() {\n#ifdef LIB_SWITCH\n  return 1;\n#endif\n  return 2; }", True),
        ("int answer() { return lib::kept(1); }", False),
        ("int answer() { lib::Box box; return box.chosen; }", False),
        ("int answer() { /* chosen by pick */ return 4 - 1; }", False),
    ],
)
def test_programs_that_would_mean_something_else_mention_a_hidden_name(
    program: str, differs: bool, tmp_path: Path
) -> None:
    """Each program compiles with both headers; where its answer differs, it is found out."""
    (tmp_path / "light.h").write_text(LIGHT)
    (tmp_path / "full.h").write_text(f'#include "light.h"\n{MORE}')
    answers, read, macros = [], [], []
    for name in ("full", "light"):
        unit = tmp_path / f"{name}.cpp"
        unit.write_text(f'#include "{name}.h"\n{program}\nint main() {{ return answer(); }}\n')
        built = _run(str(_CXX), "-std=c++20", str(unit), "-o", str(tmp_path / name))
        assert built.returncode == 0, built.stderr
        answers.append(_run(str(tmp_path / name)).returncode)
        text = _run(str(_CXX), "-std=c++20", "-E", "-dD", "-x", "c++", str(tmp_path / f"{name}.h")).stdout
        read.append(list(declarations(text)))
        macros.append(set(re.findall(r"^#define (\w+)", text, re.MULTILINE)))
    assert (answers[0] != answers[1]) is differs
    hidden = hidden_names(read[0], read[1], macros[0] - macros[1])
    mentions = mentions_of(program)
    assert mentions is not None
    assert any(mentions.find(name) for name in hidden) is differs


@pytest.mark.parametrize(
    "code",
    [
        '#include "own.h"',
        "#define JOIN(a, b) a##b",
        "int x = __COUNTER__;",
        "#include FILE\n",
        "int \\u00e9;",
    ],
)
def test_text_that_does_not_tell_what_it_mentions_is_not_judged(code: str) -> None:
    """Pasted names, files of its own and the like leave nothing to be sure of."""
    assert mentions_of(f"#include <torch/extension.h>\n{code}\n") is None


# C++.


@pytest.mark.slow
@needs_compiler
def test_fast_build_gives_the_same_and_uses_the_precompiled_header(
    fast: PreparedHeaders, tmp_path: Path
) -> None:
    """The compiler says itself that it took the precompiled header."""
    extension = _load("scale_fast", SCALE, ["scale"])
    x = torch.randn(1000)
    assert torch.equal(extension.scale(x, 3.0), x * 3.0)
    with pytest.raises(RuntimeError, match="scale takes float32, not Double"):
        extension.scale(x.double(), 3.0)
    command = _compile_command(tmp_path / "scale_fast", "main.o")
    used = _run("/bin/sh", "-c", f"{command} -H", cwd=tmp_path / "scale_fast").stderr
    assert re.search(r"^! .*extension\.h\.gch/plain\.gch$", used, re.MULTILINE)


@needs_compiler
def test_only_programs_within_the_light_headers_are_built_with_them(
    prepared: PreparedHeaders, tmp_path: Path
) -> None:
    """A mention of what is hidden, headers of one's own choice, or forced includes: torch's own headers."""

    def plan(code: str, *flags: str) -> Any:
        (tmp_path / "main.cpp").write_text(code)
        return plan_build([str(tmp_path / "main.cpp")], flags, (), prepared)

    begin = "#include <torch/extension.h>\n"
    assert plan(begin + SCALE).cpp == prepared.cpp
    assert plan(begin + ROWS, "-O3", "-DTILE=4").cpp == prepared.cpp
    assert plan(begin + "torch::Tensor f(torch::Tensor x) { return torch::nn::functional::relu(x); }") is None
    assert plan(begin + SCALE, "-DTILE=torch::jit::Node") is None
    assert plan(begin + SCALE, "-include cmath") is None
    assert plan("#include <ATen/ATen.h>\n" + SCALE) is None


@needs_compiler
def test_headers_that_a_worker_could_write_to_are_not_used(
    prepared: PreparedHeaders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the weakest tier, as an ordinary user, the prepared files are the worker's own."""
    calls: list[dict[str, Any]] = []
    name = "_write_ninja_file_and_build_library"

    def note(name: str, sources: list[str], extra_cflags: list[str], **rest: Any) -> None:
        calls.append({"extra_cflags": extra_cflags})

    monkeypatch.setattr(cpp_extension, name, note)
    use_fast_builds(Isolation.PROCESS)
    getattr(cpp_extension, name)(name="x", sources=["main.cpp"], extra_cflags=[])
    assert calls == [{"extra_cflags": []}]


@needs_compiler
@pytest.mark.slow
def test_errors_are_those_of_the_ordinary_build(fast: PreparedHeaders, tmp_path: Path) -> None:
    """Nothing of the first attempt is told."""
    wrong = SCALE.replace("return output;", "return no_such_thing;")
    with pytest.raises(RuntimeError, match="Error building extension 'wrong'") as caught:
        _load("wrong", wrong, ["scale"])
    assert "no_such_thing" in str(caught.value)
    assert str(fast.folder) not in str(caught.value)
    assert str(fast.folder) not in (tmp_path / "wrong" / "build.ninja").read_text()


@needs_compiler
@pytest.mark.slow
def test_truncated_precompiled_header_breaks_no_build(
    fast: PreparedHeaders, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A file that a full disk or a stranger has spoilt costs time only."""
    header = fast.cpp / "torch" / "extension.h.gch" / "plain.gch"
    kept = tmp_path_factory.mktemp("kept") / "plain.gch"
    shutil.move(header, kept)
    try:
        with open(kept, "rb") as whole:
            header.write_bytes(whole.read(1 << 20))
        x = torch.randn(10)
        assert torch.equal(_load("truncated", SCALE, ["scale"]).scale(x, 2.0), x * 2.0)
        command = _compile_command(tmp_path / "truncated", "main.o")
        used = _run("/bin/sh", "-c", f"{command} -H -fsyntax-only", cwd=tmp_path / "truncated").stderr
        assert not re.search(r"^! ", used, re.MULTILINE)
        header.write_bytes(b"nothing of the kind")
        assert torch.equal(_load("poisoned", SCALE, ["scale"]).scale(x, 4.0), x * 4.0)
    finally:
        header.unlink()
        shutil.move(kept, header)


@needs_compiler
@pytest.mark.slow
def test_programs_built_both_ways_give_the_same(
    prepared: PreparedHeaders, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Overloads, defaults and dispatch come out alike."""
    name = "_write_ninja_file_and_build_library"
    monkeypatch.setattr(cpp_extension, name, getattr(cpp_extension, name))
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    ordinary = _load("rows_ordinary", ROWS, ["rows"])
    use_fast_builds(Isolation.FULL)
    fast = _load("rows_fast", ROWS, ["rows"])
    assert str(prepared.cpp) in (tmp_path / "rows_fast" / "build.ninja").read_text()
    assert str(prepared.cpp) not in (tmp_path / "rows_ordinary" / "build.ninja").read_text()
    x = torch.randn(7, 33)
    for dtype in (torch.float32, torch.float64):
        for top in (None, 5):
            a, b = (extension.rows(x.to(dtype), top) for extension in (ordinary, fast))
            assert all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("tier", list(Isolation))
def test_host_prepares_and_fenced_workers_use_it(
    tier: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first submission that builds one sets it going, and waits for nothing; a later one is fast."""
    if probe_isolation().missing_for(tier):
        pytest.skip(f"isolation {tier.value!r} cannot be had here")
    if tier is Isolation.PROCESS and os.geteuid() != 0:
        pytest.skip("an ordinary user's workers of this tier could write to the headers")
    monkeypatch.setenv("GYM_KERNEL_CACHE", str(tmp_path))
    code = TELL.replace("SCALE", SCALE)
    with contextlib.closing(Evaluator(EvaluatorConfig(device="cpu", isolation=tier.value))) as evaluator:
        first = evaluator.evaluate(Submission(load("relu")[0], code))
        assert "precompiled headers used: []" in first.reason + first.detail
        deadline = time.monotonic() + 400
        while not list(tmp_path.glob("extensions/*/cpp.json")) and time.monotonic() < deadline:
            time.sleep(0.5)
        second = evaluator.evaluate(Submission(load("relu")[0], code))
        assert "precompiled headers used: ['plain.gch']" in second.reason + second.detail
        assert second.stages.load_s < first.stages.load_s


# CUDA.


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
    rows = [line.split() for line in _run("nm", str(file)).stdout.splitlines()]
    unique = re.compile(r"_[0-9a-f]{8}_\d+_\w+?_cu_[0-9a-f]{8}")
    return {unique.sub("_unit", row[-1]) for row in rows if row[-2] == kind}


@needs_nvcc
def test_phases_side_by_side_give_what_nvcc_gives(cuda_flags: tuple[str, ...], tmp_path: Path) -> None:
    """The same code for the device and the same symbols, but for the unit's unique name."""
    source = tmp_path / "plain.cu"
    source.write_text(PLAIN_CUDA)
    options = [*cuda_flags[-6:], "-c", str(source), "-o"]
    objects = [tmp_path / "ordinary.o", tmp_path / "fast.o"]
    assert _run(str(_NVCC), *options, str(objects[0])).returncode == 0
    program = [sys.executable, "-ISB", nvcc_phases.__file__, str(_NVCC)]
    # torch asks for a list of included files, too.
    done = _run(*program, "-MD", "-MF", str(tmp_path / "fast.d"), *options, str(objects[1]))
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
    program = [sys.executable, "-ISB", nvcc_phases.__file__, str(_NVCC)]
    two = [
        *cuda_flags[-6:],
        "-gencode=arch=compute_80,code=sm_80",
        "-c",
        str(source),
        "-o",
        str(tmp_path / "two.o"),
    ]
    assert _run(*program, *two).returncode == 0
    assert (tmp_path / "two.o").exists()
    source.write_text(PLAIN_CUDA.replace("part[32]", "part[no_such_thing]"))
    failed = _run(*program, *cuda_flags[-6:], "-c", str(source), "-o", str(tmp_path / "bad.o"))
    assert failed.returncode != 0
    assert "no_such_thing" in failed.stdout + failed.stderr
    assert "release" in _run(*program, "--version").stdout


@needs_nvcc
@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_cuda_programs_built_both_ways_are_the_same(
    cuda_flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PTX to the letter, the program's symbols, and nothing to link that torch or the extra object does not have."""
    assert _NVCC is not None
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
            assert _run(str(_NVCC), *options).returncode == 0
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
    dry = _run(str(_NVCC), "--dryrun", "-c", "x.cu").stderr
    match = re.search(r"^#\$ TOP=(\S+)", dry, re.MULTILINE)
    return os.path.normpath(match[1]) if match else str(Path(str(_NVCC)).parent.parent)


def _exported(library: str) -> set[str]:
    file = Path(torch.__file__).parent / "lib" / f"lib{library}.so"
    return {line.split()[-1] for line in _run("nm", "-D", "--defined-only", str(file)).stdout.splitlines()}
