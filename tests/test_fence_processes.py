"""Processes of a submission in any isolation tier: it may have some, they end with it, and it cannot end others'."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from pathlib import Path

import pytest
from fence_fixtures import KERNELS, Fenced, asking, fenced_by, processes_named, require, wait_until

from gym_kernel.evaluator import client
from gym_kernel.evaluator.fence import Isolation
from gym_kernel.evaluator.processes import descendants_of, process_is_alive
from gym_kernel.evaluator.verdict import Verdict

pytestmark = pytest.mark.own_host


def test_subprocesses_temporary_files_and_threads_work(fenced: Fenced) -> None:
    seen = fenced.ask(
        """
        import tempfile
        from concurrent.futures import ThreadPoolExecutor
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.py")
            open(path, "w").write("print(6 * 7)")
            answer = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=30).stdout.strip()
        here = tempfile.gettempdir().startswith(os.getcwd())
        x = torch.rand(1 << 21)
        with ThreadPoolExecutor(4) as pool:
            sums = list(pool.map(lambda _: float(torch.sin(x).sum()), range(4)))
        shell = subprocess.run("echo $HOME | cat", shell=True, capture_output=True, text=True).stdout.strip()
        y = torch.mm(torch.rand(300, 300), torch.rand(300, 300)).sum().item() > 0
        seen = [answer, here, len(set(sums)), shell == os.environ["HOME"], y]
        """
    )
    assert seen == ["42", True, 1, True, True]


def test_processes_of_its_own_work(fenced: Fenced) -> None:
    seen = fenced.ask(
        """
        r, w = os.pipe()
        if os.fork() == 0:
            os.write(w, b"from a child")
            os._exit(0)
        os.wait()
        seen = os.read(r, 100).decode()
        """
    )
    assert seen == "from a child"


def test_the_worker_is_what_the_system_would_kill_for_memory(fenced: Fenced) -> None:
    assert fenced.ask("seen = open('/proc/self/oom_score_adj').read().strip()") == "1000"


def test_an_exit_is_reported_as_it_was(fenced: Fenced) -> None:
    ends = {
        "os.kill(os.getpid(), signal.SIGKILL)": "SIGKILL",
        "os.abort()": "SIGABRT",
        "ctypes.string_at(0)": "SIGSEGV",
        "os.killpg(0, signal.SIGKILL)": "SIGKILL",
        "os._exit(37)": "code 37",
    }
    for end, words in ends.items():
        started = time.monotonic()
        verdict = fenced.run(asking(end))
        assert verdict.status.value == "crashed", verdict.detail
        assert words in verdict.reason
        assert time.monotonic() - started < 5


@pytest.mark.slow
def test_an_extension_can_be_built(fenced: Fenced) -> None:
    verdict = fenced.run((KERNELS / "cpp" / "mingpt_gelu.py").read_text(), "mingpt_gelu")
    assert verdict.status.value == "correct", f"{verdict.reason}\n{verdict.detail}"


def test_no_signal_to_host_judge_caller_or_siblings(fenced: Fenced) -> None:
    host, judge, siblings = fenced.host, fenced.judge, sorted(fenced.siblings)
    seen = fenced.ask(
        """
        seen = []
        libc = ctypes.CDLL(None, use_errno=True)
        for pid in set(others) - {os.getpid()}:
            # Its own group it may well kill, itself included.
            for action in (os.kill,) if pid == os.getpgid(0) else (os.kill, os.killpg):
                try:
                    action(pid, 9)
                except OSError:
                    continue
                seen.append([action.__name__, pid])
            try:
                signal.pidfd_send_signal(os.pidfd_open(pid), 9)
            except OSError:
                pass
            else:
                seen.append(["pidfd", pid])
            if libc.syscall(tgkill, pid, pid, 9) == 0 or libc.syscall(tkill, pid, 9) == 0:
                seen.append(["tgkill", pid])
            try:
                import resource
                resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1))
            except OSError:
                pass
            else:
                seen.append(["prlimit", pid])
        try:
            if os.getppid() > 1:
                os.kill(os.getppid(), 9)
                seen.append("parent")
        except OSError:
            pass
        try:
            os.kill(-1, 9)
        except OSError:
            pass
        """,
        others=[host, judge, os.getpid(), *siblings],
        tgkill={"x86_64": 234, "aarch64": 131}[platform.machine()],
        tkill={"x86_64": 200, "aarch64": 130}[platform.machine()],
    )
    assert seen == []
    assert process_is_alive(host)
    assert fenced.judge == judge
    assert fenced.run((KERNELS / "relu.py").read_text()).status.value == "correct"
    assert fenced.judge == judge


def test_nothing_survives(fenced: Fenced) -> None:
    marker = f"987{os.getpid()}"
    fenced.ask(
        """
        subprocess.Popen(["sleep", marker], start_new_session=True)
        subprocess.Popen(["setsid", "sh", "-c", f"nohup sleep {marker} & (sleep {marker} &)"])
        threading.Thread(target=lambda: subprocess.Popen(["sleep", marker])).start()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for number in (1, 2, 3, 13, 15):
                    signal.signal(number, signal.SIG_IGN)
                for fd in range(3, 100):
                    try:
                        os.close(fd)
                    except OSError:
                        pass
                os.execvp("sleep", ["sleep", marker])
            os._exit(0)
        time.sleep(0.3)
        seen = "started"
        """,
        marker=marker,
    )
    assert wait_until(lambda: not processes_named(marker)), processes_named(marker)


@pytest.mark.parametrize("tier", list(Isolation), ids=lambda tier: tier.value)
def test_nothing_survives_a_host_that_was_killed(
    tier: Isolation, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require(tier)
    monkeypatch.setattr(client, "_TRIES", 1)
    marker = f"985{os.getpid()}"
    with fenced_by(tier, open_folder) as fenced:
        family = descendants_of(fenced.host)
        body = """
        subprocess.Popen(["setsid", "sh", "-c", f"nohup sleep {marker} & (sleep {marker} &)"])
        time.sleep(60)
        """
        verdicts: list[Verdict] = []
        caller = threading.Thread(target=lambda: verdicts.append(fenced.run(asking(body, marker=marker))))
        caller.start()
        assert wait_until(lambda: len(processes_named(f"sleep\0{marker}")) == 2)
        family |= descendants_of(fenced.host)
        os.kill(fenced.host, signal.SIGKILL)
        assert wait_until(lambda: not any(map(process_is_alive, family)))
        caller.join(20)
        assert verdicts[0].status.value == "infrastructure_error"
        assert wait_until(lambda: not processes_named(marker))
