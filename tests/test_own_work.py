"""Whose work a call's values are: what the witnesses note, and the rules on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from msgspec.structs import replace

from gym_kernel.evaluator.client import Evaluator, EvaluatorConfig
from gym_kernel.evaluator.own_work import refuse_cpu_work, refuse_work
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.submission import Submission
from gym_kernel.evaluator.work_evidence import Witness
from gym_kernel.evaluator.worker_messages import KernelRecord, Profile, WorkEvidence
from gym_kernel.tasks import load

ROWS = 300


@pytest.fixture(scope="module")
def witness() -> Iterator[Witness]:
    from triton.runtime import interpreter

    memory = interpreter._interpreter
    yield Witness(torch.device("cpu"))
    interpreter._interpreter = memory


@pytest.fixture
def x() -> torch.Tensor:
    return torch.arange(1.0, ROWS * 8 + 1).reshape(ROWS, 8)


@pytest.fixture
def index() -> torch.Tensor:
    return torch.arange(2000).flip(0) % 97


Forward = Callable[..., object]


def evidence_of(witness: Witness, forward: Forward, *arguments: torch.Tensor) -> WorkEvidence:
    """The evidence of one call, whose outputs are what ``forward`` returns."""
    with torch.no_grad(), witness.watch(profiled=True, arguments=arguments) as observation:
        result = forward(*arguments)
        observation.outputs = [result] if isinstance(result, torch.Tensor) else []
    return observation.evidence


BOOKKEEPING: dict[str, Forward] = {
    "argsort": lambda i: torch.argsort(i, stable=True),
    "bincount": lambda i: torch.bincount(i, minlength=100),
    "cumsum": lambda i: torch.cumsum(i, 0),
    "inverse permutation": lambda i: torch.empty_like(i).__setitem__(i.argsort(), i),
    "mask": lambda i: i[i > 3],
    "one_hot": lambda i: torch.nn.functional.one_hot(i % 4),
    "randint": lambda i: torch.randint(0, 5, (3,)),
    "randperm": lambda i: torch.randperm(7),
    "repeat_interleave": lambda i: torch.repeat_interleave(i, i),
    "scatter_add": lambda i: torch.zeros(99, dtype=torch.int64).scatter_add_(0, i, torch.ones_like(i)),
    "unique": lambda i: torch.unique(i, return_inverse=True),
    "filled table": lambda i: torch.cumsum(torch.arange(2000) // 7, 0),
}


@pytest.mark.parametrize("name", list(BOOKKEEPING))
def test_work_on_whole_numbers_is_bookkeeping(witness: Witness, index: torch.Tensor, name: str) -> None:
    evidence = evidence_of(witness, lambda i, _: BOOKKEEPING[name](i), index, torch.ones(64, 1000))
    assert refuse_work(evidence) == ""


@pytest.mark.parametrize("name", ["bincount", "mask", "one_hot", "unique"])
def test_bookkeeping_in_inference_mode(witness: Witness, index: torch.Tensor, name: str) -> None:
    with torch.inference_mode():
        evidence = evidence_of(witness, lambda i, _: BOOKKEEPING[name](i), index, torch.ones(64, 1000))
    assert refuse_work(evidence) == ""


PACKED: dict[str, Forward] = {
    "nibbles": lambda w: torch.stack([w & 15, w >> 4], dim=-1).flatten(-2).to(torch.int8) - 8,
    "zero point": lambda w: w - 8,
    "in another dtype": lambda w: w.to(torch.int32) - 8,
    "in pieces": lambda w: [piece - 8 for piece in w],
    "into a table": lambda w: torch.zeros(w.shape, dtype=torch.int64).copy_(w).sub_(8),
}


@pytest.mark.parametrize("name", list(PACKED))
@pytest.mark.parametrize("rows", [16, 200])
def test_codes_for_weights_are_values(witness: Witness, name: str, rows: int) -> None:
    packed = (torch.arange(60 * 48) % 251).to(torch.uint8).view(60, 48)
    evidence = evidence_of(witness, lambda w, _: PACKED[name](w), packed, torch.ones(rows, 48))
    assert "torch computed values" in refuse_work(evidence)


def test_weights_packed_into_wide_numbers_are_values_too(witness: Witness) -> None:
    packed = torch.arange(4000, dtype=torch.int32).view(40, 100)

    def forward(w: torch.Tensor, x: torch.Tensor) -> object:
        return [(w >> shift) & 15 for shift in range(0, 32, 4)]

    assert "aten::__rshift__" in refuse_work(evidence_of(witness, forward, packed, torch.ones(16, 800)))


def test_codes_may_be_moved_and_compared(witness: Witness) -> None:
    packed = (torch.arange(60 * 48) % 251).to(torch.uint8).view(60, 48)

    def forward(w: torch.Tensor, x: torch.Tensor) -> object:
        return w.t().contiguous(), w.view(torch.int32), w == 3, torch.nn.functional.pad(w, (0, 2)), w[:4] & 15

    assert refuse_work(evidence_of(witness, forward, packed, torch.ones(16, 48))) == ""


def test_whole_numbers_that_are_all_there_is_are_values(witness: Witness, index: torch.Tensor) -> None:
    assert "torch computed values" in refuse_work(evidence_of(witness, torch.bincount, index.repeat(2)))


def test_an_index_into_a_parameter_is_bookkeeping(witness: Witness, index: torch.Tensor) -> None:
    table = torch.nn.Embedding(100, 64)
    with torch.no_grad(), witness.watch(profiled=False, arguments=[index], model=table) as seen:
        torch.argsort(index, stable=True), torch.bincount(index), torch.unique(index)
    assert refuse_work(seen.evidence) == ""


def test_flags_for_every_value_may_be_turned_around(witness: Witness) -> None:
    flags = (torch.arange(6400) % 7 == 0).view(16, 400)
    evidence = evidence_of(witness, lambda f, _: (~f, f.view(torch.uint8)), flags, torch.ones(16, 400))
    assert refuse_work(evidence) == ""


VALUES: dict[str, Forward] = {
    "argmax": lambda x: torch.argmax(x, dim=-1),
    "bits": lambda x: torch.clamp(x.view(torch.int32), min=0),
    "bits through set_": lambda x: torch.clamp(
        torch.empty(0, dtype=torch.int32).set_(x.untyped_storage(), 0, (2400,)), min=0
    ),
    "truncated": lambda x: torch.sort(x.to(torch.int32))[0],
    "copied into whole numbers": lambda x: torch.sort(torch.zeros(x.shape, dtype=torch.int32).copy_(x))[0],
    "rows of bits": lambda x: [torch.sort(row) for row in x.view(torch.int32)],
    "nonzero of a comparison": lambda x: torch.cumsum(x > 3, 0),
}


@pytest.mark.parametrize("name", list(VALUES))
def test_values_as_whole_numbers_are_values(witness: Witness, x: torch.Tensor, name: str) -> None:
    assert "torch computed values" in refuse_work(evidence_of(witness, VALUES[name], x))


def modes_off(x: torch.Tensor) -> torch.Tensor:
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        return torch.relu(x)


def on_a_thread(x: torch.Tensor) -> torch.Tensor:
    found: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: found.append(torch.relu(x)))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("work", [modes_off, on_a_thread])
def test_an_operator_seen_once_does_not_cover_for_another_call(
    witness: Witness, x: torch.Tensor, work: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        torch.relu(torch.ones(2, dtype=torch.int64))
        return work(x)

    evidence = evidence_of(witness, forward, x)
    assert "aten::relu" in evidence.profile.hidden
    assert "aten::relu" in refuse_work(evidence)


def test_small_conversions_add_up(witness: Witness, x: torch.Tensor) -> None:
    import numpy

    assert evidence_of(witness, lambda x: x[:100].tolist(), x).conversions == ()
    assert evidence_of(witness, lambda x: [row.numpy() for row in x], x).conversions == ("Tensor.numpy",)
    taken = evidence_of(witness, lambda x: numpy.from_dlpack(x), x)
    assert taken.conversions == ("Tensor.__dlpack__",)
    assert refuse_cpu_work(replace(taken, stored_elements=1), 0)
    assert evidence_of(witness, lambda x: torch.from_dlpack(x), x).conversions == ()


COPY = KernelRecord("void at::native::elementwise_kernel<direct_copy_kernel_cuda>", 90.0)
SORT = KernelRecord("void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<long>", 90.0)
OWN_KERNEL = KernelRecord("relu_kernel", 10.0)


@pytest.mark.parametrize(
    ("kernels", "own_us", "moved_us", "refused"),
    [
        ((OWN_KERNEL,), 10.0, 0.0, False),
        ((OWN_KERNEL, COPY), 20.0, 80.0, False),
        ((OWN_KERNEL, COPY), 5.0, 95.0, True),
        ((OWN_KERNEL, COPY), 1.0, 15.0, False),
        ((COPY,), 0.0, 95.0, True),
        ((OWN_KERNEL, SORT), 100.0, 0.0, True),
        ((OWN_KERNEL, replace(SORT, bookkeeping=True)), 10.0, 0.0, False),
        ((replace(SORT, bookkeeping=True),), 0.0, 0.0, True),
    ],
)
def test_rules_on_the_kernels_of_a_gpu(
    kernels: tuple[KernelRecord, ...], own_us: float, moved_us: float, refused: bool
) -> None:
    profile = Profile(saw_kernels=True, kernels=kernels, own_us=own_us, moved_us=moved_us)
    assert bool(refuse_work(WorkEvidence(profile=profile))) == refused


@pytest.mark.gpu
def test_kernels_of_bookkeeping_are_told_from_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    witness = Witness(torch.device("cuda"))
    index = torch.arange(100_000, device="cuda").flip(0)
    evidence = evidence_of(witness, lambda i: torch.argsort(i), index)
    assert evidence.profile.kernels
    assert all(kernel.bookkeeping for kernel in evidence.profile.kernels)
    values = torch.rand(100_000, device="cuda")
    evidence = evidence_of(witness, lambda x: torch.sort(x)[0], values)
    assert not any(kernel.bookkeeping for kernel in evidence.profile.kernels)


HEAD = """
import torch, triton
import triton.language as tl

