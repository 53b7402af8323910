"""Every evaluation can be run again from its line in the record."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium
import pytest

from gym_kernel.cli import main
from gym_kernel.errors import ConfigurationError
from gym_kernel.evaluator.record import RECORD_FILE, read_records

pytestmark = pytest.mark.usefixtures("warm_evaluator")

KERNELS = Path(__file__).parents[1] / "examples" / "kernels"

HONEST = (KERNELS / "relu.py").read_text()
MODEL = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        "
REPLIES = {
    "correct": f"Here it is:\n```python\n{HONEST}\n```",
    "incorrect": HONEST.replace("0.0", "0.5"),
    "rejected": "```\nimport torch\n```",
    "runtime_error": MODEL + "raise ValueError(1)\n",
    "cheating": MODEL + "return torch.relu(x)\n",
}


@pytest.fixture(scope="module")
def record_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    env = gymnasium.make("gym_kernel:KernelEnv-v0", tasks="relu", device="cpu", record_dir=str(folder))
    for reply in REPLIES.values():
        env.reset(seed=0)
        env.step(reply)
    env.close()
    return folder


def test_each_line_is_plain_json_with_what_a_replay_needs(record_dir: Path) -> None:
    lines = [json.loads(line) for line in (record_dir / RECORD_FILE).read_text().splitlines()]
    assert [line["verdict"]["status"] for line in lines] == list(REPLIES)
    first = lines[0]
    assert first["task"]["id"] == "relu"
    assert first["code"].strip() == HONEST.strip()
    assert first["device"]["torch"]
    assert isinstance(first["evaluation_seed"], int)
    assert len({line["evaluation_seed"] for line in lines}) == len(lines)
    assert first["verdict"]["runtime"]["samples_us"]


def test_replay_gives_the_same_statuses(record_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(record_dir)]) == 0
    printed = capsys.readouterr().out
    assert printed.count(" same") == len(REPLIES)


def test_replay_of_a_changed_record_tells(record_dir: Path, tmp_path: Path) -> None:
    text = (record_dir / RECORD_FILE).read_text().splitlines()[0]
    changed = json.loads(text)
    changed["code"] = "import torch"
    (tmp_path / RECORD_FILE).write_text(json.dumps(changed) + "\n")
    assert main(["replay", str(tmp_path)]) == 1


def test_records_keep_infinite_domains(record_dir: Path) -> None:
    record = next(read_records(record_dir))
    assert record.task.domains[0].low == float("-inf")


def test_a_record_is_named_by_a_text_too(record_dir: Path) -> None:
    of_folder, of_file = (list(read_records(str(path))) for path in (record_dir, record_dir / RECORD_FILE))
    assert of_folder == of_file == list(read_records(record_dir))


def test_a_broken_record_is_named(tmp_path: Path) -> None:
    (tmp_path / RECORD_FILE).write_text("{}\n")
    with pytest.raises(ConfigurationError, match="Line 1"):
        list(read_records(tmp_path))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        list(read_records(tmp_path / "nowhere"))
