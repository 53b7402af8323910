"""Submissions that need much memory at the same time get the verdicts that they would get alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.verdict import Verdict
from gym_kernel.tasks import load

pytestmark = pytest.mark.gpu

AT_ONCE = 10

# Each call holds four tensors of 6.4 GB beside the judge's own.
DETOURS = """
import torch, triton
import triton.language as tl

@triton.jit
def relu_{number}(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        steps = [x]
        for _ in range(4):
            steps.append(torch.empty_like(x))
            relu_{number}[(triton.cdiv(x.numel(), 4096),)](steps[-2], steps[-1], x.numel(), BLOCK=4096)
        return steps[-1]
"""
HOG = DETOURS.replace(
    "        steps = [x]\n",
    "        steps = [x, *(torch.empty(1 << 33, device=x.device) for _ in range(100))]\n",
)


def test_large_submissions_beside_each_other_are_all_right() -> None:
    (relu,) = load("relu")
    with (
        closing(Evaluator(EvaluatorConfig(device="cuda"))) as evaluator,
        ThreadPoolExecutor(AT_ONCE + 1) as pool,
    ):

        def judged(code: str) -> Verdict:
            return evaluator.evaluate(Submission(relu, code))

        texts = [DETOURS.replace("{number}", str(number)) for number in range(AT_ONCE)]
        verdicts = list(pool.map(judged, [*texts[:5], HOG.replace("{number}", "hog"), *texts[5:]]))
    hog = verdicts.pop(5)
    assert (hog.status, hog.reason.startswith("Out of memory")) == (Status.RUNTIME_ERROR, True), hog.reason
    for verdict in verdicts:
        assert verdict.status is Status.CORRECT, (verdict.reason, verdict.detail)
