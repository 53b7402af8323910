"""What a forward pass does while it is only compiled for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from gym_kernel.evaluator.dry_run import DryRun

CPU = torch.device("cpu")
LARGE = (512, 1024)


def large() -> Tensor:
    return torch.full(LARGE, 7.0)


COMPUTING: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "add": lambda x: x + 1,
    "in place": lambda x: x.mul_(0),
    "zero_": lambda x: x.zero_(),
    "copy": lambda x: x.clone().t().contiguous(),
    "reduction": lambda x: x.sum(dim=1, keepdim=True),
    "product": lambda x: x @ x.t(),
    "out": lambda x: torch.sub(x, 3, out=torch.empty_like(x)),
    "cast": lambda x: x.half(),
    "norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
}


@pytest.mark.parametrize("name", COMPUTING)
def test_large_work_is_left_out_and_shapes_are_right(name: str) -> None:
    run = COMPUTING[name]
    expected = run(large())
    x = large()
    with torch.no_grad(), DryRun(CPU):
        found = run(x)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.stride() == expected.stride()
    assert found.device == expected.device
    assert torch.equal(x, large())


@pytest.mark.parametrize("make", [torch.zeros, torch.ones, torch.empty, torch.rand])
def test_large_factories_allocate_only(make: Callable[..., Tensor]) -> None:
    before = torch.get_rng_state()
    with DryRun(CPU):
        found = make(LARGE, device=CPU)
    assert found.shape == LARGE
    assert torch.equal(torch.get_rng_state(), before)


def test_nothing_is_filled() -> None:
    buffer = large()
    with DryRun(CPU):
        buffer.fill_(1)
        buffer[3:].zero_()
        buffer.copy_(torch.ones(LARGE))
    assert torch.equal(buffer, large())


def test_views_share_memory() -> None:
    x = large()
    with DryRun(CPU):
        views = [
            x.view(-1),
            x.t(),
            x[3:, ::2],
            *x.chunk(2),
            x.unsqueeze(0).expand(2, -1, -1),
            x.detach(),
            x.reshape(-1, 8),
        ]
    assert {view.untyped_storage().data_ptr() for view in views} == {x.untyped_storage().data_ptr()}
    y = torch.empty(0)
    with DryRun(CPU):
        y.resize_(LARGE)
        y.t_()
    assert y.shape == LARGE[::-1]


def test_small_tables_are_computed_so_that_loops_and_sizes_are_right() -> None:
    with DryRun(CPU):
        lengths = torch.tensor([3, 1, 2], device=CPU)
        starts = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        mask = torch.arange(100, device=CPU) % 2 == 0
        assert starts.tolist() == [0, 3, 4, 6]
        assert int(lengths.max()) == 3
        assert mask.nonzero().shape == (50, 1)
        assert torch.zeros(4, device=CPU).tolist() == [0.0] * 4


def test_what_depends_on_values_is_computed() -> None:
    x = torch.arange(LARGE[0] * LARGE[1])
    with DryRun(CPU):
        assert torch.nonzero(x).numel() == x.numel() - 1
        assert x[5].item() == 5
        assert torch.masked_select(x, x < 3).numel() <= x.numel()


def test_operators_of_a_submission_run() -> None:
    calls = []

    @torch.library.custom_op("dry_run_test::twice", mutates_args=())
    def twice(x: Tensor) -> Tensor:
        calls.append(x.shape)
        return x * 2

    @twice.register_fake
    def _(x: Tensor) -> Tensor:
        return torch.empty_like(x)

    with torch.no_grad(), DryRun(CPU):
        assert twice(large()).shape == LARGE
    assert calls == [LARGE]


def test_tensors_elsewhere_are_computed() -> None:
    with DryRun(torch.device("cuda")):
        assert torch.equal(large() + 1, torch.full(LARGE, 8.0))


@pytest.mark.gpu
def test_on_a_gpu_nothing_large_is_launched() -> None:
    device = torch.device("cuda")
    x = torch.full(LARGE, 7.0, device=device)
    with torch.no_grad(), DryRun(device):
        y = (torch.zeros_like(x) + x.exp_()).cpu()
        host = torch.ones(LARGE).to(device)
    assert y.shape == host.shape == x.shape
    assert host.is_cuda
    assert torch.equal(x.cpu(), large())
