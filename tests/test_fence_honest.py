"""What honest submissions do goes on inside every isolation tier."""

from __future__ import annotations

import time

import pytest
from fence_fixtures import KERNELS, Fenced, asking


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