@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.load(x + o, mask=o < n), mask=o < n)

@triton.jit
def nothing(y, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(y + o, 0.0, mask=o < 0)

@triton.jit
def gather(x, i, y, D, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    tl.store(y + r * D + o, tl.load(x + tl.load(i + r) * D + o, mask=o < D), mask=o < D)

class ModelNew(torch.nn.Module):
"""
ON_TASKS = {
    "argmax by torch": (
        "row_argmax_fp16",
        """
    def forward(self, x):
        found = torch.argmax(x, dim=-1)
        y = torch.empty_like(found)
        copy[(1,)](found, y, y.numel(), BLOCK=1024)
        return y
""",
        Status.CHEATING,
    ),
    "sort by torch, of bits": (
        "sort_rows",
        """
    def forward(self, x):
        k = x.view(torch.int32)
        k = torch.where(k == -2147483648, 0, k)
        k = torch.where(k < 0, k ^ 0x7FFFFFFF, k)
        k, order = torch.sort(k, dim=-1, stable=True)
        v = torch.where(k < 0, k ^ 0x7FFFFFFF, k).view(torch.float32)
        order = order.int()
        y, places = torch.empty_like(v), torch.empty_like(order)
        copy[(16,)](v, y, v.numel(), BLOCK=4096)
        copy[(16,)](order, places, v.numel(), BLOCK=4096)
        return y, places
""",
        Status.CHEATING,
    ),
    "gather by torch.stack": (
        "gather_rows",
        """
    def forward(self, x, index):
        rows = x.unbind(0)
        y = torch.stack([rows[i] for i in index.tolist()])
        nothing[(1,)](y, BLOCK=8192)
        return y
""",
        Status.CHEATING,
    ),
    "gather beside work on the index": (
        "gather_rows",
        """
    def forward(self, x, index):
        order = torch.argsort(index, stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(order.numel(), device=order.device)
        torch.bincount(index), torch.unique(index), index[index > 3], index.max().item()
        y = torch.empty(index.numel(), x.shape[1], dtype=x.dtype, device=x.device)
        gather[(index.numel(),)](x, index[order][inverse], y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
""",
        Status.CORRECT,
    ),
}


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    evaluator = Evaluator(EvaluatorConfig(device="cpu", timeout_s=30.0))
    yield evaluator
    evaluator.close()


@pytest.mark.parametrize("name", list(ON_TASKS))
def test_whole_submissions(evaluator: Evaluator, name: str) -> None:
    task, code, status = ON_TASKS[name]
    verdict = evaluator.evaluate(Submission(load(task)[0], HEAD + code.lstrip("\n")))
    assert verdict.status is status, (verdict.reason, verdict.detail)


class Meddling(torch.nn.Module):
    """Keeps a table of whole numbers, and has code where a harness might look for it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(2000))
        self.meddled = False

    def buffers(self, recurse: bool = True) -> Iterator[torch.Tensor]:
        self.meddled = True
        return super().buffers(recurse)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(self.table, 0)


def test_tables_of_the_model_are_known_without_running_its_code(witness: Witness) -> None:
    model = torch.nn.Sequential(Meddling())
    with (
        torch.no_grad(),
        witness.watch(profiled=False, arguments=[torch.ones(64, 1000)], model=model) as seen,
    ):
        model(torch.ones(1))
    assert refuse_work(seen.evidence) == ""
    assert not model[0].meddled
    with torch.no_grad(), witness.watch(profiled=False, arguments=[torch.ones(64, 1000)]) as seen:
        model(torch.ones(1))
    assert "aten::cumsum" in refuse_work(seen.evidence)
