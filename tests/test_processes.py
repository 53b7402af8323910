"""Whose children are found."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from gym_kernel.evaluator.processes import children_of, descendants_of

SLEEP = "import sys; print('up', flush=True); sys.stdin.read()"
NEST = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEP!r}])"


def started(code: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    return child


def test_children_of_every_thread_are_found_and_of_ended_ones() -> None:
    before = set(children_of(os.getpid()))
    children: list[subprocess.Popen[bytes]] = []
    try:
        children.append(started(SLEEP))
        thread = threading.Thread(target=lambda: children.append(started(SLEEP)))
        thread.start()
        thread.join()
        wait = threading.Event()
        forked = threading.Event()

        def fork_and_stay() -> None:
            children.append(started(SLEEP))
            forked.set()
            wait.wait(30)

        staying = threading.Thread(target=fork_and_stay)
        staying.start()
        assert forked.wait(30)
        assert set(children_of(os.getpid())) - before == {child.pid for child in children}
        wait.set()
        staying.join()
    finally:
        for child in children:
            child.communicate()
    assert set(children_of(os.getpid())) == before


def test_descendants_are_children_of_children_too() -> None:
    before = descendants_of(os.getpid())
    child = started(NEST)
    try:
        found = descendants_of(os.getpid()) - before
        assert child.pid in found
        assert len(found) == 2
        assert descendants_of(child.pid) == found - {child.pid}
    finally:
        child.communicate()


def test_a_process_that_is_gone_has_no_children() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert children_of(child.pid) == ()
    assert descendants_of(child.pid) == set()
