"""What each isolation tier keeps a submission from, tried by submissions in real workers."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import socket
import tempfile
from pathlib import Path

import pytest
from fence_fixtures import (
    KERNELS,
    ROOT,
    SECRET,
    Fenced,
)

from gym_kernel.evaluator import client
from gym_kernel.evaluator.fence import Isolation

pytestmark = pytest.mark.own_host


def test_the_verdict_names_the_tier(fenced: Fenced) -> None:
    verdict = fenced.run((KERNELS / "relu.py").read_text())
    assert verdict.status.value == "correct", verdict.detail
    assert verdict.isolation == fenced.tier.value


def test_no_memory_and_no_environment_of_other_processes(fenced: Fenced) -> None:
    others = {fenced.host, fenced.judge, *fenced.siblings}
    if ROOT or fenced.tier is not Isolation.PROCESS:
        # An ordinary user's worker without Landlock is to the kernel just another process of that user.
        others.add(os.getpid())
    seen = fenced.ask(
        """
        libc = ctypes.CDLL(None, use_errno=True)
        class Vector(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
        seen = []
        into = ctypes.create_string_buffer(8)
        for pid in set(others) - {os.getpid(), os.getppid()}:
            for name in ("mem", "environ", "maps", "auxv", "syscall", "stack"):
                try:
                    with open(f"/proc/{pid}/{name}", "rb") as file:
                        if name == "mem" or file.read(1):
                            seen.append([pid, name])
                except OSError:
                    pass
            for name in ("cwd", "exe", "root", *(f"fd/{number}" for number in range(40))):
                try:
                    seen.append([pid, name, os.readlink(f"/proc/{pid}/{name}")])
                except OSError:
                    pass
            local, remote = Vector(ctypes.addressof(into), 8), Vector(address, 8)
            for call in (libc.process_vm_readv, libc.process_vm_writev):
                if call(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) >= 0:
                    seen.append([pid, "process_vm"])
            if libc.ptrace(16, pid, 0, 0) == 0:
                seen.append([pid, "ptrace"])
        """,
        others=sorted(others),
        address=ctypes.addressof(ctypes.c_long()),
    )
    assert seen == []


def test_no_environment_of_anybody_who_can_be_seen(fenced: Fenced) -> None:
    if fenced.tier is Isolation.PROCESS and not ROOT:
        pytest.skip(
            "the process tier does not keep an ordinary user's worker from that user's other processes"
        )
    seen = fenced.ask(
        """
        seen = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) != os.getpid():
                try:
                    if open(f"/proc/{pid}/environ", "rb").read(1):
                        seen.append(pid)
                except OSError:
                    pass
        """
    )
    assert seen == []


def test_only_the_processes_of_the_worker_are_visible_in_its_own_namespace(fenced: Fenced) -> None:
    if fenced.tier is not Isolation.FULL:
        pytest.skip("only the full tier has a pid namespace")
    assert fenced.ask("seen = sorted(int(n) for n in os.listdir('/proc') if n.isdigit())") == [1, 2]


def test_the_callers_environment_stays_behind(fenced: Fenced) -> None:
    seen = fenced.ask(
        """
        seen = [os.environ["HOME"].startswith(os.getcwd())]
        seen += [name for name in os.environ if "TOKEN" in name or "PYTEST" in name]
        """
    )
    assert seen == [True]


def test_no_write_outside_the_scratch_folder(fenced: Fenced) -> None:
    name = f"written-by-{fenced.tier.value}-{os.getpid()}"
    package = Path(client.__file__).parent
    places = [
        fenced.base, fenced.base / "home", fenced.base / "records", Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"),
        package, Path(os.__file__).parent, Path("/etc"), Path("/run"), Path("/"),
    ]  # fmt: skip
    if fenced.tier is Isolation.PROCESS:
        # What it does not stop is where its user may write anyway.
        places = [place for place in places if ROOT and not place.stat().st_mode & 0o002]
    seen = fenced.ask(
        """
        seen = []
        for place in places:
            for action in (lambda path: open(path, "w").write("x"), os.mkdir, lambda path: os.symlink("/", path)):
                try:
                    action(os.path.join(place, name))
                except OSError:
                    continue
                seen.append(place)
        """,
        places=[str(place) for place in places],
        name=name,
    )
    # In the full tier that is a file system of the worker's own.
    assert seen == (["/dev/shm"] if fenced.tier is Isolation.FULL else [])
    assert not [place for place in places if os.path.lexists(place / name)]


def test_files_of_others_cannot_be_changed_or_removed(fenced: Fenced) -> None:
    if fenced.tier is Isolation.PROCESS:
        pytest.skip("the process tier does not restrict files beyond their permissions")
    target = fenced.base / "home" / "secret"
    target.chmod(0o666)
    seen = fenced.ask(
        """
        seen = []
        tries = {
            "append": lambda: open(target, "a"), "truncate": lambda: os.truncate(target, 0),
            "remove": lambda: os.remove(target), "rename": lambda: os.rename(target, target + "2"),
            "link": lambda: os.link(target, os.path.join(os.getcwd(), "link")),
        }
        for name, action in tries.items():
            try:
                action()
            except OSError:
                continue
            seen.append(name)
        """,
        target=str(target),
    )
    assert seen == []
    assert target.read_text() == SECRET


def test_no_read_of_the_callers_home_or_records_or_of_other_workers_folders(fenced: Fenced) -> None:
    if fenced.tier is Isolation.PROCESS:
        pytest.skip("the process tier does not restrict files beyond their permissions")
    (fenced.base / "records" / "old.jsonl").write_text(SECRET)
    seen = fenced.ask(
        """
        seen = []
        for path in files:
            try:
                seen.append([path, open(path).read()])
            except OSError:
                pass
        for path in (*folders, os.path.dirname(os.getcwd())):
            try:
                seen.append([path, os.listdir(path)])
            except OSError:
                pass
        """,
        files=[
            str(fenced.base / "home" / "secret"),
            str(fenced.base / "records" / "old.jsonl"),
            "/etc/shadow",
        ],
        folders=[
            str(fenced.base / "home"),
            str(fenced.base / "records"),
            tempfile.gettempdir(),
            "/root",
            "/home",
        ],
    )
    assert seen == []


def test_no_network_and_no_sockets_of_others(fenced: Fenced) -> None:
    tcp, udp, abstract, named, datagram = (
        socket.create_server(("127.0.0.1", 0)),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        socket.socket(socket.AF_UNIX),
        socket.socket(socket.AF_UNIX),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
    )
    listeners = (tcp, udp, abstract, named, datagram)
    path = fenced.base / f"socket-{fenced.tier.value}"
    try:
        udp.bind(("127.0.0.1", 0))
        abstract.bind(f"\0gym-kernel-test-{os.getpid()}-{fenced.tier.value}")
        named.bind(str(path))
        datagram.bind(f"{path}-datagram")
        for bound in (path, Path(f"{path}-datagram")):
            bound.chmod(0o777)
        for listener in (abstract, named):
            listener.listen()
        for listener in listeners:
            listener.setblocking(False)
        seen = fenced.ask(
            """
            seen = []
            def attempt(name, action):
                try:
                    action()
                except OSError:
                    return
                seen.append(name)
            def through(address, kind=socket.SOCK_STREAM, family=socket.AF_UNIX):
                with socket.socket(family, kind) as sock:
                    sock.settimeout(1)
                    if kind == socket.SOCK_DGRAM:
                        sock.sendto(b"x", address)
                    else:
                        sock.connect(address)
            attempt("tcp", lambda: through(("127.0.0.1", tcp), family=socket.AF_INET))
            attempt("udp", lambda: through(("127.0.0.1", udp), socket.SOCK_DGRAM, socket.AF_INET))
            attempt("tcp6", lambda: through(("::1", tcp), family=socket.AF_INET6))
            attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
            attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
            attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
            attempt("abstract", lambda: through(abstract))
            attempt("named", lambda: through(named))
            attempt("datagram", lambda: through(datagram, socket.SOCK_DGRAM))
            attempt("pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", datagram))
            """,
            tcp=tcp.getsockname()[1],
            udp=udp.getsockname()[1],
            abstract=abstract.getsockname().decode(),
            named=str(path),
            datagram=f"{path}-datagram",
        )
        assert seen == []
        for listener in (udp, datagram):
            with pytest.raises(BlockingIOError):
                listener.recv(1)
        for listener in (tcp, abstract, named):
            with pytest.raises(BlockingIOError):
                listener.accept()
    finally:
        for listener in listeners:
            listener.close()


def test_only_the_expected_descriptors_are_inherited(fenced: Fenced) -> None:
    seen = fenced.ask("seen = {n: os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') "
                      "if os.path.exists(f'/proc/self/fd/{n}')}")  # fmt: skip
    assert isinstance(seen, dict)
    assert seen.pop("0") == "/dev/null"
    assert seen.pop("1").startswith("pipe:")
    assert seen.pop("2").startswith("pipe:")
    sockets = [link for link in seen.values() if link.startswith("socket:")]
    assert len(sockets) == 1
    # Libraries open pipes and the like for themselves; what another process has open was inherited.
    others = {link for pid in (os.getpid(), fenced.host, fenced.judge) for link in open_files(pid)}
    shared = {link for link in set(seen.values()) & others if not link.startswith("anon_inode:")}
    assert shared <= {"/dev/null", "/dev/urandom"}


def open_files(pid: int) -> list[str]:
    folder = Path(f"/proc/{pid}/fd")
    found = []
    for entry in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(entry))
    return found


def test_privileged_calls_are_refused(fenced: Fenced) -> None:
    seen = fenced.ask(
        """
        libc = ctypes.CDLL(None, use_errno=True)
        here = os.getcwd().encode()
        tries = {
            "unshare user": lambda: libc.unshare(0x10000000), "unshare mount": lambda: libc.unshare(0x20000),
            "clone user": lambda: libc.syscall(clone, 0x10000000 | 17, 0, 0, 0, 0),
            "mount": lambda: libc.mount(b"none", here, b"tmpfs", 0, None),
            "umount": lambda: libc.umount2(b"/proc", 2), "chroot": lambda: libc.chroot(here),
            "setuid": lambda: libc.setuid(0 if os.getuid() else 1),
            "setgid": lambda: libc.setgid(0 if os.getgid() else 1),
            "setgroups": lambda: libc.setgroups(1, (ctypes.c_uint * 1)(0)),
            "mknod": lambda: libc.mknod(here + b"/device", 0o020666, 0x101),
            "keyctl": lambda: libc.syscall(keyctl, 0, -3, 0), "sethostname": lambda: libc.sethostname(b"x", 1),
            "shmget": lambda: libc.shmget(0, 4096, 0o1600), "clear pdeathsig": lambda: libc.prctl(1, 0, 0, 0, 0),
        }
        seen = [name for name, action in tries.items() if action() != -1]
        """,
        clone={"x86_64": 56, "aarch64": 220}[platform.machine()],
        keyctl={"x86_64": 250, "aarch64": 219}[platform.machine()],
    )
    assert seen == []
