"""A submission that ran out of device memory beside others is judged once more by itself.

On a CPU nobody runs out of device memory, so the host of these tests takes each first try for one that did.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from small_tasks import with_rows

from gym_kernel.evaluator import host_process
from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.processes import descendants_of
from gym_kernel.evaluator.submission import Submission

pytestmark = pytest.mark.own_host

ROOT = Path(__file__).resolve().parents[1]
HOST = """
import gym_kernel.evaluator.evaluation as evaluation

def out_of_memory(self, afterwards):
    with evaluation.ExitStack() as mine:
        self._try(mine, 0)
    return None

evaluation.Evaluation._first_try = out_of_memory

from gym_kernel.evaluator.host import main
main()
"""
RELU = (ROOT / "examples" / "kernels" / "relu.py").read_text()
TEXTS = {
    "correct": RELU,
    "incorrect": RELU.replace("0.0", "1.0"),
    "runtime_error": RELU + "\nraise ValueError('no')\n",
    "rejected": "no code",
}


@pytest.fixture
def evaluator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Evaluator]:
    (tmp_path / "short_of_memory_host.py").write_text(HOST)
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr(host_process, "_HOST_MODULE", "short_of_memory_host")
    before = descendants_of(os.getpid())
    evaluator = Evaluator(EvaluatorConfig(device="cpu", timeout_s=30.0))
    yield evaluator
    evaluator.close()
    assert descendants_of(os.getpid()) <= before


def test_the_second_try_decides(evaluator: Evaluator) -> None:
    relu = with_rows("relu", 8)
    with ThreadPoolExecutor(4) as pool:
        verdicts = pool.map(lambda text: evaluator.evaluate(Submission(relu, text)), TEXTS.values())
        assert [verdict.status.value for verdict in verdicts] == list(TEXTS)
