"""``examples/evaluate_policy.py``: real evaluations on the CPU, for each kind of policy, and their comparison."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
main = importlib.import_module("evaluate_policy").main
comparison = importlib.import_module("policy_evaluation.comparison")
journal = importlib.import_module("policy_evaluation.journal")
summary = importlib.import_module("policy_evaluation.summary")
View = summary.View

pytestmark = pytest.mark.usefixtures("warm_evaluator")

TASKS = ("relu", "swish", "softmax")
GOOD = {task: (EXAMPLES / "kernels" / f"{task}.py").read_text(encoding="utf-8") for task in (*TASKS, "tanh")}
BAD = "I would rather not."


def evaluate(*words: str, tasks: tuple[str, ...] = TASKS) -> int:
    return main(["--device", "cpu", "--tasks", *tasks, *words])


def write_replies(folder: Path, replies: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in replies.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, warm_evaluator: None) -> Path:
    """A folder with ``before.json`` and ``after.json`` of three tasks, one in each group."""
    folder = tmp_path_factory.mktemp("runs")
    before = {"relu.turn1.txt": f"Here it is.\n```python\n{GOOD['relu']}```\n", "relu.turn2.txt": BAD}
    before |= {"swish.1.py": BAD, "softmax.py": BAD, "softmax.turn2.md": GOOD["softmax"]}
    after = {"relu.1.py": GOOD["relu"], "swish.txt": BAD, "swish.2.py": GOOD["swish"], "softmax.txt": BAD}
    for name, replies in {"before": before, "after": after}.items():
        replies_dir = write_replies(folder / f"{name}-replies", replies)
        assert evaluate("--replies", str(replies_dir), "--out", str(folder / name)) == 0
    return folder


def rows_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["rows"]


def test_a_folder_of_replies_is_judged_turn_by_turn(runs: Path) -> None:
    result = json.loads((runs / "before.json").read_text(encoding="utf-8"))
    found = [(row["task"], row["turn"], row["status"]) for row in result["rows"]]
    assert found == [
        ("relu", 1, "correct"),
        ("relu", 2, "rejected"),
        ("swish", 1, "rejected"),
        ("softmax", 1, "rejected"),
        ("softmax", 2, "correct"),
    ]
    assert [task["group"] for task in result["protocol"]["tasks"]] == ["training", "reserved", "held-out"]
    assert result["machine"]["device"]["torch"]
    first = result["rows"][0]
    assert first["reward"] > 0.3
    assert first["speedup"] == pytest.approx(first["reference_us"] / first["runtime_us"])
    assert result["rows"][1]["runtime_us"] is None
    assert (runs / "before.replies" / "relu.turn2.txt").read_text(encoding="utf-8") == BAD


def test_the_summary_counts_by_group_and_over_all(runs: Path) -> None:
    run = journal.load_run(runs / "before.json")
    figures = summary.summary(run)
    assert list(figures) == ["training", "reserved", "held-out", "all"]
    relu, softmax = run.rows[0], run.rows[4]
    first, best = (figures["all"][view.value] for view in View)
    assert (first.correct, best.correct, first.tasks) == (1, 2, 3)
    assert first.mean_reward == pytest.approx(relu.reward / 3)
    assert best.mean_return == pytest.approx((relu.reward + 0.4 * softmax.reward) / 3)
    assert best.speedup == pytest.approx((relu.speedup * softmax.speedup) ** 0.5)
    assert figures["reserved"]["best attempt"].speedup is None
    assert "| all | best attempt | 2/3 |" in summary.summary_table(run)


def test_two_runs_are_compared_in_words_numbers_and_a_picture(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "comparison"
    assert main(["compare", str(runs / "before.json"), str(runs / "after.json"), "--out", str(out)]) == 0
    text = Path(f"{out}.md").read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    assert "| reserved | 1 | 0 -> 1 (+1) | 1 / 0 |" in text
    assert "| held-out | 1 | 1 -> 0 (-1) | 0 / 1 |" in text
    assert "| all | 3 | 2 -> 2 (+0) | 1 / 1 |" in text

    cells = {
        (cell["group"], cell["view"]): cell for cell in json.loads(Path(f"{out}.json").read_text())["groups"]
    }
    pairs = cells["all", "best attempt"]["pairs"]
    assert (pairs["gained"], pairs["kept"], pairs["forgotten"]) == (1, 1, 1)
    assert pairs["better"] + pairs["same"] + pairs["worse"] == 3
    assert cells["held-out", "best attempt"]["difference"]["mean_reward"] < -0.3
    assert cells["held-out", "first turn"]["pairs"]["same"] == 1

    image = pytest.importorskip("matplotlib.image").imread(f"{out}.png")
    colours = (image.reshape(-1, image.shape[-1])[:, :3] * 255).round().astype(int)
    better, worse = ((colours == rgb).all(axis=1).sum() for rgb in ((0, 114, 178), (213, 94, 0)))
    assert min(better, worse) > 500


def test_without_matplotlib_a_comparison_is_words_and_numbers(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.backends", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    out = tmp_path / "comparison"
    assert main(["compare", str(runs / "before.json"), str(runs / "after.json"), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "| reserved | 1 | 0 -> 1 (+1) | 1 / 0 |" in said
    assert said.endswith(f"{out}.md and .json are written; no picture: pip install matplotlib\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comparison.json", "comparison.md"]


@pytest.mark.parametrize("words", [["compare", "a.json", "b.json"], ["--replies", "r"]])
def test_a_folder_that_does_not_exist_is_refused_and_not_made(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--out", str(tmp_path / "new" / "x.json")])
    assert "is in a folder that does not exist" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_tolerance_decides_what_counts_as_the_same(runs: Path) -> None:
    before, after = (journal.load_run(runs / name) for name in ("before.json", "after.json"))
    cells = comparison.compare(before, after, tolerance=3.0).cells()
    assert {(cell.pairs.better, cell.pairs.worse) for cell in cells} == {(0, 0)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"device": "NVIDIA H200"}, "the device is '.*' in one and 'NVIDIA H200' in the other"),
        ({"turns": 1}, "turns is 2 in one and 1 in the other"),
        ({"timeout_s": 60.0}, "timeout_s is 300.0 in one and 60.0 in the other"),
        ({"tasks": ()}, "only the first has the tasks relu, swish, softmax"),
    ],
)
def test_runs_of_different_protocols_are_refused(runs: Path, change: dict[str, Any], words: str) -> None:
    before = journal.load_run(runs / "before.json")
    after = replace(before, protocol=replace(before.protocol, **change))
    with pytest.raises(Exception, match=words):
        comparison.compare(before, after)


def test_a_refusal_is_a_sentence_and_an_exit_code(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = json.loads((runs / "after.json").read_text())
    value["protocol"]["tasks"][1]["sha256"] = "changed"
    (tmp_path / "other.json").write_text(json.dumps(value))
    assert main(["compare", str(runs / "before.json"), str(tmp_path / "other.json")]) == 2
    assert "the reference, sizes or group of swish changed" in capsys.readouterr().err
    assert main(["compare", str(runs / "before.jsonl"), str(runs / "after.json")]) == 2
    assert "Pass the .json file that --out named" in capsys.readouterr().err


def test_what_the_evaluator_spoilt_is_left_out_of_both_runs(runs: Path) -> None:
    before, after = (journal.load_run(runs / name) for name in ("before.json", "after.json"))
    rows = tuple(
        replace(row, status="infrastructure_error", correct=False, reward=0.0) if row.task == "relu" else row
        for row in after.rows
    )
    found = comparison.compare(before, replace(after, rows=rows))
    assert found.left_out == ("relu",)
    assert "Left out, because the evaluator failed in a run: relu." in found.to_markdown()
    assert summary.summary(replace(after, rows=rows))["training"]["first turn"].lost == 1
    assert {cell.before.tasks for cell in found.cells() if cell.group == "all"} == {2}


def test_missing_first_replies_are_named_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_replies(tmp_path / "replies", {"relu.turn1.txt": BAD})
    assert evaluate("--replies", str(folder), "--out", str(tmp_path / "run")) == 2
    assert "has no reply for swish, softmax" in capsys.readouterr().err
    assert not (tmp_path / "run.jsonl").exists()


def test_a_journal_of_another_run_is_not_mixed_in(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--replies", str(runs / "before-replies"), "--out", str(runs / "before"))
    assert evaluate(*words, "--turns", "1") == 2
    assert "holds another run: turns is 2 in one and 1 in the other" in capsys.readouterr().err
    before = (runs / "before.jsonl").read_bytes()
    assert evaluate(*words) == 0
    assert (runs / "before.jsonl").read_bytes() == before


class Server:
    """A real chat-completions server on this machine; ``answer`` decides what it says."""

    def __init__(self, answer: Callable[[str, int], tuple[int, str]]) -> None:
        self.requests: list[tuple[str, int]] = []
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.answer = answer
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                task = re.search(r"^# Task: .*\((\w+)\)", body["messages"][0]["content"])[1]
                turn = (len(body["messages"]) + 1) // 2
                server.bodies.append(body)
                server.keys.add(self.headers["Authorization"])
                server.requests.append((task, turn))
                code, text = server.answer(task, turn)
                reply = {"choices": [{"message": {"role": "assistant", "content": text}}]}
                content = json.dumps(reply if code == 200 else {"error": text}).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Keep the test's output quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


@contextmanager
def serving(answer: Callable[[str, int], tuple[int, str]]) -> Iterator[Server]:
    server = Server(answer)
    thread = threading.Thread(target=server.http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join(10)


def repaired(task: str, turn: int) -> tuple[int, str]:
    return 200, GOOD[task] if turn == 2 else BAD


def test_an_endpoint_is_asked_greedily_and_again_when_it_is_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = iter([503, 429])

    def answer(task: str, turn: int) -> tuple[int, str]:
        code = next(busy, 200)
        return (code, "busy") if code != 200 else repaired(task, turn)

    monkeypatch.setenv("KEY_FOR_TEST", "secret")
    with serving(answer) as server:
        words = ("--endpoint", server.url, "--model", "tiny", "--api-key-env", "KEY_FOR_TEST")
        words += ("--max-new-tokens", "99", "--template-options", '{"enable_thinking": false}')
        assert evaluate(*words, "--out", str(tmp_path / "run"), tasks=("relu", "tanh")) == 0
    assert len(server.requests) == 6
    assert server.keys == {"Bearer secret"}
    for body in server.bodies:
        assert (body["model"], body["temperature"], body["max_tokens"]) == ("tiny", 0, 99)
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
    second = next(body["messages"] for body in server.bodies if len(body["messages"]) == 3)
    assert [message["role"] for message in second] == ["user", "assistant", "user"]
    assert second[1]["content"] == BAD
    assert "Verdict: rejected" in second[2]["content"]
    statuses = [(row["task"], row["status"]) for row in rows_of(tmp_path / "run.json")]
    assert statuses == [("relu", "rejected"), ("relu", "correct"), ("tanh", "rejected"), ("tanh", "correct")]
    assert "secret" not in (tmp_path / "run.json").read_text() + (tmp_path / "run.jsonl").read_text()


def test_an_endpoint_that_refuses_or_stays_busy_ends_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--model", "tiny", "--reply-timeout-s", "1")
    for code, told in ((404, "HTTP 404"), (503, "gave no reply for relu within 1 s")):
        with serving(lambda task, turn, code=code: (code, "no such model")) as server:
            out = str(tmp_path / str(code))
            assert evaluate("--endpoint", server.url, *words, "--out", out, tasks=("relu",)) == 2
        assert told in (error := capsys.readouterr().err)
        assert "the same command goes on from here" in error
    assert evaluate("--endpoint", server.url, *words, "--out", out, tasks=("relu",)) == 2
    assert "gave no reply for relu within 1 s" in capsys.readouterr().err


def test_a_killed_run_is_resumed_without_loss(tmp_path: Path) -> None:
    out, reached, let_go = tmp_path / "run", threading.Event(), threading.Event()

    def stuck(task: str, turn: int) -> tuple[int, str]:
        if (task, turn) == ("tanh", 2):
            reached.set()
            let_go.wait(60)
        return repaired(task, turn)

    with serving(stuck) as server:
        words = ["--endpoint", server.url, "--model", "tiny", "--device", "cpu", "--tasks", "relu", "tanh"]
        words += ["--out", str(out), "--concurrency", "1"]
        child = subprocess.Popen([sys.executable, str(EXAMPLES / "evaluate_policy.py"), *words])
        try:
            assert reached.wait(120)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait(30)
        let_go.set()
        assert not Path(f"{out}.json").exists()
        kept = Path(f"{out}.jsonl").read_bytes()
        # As a machine that lost its power leaves it.
        Path(f"{out}.jsonl").write_bytes(kept + b'{"row": {"task": "ta')

        server.answer = repaired
        server.requests.clear()
        assert main(words) == 0
    assert server.requests == [("tanh", 1), ("tanh", 2)]
    assert Path(f"{out}.jsonl").read_bytes().startswith(kept)
    rows = rows_of(Path(f"{out}.json"))
    assert [(row["task"], row["turn"]) for row in rows] == [
        ("relu", 1),
        ("relu", 2),
        ("tanh", 1),
        ("tanh", 2),
    ]
    assert len({row["episode"] for row in rows}) == 2


def test_ctrl_c_stops_between_submissions(tmp_path: Path) -> None:
    out, reached = tmp_path / "run", threading.Event()

    def slow(task: str, turn: int) -> tuple[int, str]:
        reached.set()
        time.sleep(1.0)
        return repaired(task, turn)

    with serving(slow) as server:
        words = ["--endpoint", server.url, "--model", "tiny", "--device", "cpu", "--out", str(out)]
        child = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "evaluate_policy.py"), *words, "--concurrency", "1"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            assert reached.wait(120)
            child.send_signal(signal.SIGINT)
            _, error = child.communicate(timeout=60)
        finally:
            child.kill()
    assert child.returncode == 130
    assert "The same command goes on from here." in error
    assert {task for task, _ in server.requests} == {"relu"}


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two thousand random weights, whose tokens are bytes."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("tiny")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: number for number, symbol in enumerate([*alphabet, "<end>"])}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>")
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=16_384,
        eos_token_id=vocabulary["<end>"],
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def test_a_model_is_decoded_in_batches_and_all_its_answers_are_refused(
    tiny_model: Path, tmp_path: Path
) -> None:
    words = ("--model", str(tiny_model), "--model-device", "cpu", "--max-new-tokens", "8", "--batch", "2")
    assert evaluate(*words, "--out", str(tmp_path / "run")) == 0
    rows = rows_of(tmp_path / "run.json")
    assert [row["turn"] for row in rows] == [1, 2] * 3
    assert {row["status"] for row in rows} == {"rejected"}
    assert all(0 < row["reply_chars"] <= 8 for row in rows)

    again = ("--replies", str(tmp_path / "run.replies"), "--out", str(tmp_path / "again"))
    assert evaluate(*again) == 0
    keys = ("task", "turn", "status", "reply_sha256")
    assert [[row[key] for key in keys] for row in rows_of(tmp_path / "again.json")] == [
        [row[key] for key in keys] for row in rows
    ]


def test_an_adapter_changes_what_the_model_says(tiny_model: Path, tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_model)
    wild = peft.LoraConfig(r=4, lora_alpha=400, target_modules="all-linear", init_lora_weights=False)
    peft.get_peft_model(model, wild).save_pretrained(tmp_path / "adapter")
    words = ("--model", str(tiny_model), "--max-new-tokens", "8", "--turns", "1")
    assert evaluate(*words, "--out", str(tmp_path / "before"), tasks=("relu",)) == 0
    words += ("--adapter", str(tmp_path / "adapter"))
    assert evaluate(*words, "--out", str(tmp_path / "after"), tasks=("relu",)) == 0
    before, after = (rows_of(tmp_path / f"{name}.json")[0] for name in ("before", "after"))
    assert before["reply_sha256"] != after["reply_sha256"]


def test_a_conversation_that_does_not_fit_is_said_so(
    tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--model", str(tiny_model), "--max-new-tokens", "16000", "--out", str(tmp_path / "run"))
    assert evaluate(*words, tasks=("relu",)) == 2
    assert "do not fit into the model's 16,384. Lower --max-new-tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--model", "x", "--replies", "y"),
        ("--endpoint", "http://localhost"),
        ("--model", "x", "--batch", "0"),
    ],
)
def test_the_command_line_is_checked(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--out", str(tmp_path / "run")])
    assert stopped.value.code == 2
