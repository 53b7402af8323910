"""What a task's module is told when it cannot be set up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gym_kernel.errors import TaskError
from gym_kernel.evaluator.reference_bench import ReferenceBench
from gym_kernel.linter.workbench import lint_device
from gym_kernel.tasks import load
from gym_kernel.tasks.task import Domain

SOURCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()

def get_inputs():
    return {inputs}

def get_init_inputs():
    return {arguments}
"""


def bench(inputs: str = "[torch.rand(4, 8)]", arguments: str = "[]", domains: int = 0) -> ReferenceBench:
    device = lint_device("cpu")
    task = replace(
        load("relu")[0],
        source=SOURCE.format(inputs=inputs, arguments=arguments),
        domains=(Domain(),) * domains,
        shapes=(),
        sizes={},
    )
    return ReferenceBench(task, device.facts, device.ceilings, device.arenas)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"inputs": "torch.rand(4, 8)"}, r"get_inputs\(\) .* must return a list .* not Tensor: return \[x\]"),
        ({"inputs": "None"}, r"get_inputs\(\) .* must return a list .* not NoneType"),
        ({"arguments": "{}"}, r"get_init_inputs\(\) .* not dict: return \[\] where there are none"),
        ({"inputs": "1 / 0"}, r"get_inputs\(\) of task 'relu' fails: ZeroDivisionError"),
        ({"domains": 2}, r"declares 2 domains, but get_inputs returns 1 tensor; declare one domain for each"),
    ],
)
def test_a_module_that_cannot_be_set_up_is_told_why(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        bench(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("inputs", ["[torch.rand(4, 8)]", "(torch.rand(4, 8),)"])
def test_a_list_and_a_tuple_will_do(inputs: str) -> None:
    assert bench(inputs).arguments[0].slot is not None
