"""Every way an evaluation can end, reached through ``env.step`` with real processes."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest

from gym_kernel.evaluator.processes import children_of

# A host that has been given C++ prepares headers in the background, beside whatever it judges.
pytestmark = pytest.mark.own_host

KERNELS = Path(__file__).parents[1] / "examples" / "kernels"

HEAD = """
import os, sys, time
import torch, triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.where(x > 0, x, 0.0), mask=inside)

def relu(x):
    y = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 8192),)](x, y, x.numel(), BLOCK=8192)
    return y
"""


def module(forward: str, *, init: str = "super().__init__()", top: str = "") -> str:
    """A module around one line of ``forward``."""
    return (
        f"{HEAD}\n{top}\nclass ModelNew(torch.nn.Module):\n"
        f"    def __init__(self):\n        {init}\n"
        f"    def forward(self, x):\n        {forward}\n"
    )


HONEST = module("return relu(x)")

ENDINGS = {
    "empty text": ("", "rejected"),
    "blanks": (" \n\t\n", "rejected"),
    "prose": ("I am sorry, I cannot write this kernel.", "rejected"),
    "one megabyte of text": ("x = 1\n" * 175_000, "rejected"),
    "one megabyte without a newline": ("a" * (1 << 20), "rejected"),
    "binary junk": (bytes(range(256)).decode("latin-1") * 40, "rejected"),
    "null byte": ("x = '\0'\n" + HONEST, "rejected"),
    "lone surrogate": ("x = '\ud800'\n", "rejected"),
    "deeply nested source": ("(" * 5000 + ")" * 5000, "rejected"),
    "long operator chain": ("x = " + "-" * 60_000 + "1", "rejected"),
    "syntax error": ("def broken(:\n    pass", "rejected"),
    "no ModelNew": ("import torch\nclass Model(torch.nn.Module):\n    pass", "rejected"),
    "exception at import": (module("return relu(x)", top="raise RuntimeError('at import')"), "runtime_error"),
    "exception in __init__": (module("return relu(x)", init="raise ValueError('in init')"), "runtime_error"),
    "exception in forward": (module("raise KeyError('in forward')"), "runtime_error"),
    "recursion": (module("return self.forward(x)"), "runtime_error"),
    "keyboard interrupt": (module("raise KeyboardInterrupt"), "runtime_error"),
    "SystemExit at import": (module("return relu(x)", top="sys.exit(0)"), "runtime_error"),
    "SystemExit in forward": (module("raise SystemExit(0)"), "runtime_error"),
    "not a module": (
        HEAD + "class ModelNew:\n    def forward(self, x):\n        return relu(x)",
        "incorrect",
    ),
    "wrong value": (HONEST.replace("x > 0", "x < 0"), "incorrect"),
    "identity": (HONEST.replace("tl.where(x > 0, x, 0.0)", "x"), "incorrect"),
    "copy of the input": (module("return x.clone()"), "cheating"),
    "wrong shape": (module("return relu(x)[:, :-1]"), "incorrect"),
    "wrong dtype": (module("return relu(x).double()"), "incorrect"),
    "NaN": (module("y = relu(x); y.fill_(float('nan')); return y"), "incorrect"),
    "returns nothing": (module("relu(x)"), "incorrect"),
    "returns a pair": (module("return relu(x), relu(x)"), "incorrect"),
    "returns a subclass": (module("return torch.nn.Parameter(relu(x), requires_grad=False)"), "incorrect"),
    "half of the output unwritten": (
        HONEST.replace("triton.cdiv(x.numel(), 8192)", "triton.cdiv(x.numel(), 16384)"),
        "incorrect",
    ),
    "unwritten output": (module("return torch.empty_like(x)"), "cheating"),
    "numpy does the work": (
        module("import numpy; relu(x[:1]); return torch.from_numpy(numpy.maximum(x.numpy(), 0))"),
        "cheating",
    ),
    "changes its input": (module("y = relu(x); x.zero_(); return y"), "incorrect"),
    "segmentation fault": (module("import ctypes; ctypes.string_at(0); return relu(x)"), "crashed"),
    "os._exit(0) in forward": (module("os._exit(0)"), "crashed"),
    "os._exit(0) at import": (module("return relu(x)", top="os._exit(0)"), "crashed"),
    "kills its own group": (module("os.killpg(0, 9)"), "crashed"),
    "torch does the work": (module("return torch.relu(x)"), "cheating"),
}


@pytest.fixture(scope="module")
def env() -> Iterator[gymnasium.Env]:
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu", timeout_s=30.0)
    yield env
    env.close()


@pytest.fixture(scope="module")
def hasty_env(env: gymnasium.Env) -> Iterator[gymnasium.Env]:
    """Shares the host of ``env``, with a short time-out."""
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu", timeout_s=1.0)
    yield env
    env.close()


def play(env: gymnasium.Env, reply: str) -> tuple[str, float, dict]:
    """One episode; also asserts what holds for every outcome."""
    env.reset(seed=0)
    feedback, reward, terminated, truncated, info = env.step(reply)
    assert env.observation_space.contains(feedback)
    assert math.isfinite(reward)
    assert reward == info["reward"]
    assert terminated != truncated
    assert info["correct"] == (info["status"] == "correct") == (reward > 0)
    return feedback, reward, info


@pytest.mark.parametrize("name", list(ENDINGS))
def test_ending(env: gymnasium.Env, name: str) -> None:
    reply, status = ENDINGS[name]
    feedback, reward, info = play(env, reply)
    assert info["status"] == status, feedback
    assert reward == 0


def test_honest_kernel_is_rewarded_after_all_of_this(env: gymnasium.Env) -> None:
    feedback, reward, info = play(env, HONEST)
    assert info["status"] == "correct", feedback
    assert 0.3 < reward <= 3.0
    assert info["runtime_us"] > 0
    assert 0 < info["roofline_fraction"] <= 1


@pytest.mark.parametrize("style", ["try", "comments", "helper", "fenced"])
def test_innocent_styles_pass(env: gymnasium.Env, style: str) -> None:
    replies = {
        "try": module(
            "try:\n            return relu(x)\n        except ValueError:\n            pass\n        return None"
        ),
        "comments": module("# torch.relu(x) would be cheating\n        return relu(x)"),
        "helper": module("return self.inner(x)", init="super().__init__(); self.inner = Inner()",
                         top="class Inner(torch.nn.Module):\n    def forward(self, x):\n        return relu(x)"),
        "fenced": f"<think>First\n```python\nbroken(\n```\nno, better:</think>\n```python\n{HONEST}\n```\nDone.",
    }  # fmt: skip
    feedback, _, info = play(env, replies[style])
    assert info["status"] == "correct", feedback


@pytest.mark.parametrize("where", ["import", "forward", "sleep", "ignores signals"])
def test_timeout(hasty_env: gymnasium.Env, where: str) -> None:
    replies = {
        "import": module("return relu(x)", top="while True: pass"),
        "forward": module("\n        while True: pass"),
        "sleep": module("time.sleep(1000)"),
        "ignores signals": module(
            "time.sleep(1000)",
            top="import signal\nfor s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)",
        ),
    }
    started = time.monotonic()
    feedback, reward, info = play(hasty_env, replies[where])
    assert info["status"] == "timeout", feedback
    assert reward == 0
    # The budget is 1 s; a busy machine may need some more to kill and report.
    assert time.monotonic() - started < 20


def test_fifty_megabytes_of_output_are_bounded(env: gymnasium.Env) -> None:
    shout = "\n        for _ in range(50): sys.stdout.write('y' * (1 << 20))\n        return relu(x)[:1]"
    feedback, _, info = play(env, module(shout))
    assert info["status"] == "incorrect"
    assert len(feedback) <= env.observation_space.max_length


def test_printed_text_reaches_the_feedback(env: gymnasium.Env) -> None:
    feedback, _, info = play(env, module("print('shape is', tuple(x.shape)); raise ValueError('stop here')"))
    assert info["status"] == "runtime_error"
    assert "shape is (64, 1000)" in feedback
    assert "stop here" in feedback


def test_traceback_names_the_candidate_line(env: gymnasium.Env) -> None:
    source = module("return relu(x) + missing_name")
    line = 1 + source.splitlines().index("        return relu(x) + missing_name")
    feedback, _, _ = play(env, source)
    assert f"line {line}" in feedback
    assert "missing_name" in feedback
    assert "gym_kernel" not in feedback


def test_output_after_a_crash_is_kept(env: gymnasium.Env) -> None:
    feedback, _, info = play(env, module("print('last words', flush=True); os.abort()"))
    assert info["status"] == "crashed"
    assert "SIGABRT" in feedback
    assert "last words" in feedback


def test_wrong_values_say_where_but_not_what(env: gymnasium.Env) -> None:
    feedback, _, info = play(env, module("y = relu(x); y[7, 3] = 12345.0; return y"))
    assert info["status"] == "incorrect"
    assert "(7, 3)" in feedback or "[7, 3]" in feedback
    assert "12345" in feedback
    assert info["max_abs_error"] > 12_000


def test_cpp_that_does_not_compile(env: gymnasium.Env) -> None:
    top = (
        "from torch.utils.cpp_extension import load_inline\n"
        'SOURCE = r"""\n#include <vector>\nint relu(int x) {\n    return undeclared_thing;\n}\n"""\n'
        "ext = load_inline('broken', cpp_sources=[SOURCE], functions=['relu'], no_implicit_headers=True)\n"
    )
    source = module("return relu(x)", top=top)
    line = 1 + source.splitlines().index("    return undeclared_thing;")
    feedback, _, info = play(env, source)
    assert info["status"] == "compile_error", feedback
    assert "undeclared_thing" in feedback
    assert f"line {line}" in feedback or f":{line}:" in feedback


def test_infrastructure_error_is_not_the_policys(env: gymnasium.Env) -> None:
    """A host that is killed under every attempt gives a truncated episode, and the next one works."""
    env.reset(seed=0)
    over = threading.Event()

    def kill_hosts() -> None:
        while not over.wait(1.0):
            for pid in children_of(os.getpid()):
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_hosts)
    killer.start()
    try:
        feedback, reward, terminated, truncated, info = env.step(module("time.sleep(20); return relu(x)"))
    finally:
        over.set()
        killer.join()
    assert info["status"] == "infrastructure_error", feedback
    assert (reward, terminated, truncated) == (0, False, True)
    _, reward, info = play(env, HONEST)
    assert info["status"] == "correct"
