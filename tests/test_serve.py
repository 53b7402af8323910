"""``gym-kernel serve`` as a command: what it refuses, what it leaves behind."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from serving import GOOD, HANGING, ROOT, Server, serving, survivors, wait_for_sleeper

from gym_kernel.cli import main

pytest.importorskip("openenv.core", reason="needs the extra [openenv]")
pytest.importorskip("uvicorn")

from gym_kernel.integrations.openenv import KernelAction, KernelClient


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "relux"], "Did you mean 'relu'"),
        (["--device", "tpu"], "'tpu'"),
        (["--device", "cuda:99"], "cuda:99"),
        (["--isolation", "none"], "none"),
        (["--timeout", "0"], "timeout_s"),
        (["--turns", "0"], "turns"),
        (["--discount", "2"], "discount"),
        (["--max-sessions", "0"], "max_sessions"),
        (["--port", "70000"], "from 0 to 65535"),
        (["--port", "-1"], "from 0 to 65535"),
        (["--host", "192.0.2.1"], "192.0.2.1"),
        (["--record-dir", "/proc/records"], "record_dir"),
    ],
)
def test_what_cannot_be_met_is_said_in_a_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--port", "0", "--device", "cpu", *words]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.timeout(60)
def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--port", port, "--device", "cpu"]) == 2
    assert f"Cannot listen on 127.0.0.1 port {port}" in capsys.readouterr().err


def test_without_openenv_the_extra_is_named() -> None:
    code = "import sys; sys.modules['openenv'] = None; from gym_kernel.cli import main; sys.exit(main(['serve']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 2
    assert "pip install gym-kernel[openenv]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_other_commands_do_not_import_openenv() -> None:
    code = "import sys; from gym_kernel.cli import main; main(['tasks']); sys.exit('openenv' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60, cwd=ROOT)


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGTERM, 0, marks=pytest.mark.slow), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_an_idle_server_leaves_no_process(tmp_path: Path, number: int, code: int) -> None:
    with serving(tmp_path, "--tasks", "relu") as server:
        with KernelClient(server.url).sync() as client:
            client.reset()
            family = server.family
            assert family
            # The session is still open.
            assert server.end(number) == code, server.log()
        assert not survivors(family)
        assert list(server.temporary.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_server_that_is_judging_leaves_no_process(tmp_path: Path, number: int, code: int) -> None:
    seconds = "975"
    errors: list[Exception] = []

    def submit(url: str) -> None:
        with KernelClient(url).sync() as client:
            client.reset()
            try:
                client.step(KernelAction(code=HANGING.format(seconds=seconds)))
            except Exception as error:
                errors.append(error)

    with serving(tmp_path, "--tasks", "relu") as server:
        thread = threading.Thread(target=submit, args=(server.url,), daemon=True)
        thread.start()
        sleeper = wait_for_sleeper(server, seconds)
        family = server.family
        assert sleeper in family
        assert server.end(number) == code, server.log()
        assert not survivors(family)
        assert list(server.temporary.iterdir()) == []
        # The client is told and does not wait for an answer that will never come.
        thread.join(30)
        assert len(errors) == 1


def test_a_server_that_is_starting_leaves_no_process(tmp_path: Path) -> None:
    server = Server(tmp_path, "--tasks", "relu")
    try:
        while not (family := server.family):
            assert server.process.poll() is None, server.log()
        assert server.end() == 0, server.log()
        assert not survivors(family)
        assert "Traceback" not in server.log()
    finally:
        server.close()


def test_options_reach_the_environment(tmp_path: Path) -> None:
    records = tmp_path / "records"
    options = (
        "--tasks",
        "tanh",
        "relu",
        "--turns",
        "1",
        "--record-dir",
        str(records),
        "--isolation",
        "process",
    )
    with serving(tmp_path, *options) as server:
        with KernelClient(server.url).sync() as client:
            assert client.reset(task="relu").observation.turns_left == 1
            result = client.step(KernelAction(code=GOOD))
            assert (result.observation.correct, result.done) == (True, True)
            assert result.observation.isolation == "process"
            with pytest.raises(RuntimeError, match="It has tanh, relu"):
                client.reset(task="swish")
        assert server.end() == 0
    (line,) = (records / "evaluations.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["evaluation_id"] == result.observation.evaluation_id
