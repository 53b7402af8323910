"""The device lane is exclusive and fair, between threads and between processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from gym_kernel.evaluator.lane import Lane

HOLD_S = 0.02
GREEDY = f"""
import sys, time
from pathlib import Path
from gym_kernel.evaluator.lane import Lane

lane = Lane(Path(sys.argv[1]))
while True:
    with lane.hold():
        print("held", flush=True)
        time.sleep({HOLD_S})
"""


def test_a_process_that_takes_the_lane_again_at_once_starves_nobody(tmp_path: Path) -> None:
    path = tmp_path / "gpu.lock"
    with subprocess.Popen([sys.executable, "-c", GREEDY, path], stdout=subprocess.PIPE, text=True) as greedy:
        try:
            assert greedy.stdout is not None
            assert greedy.stdout.readline() == "held\n"
            lane = Lane(path)
            for _ in range(5):
                with lane.hold():
                    pass
        finally:
            greedy.kill()
        holds = len(greedy.stdout.readlines())
    # It may hold the lane when we ask, and once more each time if it is quicker to the turnstile.
    assert holds <= 2 * 5 + 2


def test_one_holds_the_lane_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "gpu.lock"
    lanes = [Lane(path), Lane(path)]
    inside, most = 0, 0
    mutex = threading.Lock()

    def use(lane: Lane) -> None:
        nonlocal inside, most
        for _ in range(5):
            with lane.hold():
                with mutex:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.005)
                with mutex:
                    inside -= 1

    threads = [threading.Thread(target=use, args=(lane,)) for lane in lanes * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == 1


def test_a_holder_that_is_killed_leaves_the_lane(tmp_path: Path) -> None:
    path = tmp_path / "gpu.lock"
    with subprocess.Popen([sys.executable, "-c", GREEDY, path], stdout=subprocess.PIPE, text=True) as greedy:
        assert greedy.stdout is not None
        greedy.stdout.readline()
        greedy.kill()
    taken = threading.Event()

    def take() -> None:
        with Lane(path).hold():
            taken.set()

    threading.Thread(target=take, daemon=True).start()
    assert taken.wait(10)
