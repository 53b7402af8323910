"""Fast builds of extensions: the same programs, in less time; and the ordinary build wherever that is in doubt."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from compilers import needs_compiler, run
from torch.utils import cpp_extension

from gym_kernel.evaluator import prepared_headers
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.extension_build import plan_build, use_fast_builds
from gym_kernel.evaluator.fence import Isolation
from gym_kernel.evaluator.fence_probe import probe_isolation
from gym_kernel.evaluator.prepare_headers import prepare_headers
from gym_kernel.evaluator.prepared_headers import PreparedHeaders
from gym_kernel.evaluator.submission import Submission
from gym_kernel.tasks import load

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
        done = run(sys.executable, "-m", "gym_kernel.evaluator.prepare_headers", *words)
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
    return run("ninja", "-t", "commands", target, cwd=folder).stdout.strip()


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
    used = run("/bin/sh", "-c", f"{command} -H", cwd=tmp_path / "scale_fast").stderr
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
        used = run("/bin/sh", "-c", f"{command} -H -fsyntax-only", cwd=tmp_path / "truncated").stderr
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
