"""How much of the machine a submission can use, in each isolation tier."""

from __future__ import annotations

import json
import os

import pytest
from fence_fixtures import ROOT, Fenced, asking, processes_named, wait_until

from gym_kernel.evaluator.fence import Isolation

pytestmark = pytest.mark.own_host


def test_memory_is_bounded(cramped: Fenced) -> None:
    verdict = cramped.run(asking("seen = [bytearray(64 << 20) for _ in range(100)] and time.sleep(20)"))
    assert verdict.status.value == "crashed", verdict.detail
    assert "more than 1.0 GiB of memory" in verdict.detail


def test_memory_of_a_child_counts(cramped: Fenced) -> None:
    body = """
    program = "import time; kept = [bytearray(64 << 20) for _ in range(100)]; time.sleep(20)"
    subprocess.run([sys.executable, "-c", program])
    """
    verdict = cramped.run(asking(body))
    assert verdict.status.value == "crashed", verdict.detail
    assert "more than 1.0 GiB of memory" in verdict.detail


def test_files_in_memory_are_bounded(cramped: Fenced) -> None:
    if cramped.tier is Isolation.PROCESS and not ROOT:
        pytest.skip("an undumpable worker of the same user hides what it holds open from its supervisor")
    body = """
    held = [os.memfd_create(str(n)) for n in range(24)]
    for fd in held:
        os.write(fd, bytes(60 << 20))
    time.sleep(20)
    """
    verdict = cramped.run(asking(body))
    assert verdict.status.value == "crashed", verdict.detail
    assert "more than 1.0 GiB of memory" in verdict.detail


@pytest.mark.parametrize("way", ["files", "deleted files", "many files"])
def test_disk_is_bounded(cramped: Fenced, way: str) -> None:
    if way == "deleted files" and cramped.tier is Isolation.PROCESS and not ROOT:
        pytest.skip("an undumpable worker of the same user hides what it holds open from its supervisor")
    body = """
    kept = []
    seen = 0
    try:
        for n in range(5000 if way == "many files" else 20):
            kept.append(os.open(f"file-{n}", os.O_RDWR | os.O_CREAT))
            if way == "many files":
                os.close(kept.pop())
            else:
                os.write(kept[-1], b"x" * (16 << 20))
            if way == "deleted files":
                os.remove(f"file-{n}")
            seen += 1
        time.sleep(20)
    except OSError as error:
        seen = [seen, error.errno]
    """
    if cramped.tier is Isolation.FULL:
        done, number = cramped.ask(body, way=way)  # type: ignore[misc]
        assert os.strerror(number) == "No space left on device"
        assert done <= (2000 if way == "many files" else 6)
        return
    verdict = cramped.run(asking(body, way=way))
    assert verdict.status.value == "crashed", verdict.detail
    assert "scratch folder" in verdict.detail


def test_one_file_is_bounded(cramped: Fenced) -> None:
    body = """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with open("big", "wb") as file:
            file.truncate(65 << 20)
    except OSError as error:
        seen = error.errno
    """
    assert os.strerror(cramped.ask(body)) == "File too large"  # type: ignore[arg-type]


def test_a_fork_bomb_is_bounded(cramped: Fenced) -> None:
    marker = f"986{os.getpid()}"
    body = """
    started = []
    try:
        while len(started) < 400:
            started.append(subprocess.Popen(["sleep", marker]))
        time.sleep(20)
    except OSError as error:
        seen = [len(started), error.errno]
    """
    verdict = cramped.run(asking(body, marker=marker))
    text = f"{verdict.reason}\n{verdict.detail}"
    if "SEEN" in text:
        assert json.loads(text.split("SEEN")[1].split("NEES")[0])[0] < 150
    else:
        assert "processes and threads" in text
    assert wait_until(lambda: not processes_named(marker))
