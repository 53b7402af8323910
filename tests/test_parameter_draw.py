"""Parameters drawn for an evaluation: anew for every seed, alike in all models, and no further than the task bears."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from gym_kernel.evaluator.evaluation_seed import SeedSequence
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.evaluator.parameter_draw import Liberty, ParameterDraw
from gym_kernel.evaluator.reference_bench import ReferenceBench
from gym_kernel.linter.workbench import lint_device
from gym_kernel.tasks import load


class Small(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(4)
        self.weight = torch.nn.Parameter(torch.rand(300, 40, generator=generator) + 0.5)
        self.bias = torch.nn.Parameter(torch.zeros(40))
        self.gain = torch.nn.Parameter(torch.ones(40))
        self.tied = self.gain
        self.temperature = torch.nn.Parameter(torch.tensor(2.0))
        self.register_buffer("running_mean", torch.zeros(40))
        self.register_buffer("running_var", torch.ones(40))
        self.register_buffer("mask", torch.tril(torch.ones(6, 6)))
        self.register_buffer("unreachable", torch.tensor([0.0, -torch.inf]))
        self.register_buffer("scale", torch.tensor(0.125))
        self.register_buffer("steps", torch.tensor([3, 4]))


def state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> set[str]:
    return {name for name, tensor in first.items() if torch.equal(tensor, second[name])}


def test_a_seed_gives_the_same_values_again_and_another_seed_others() -> None:
    model = Small()
    draw = ParameterDraw([model])
    draw.draw(1)
    first = state(model)
    draw.draw(2)
    other = state(model)
    draw.draw(1)
    assert same(state(model), first) == set(first)
    assert same(other, first) == {"mask", "unreachable", "scale", "steps"}


def test_values_lose_what_constructors_give_away() -> None:
    model = Small()
    before = state(model)
    ParameterDraw([model]).draw(1)
    after = state(model)
    assert (after["weight"] < 0).any()
    assert ((after["weight"] < 0).double().mean() < 0.05).item()
    assert (after["gain"] < 0).any()
    assert len(after["gain"].unique()) == len(after["bias"].unique()) == 40
    assert 0.05 < after["bias"].std() < 1
    size = after["weight"].abs() / before["weight"]
    assert 0.0 < size.amin() < 0.7
    assert 1.4 < size.amax() < 2.5


def test_signs_stay_where_another_may_be_out_of_the_domain() -> None:
    model = Small()
    draw = ParameterDraw([model])
    for seed in range(20):
        draw.draw(seed)
        drawn = state(model)
        assert 1 <= drawn["temperature"] <= 3
        assert drawn["running_var"].amin() > 0
        assert drawn["running_mean"].amin() >= 0
        assert drawn["running_mean"].unique().numel() > 1


def test_a_stored_variance_is_near_zero_in_all_channels_alike() -> None:
    model = Small()
    draw = ParameterDraw([model])
    assert draw.liberty is Liberty.NEAR_ZERO
    for seed in range(20):
        draw.draw(seed)
        drawn = state(model)["running_var"]
        assert 1e-3 <= drawn.amin() < drawn.amax() <= 3e-3
        # An epsilon that is missing, or another one, changes every channel's output by more than float16 rounds off.
        assert ((drawn + 1e-5).rsqrt() / drawn.rsqrt() < 1 - 1.5e-3).all()


def test_two_stored_variances_stay_as_large_as_they_are() -> None:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(40), torch.nn.BatchNorm1d(40))
    draw = ParameterDraw([model])
    assert draw.liberty is Liberty.FULL
    draw.draw(1)
    assert model[0].running_var.amin() >= 0.5
    assert model[1].running_var.amin() >= 0.5


def test_a_tensor_of_two_names_is_drawn_once() -> None:
    model = Small()
    ParameterDraw([model]).draw(7)
    assert model.tied is model.gain
    twice = Small()
    twice.tied = torch.nn.Parameter(torch.ones(40))
    ParameterDraw([twice]).draw(7)
    assert not torch.equal(twice.tied, twice.gain)


def test_other_precisions_hold_the_rounded_values_of_the_first_model() -> None:
    model, exact = Small().bfloat16(), Small().bfloat16().double()
    ParameterDraw([model, exact]).draw(3)
    for name, tensor in model.state_dict().items():
        assert torch.equal(exact.state_dict()[name], tensor.to(exact.state_dict()[name].dtype))


def test_models_of_other_parameters_forbid_a_draw() -> None:
    model = Small()
    before = state(model)
    draw = ParameterDraw([model, torch.nn.Linear(3, 4)])
    draw.draw(1)
    assert draw.liberty is Liberty.NONE
    assert same(state(model), before) == set(before)


@pytest.mark.parametrize(
    ("acceptable", "liberty"),
    [
        (lambda model: True, Liberty.NEAR_ZERO),
        (lambda model: bool((model.running_var > 0.1).all()), Liberty.FULL),
        (lambda model: bool((model.weight > 0).all()), Liberty.SIZE),
        (lambda model: torch.equal(model.weight, Small().weight), Liberty.NONE),
    ],
)
def test_the_draw_goes_as_far_as_is_acceptable(acceptable, liberty) -> None:
    model = Small()
    before = state(model)
    draw = ParameterDraw([model])
    draw.settle(lambda: acceptable(model))
    assert draw.liberty is liberty
    assert same(state(model), before) == set(before)
    draw.draw(1)
    assert acceptable(model)


def test_the_seed_of_parameters_is_the_evaluations_own() -> None:
    assert SeedSequence(5).parameters == SeedSequence(5).parameters
    assert SeedSequence(5).parameters != SeedSequence(6).parameters
    first, second = SeedSequence(5), SeedSequence(5)
    assert first.parameters not in {second.next() for _ in range(20)}


SOURCE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        return x * {expression}

def get_inputs():
    return [torch.rand(32, 64)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def benches() -> Callable[[str], ReferenceBench]:
    device = lint_device("cpu")

    def made(expression: str) -> ReferenceBench:
        task = replace(
            load("relu")[0],
            id="scaled",
            source=SOURCE.format(expression=expression),
            alternatives=(),
            shapes=(),
            sizes={},
        )
        return ReferenceBench(task, device.facts, device.ceilings, device.arenas)

    return made


@pytest.mark.parametrize(
    ("expression", "negative"),
    [("self.weight", True), ("self.weight.sqrt()", False), ("self.weight.log()", False)],
)
def test_a_reference_that_takes_a_root_of_its_weights_keeps_their_signs(
    benches, expression, negative
) -> None:
    bench = benches(expression)
    constructed = bench.parameter_values()["weight"].clone()
    drawn = bench.draw_parameters(9)["weight"]
    assert not torch.equal(drawn, constructed)
    assert bool((drawn < 0).any()) is negative
    inputs = bench.new_input_set()
    bench.write_inputs(inputs, InputKind.OFFICIAL, 1)
    assert bench.errors.at(InputKind.OFFICIAL, inputs, bench.expected(inputs)) is not None
