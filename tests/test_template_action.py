"""Kernel templates and ``TemplateAction``, with the real evaluator on the CPU."""

from __future__ import annotations

import ast
import math
import pickle
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from small_tasks import with_rows

from gym_kernel import ConfigurationError
from gym_kernel.tasks import Domain, Task, TaskScale, Tolerance, load
from gym_kernel.templates import KernelTemplate, load_template, template_names
from gym_kernel.wrappers import NumericObservation, RepairBudget, TemplateAction

pytestmark = pytest.mark.usefixtures("warm_evaluator")

PILOT = [task.id for task in load("pilot")]
# Few programs, so that Triton's interpreter is quick.
QUICK = {"block": 4096, "blocks_per_program": 4, "num_warps": 4}
QUICK_ROWS = {"block": 1024, "method": "online", "last_sweep": "forward", "num_warps": 4}

MATMUL = Task(
    id="product",
    suite="mine",
    title="Matrix product",
    source="""
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b

rows = 1024
inner = 1024
columns = 1024

def get_inputs():
    return [torch.rand(rows, inner), torch.rand(inner, columns)]

def get_init_inputs():
    return []
""",
    sizes={TaskScale.SMALL: {"rows": 70, "inner": 50, "columns": 100}},
    domains=(Domain(), Domain()),
    tolerance=Tolerance(reduction_length=1024),
)

RELU = KernelTemplate(
    "my_relu",
    """
import torch
import triton
import triton.language as tl

# Costs $$0.
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, ${formula}, mask=offsets < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), $block),)](x, y, x.numel(), $block)
        return y
""",
    {"block": (4096, 16384), "formula": ("tl.where(x < 0.0, 0.0, x)", "tl.abs(x)", "tl.no_such_thing(x)")},
)


def play(env: gymnasium.Env, **values: Any) -> dict[str, Any]:
    env.reset()
    return env.step(env.get_wrapper_attr("values_to_action")(values))[4]


@pytest.mark.parametrize("name", template_names())
def test_every_combination_is_a_module_and_has_one_action(name: str) -> None:
    template = load_template(name)
    actions = list(template.actions())
    assert 24 <= len(actions) == len(template) <= 64
    sources = set()
    for action in actions:
        values = template.action_to_values(action)
        assert template.values_to_action(values).tolist() == action.tolist()
        source = template.render(**values)
        ast.parse(source)
        assert "$" not in source
        sources.add(source)
    assert len(sources) == len(actions)


def test_every_pilot_task_has_a_template() -> None:
    assert set(PILOT) <= set(template_names())


@pytest.mark.parametrize("task", PILOT)
def test_a_template_solves_its_task(make_env: Any, task: str) -> None:
    env = TemplateAction(make_env(tasks=with_rows(task, 16)))
    info = play(env, **(QUICK_ROWS if "softmax" in task else QUICK))
    assert info["status"] == "correct", env.last_code


@pytest.mark.parametrize("method", ["online", "two_sweeps"])
@pytest.mark.parametrize("last_sweep", ["forward", "backward"])
def test_every_variant_of_the_row_kernel_is_correct(make_env: Any, method: str, last_sweep: str) -> None:
    env = TemplateAction(make_env(tasks=with_rows("softmax", 16)))
    # Four blocks a row, the last one with a tail.
    info = play(env, block=256, method=method, last_sweep=last_sweep, num_warps=4)
    assert info["status"] == "correct", env.last_code


@pytest.mark.parametrize(
    "tile", [{"block_m": 32, "block_n": 64, "block_k": 16}, {"block_m": 128, "block_n": 128, "block_k": 32}]
)
def test_matmul_is_correct_with_tails_on_every_side(make_env: Any, tile: dict[str, int]) -> None:
    env = TemplateAction(make_env(tasks=MATMUL), template="matmul")
    info = play(env, **tile, num_warps=4, num_stages=2)
    assert info["status"] == "correct", env.last_code


def test_the_choice_is_rendered_submitted_and_reported(make_env: Any) -> None:
    env = TemplateAction(make_env(render_mode="ansi"))
    assert env.action_space == gymnasium.spaces.MultiDiscrete([4, 2, 4])
    prompt, before = env.reset()
    assert "ReLU" in prompt
    assert env.last_code == ""
    assert math.isnan(before["choice_block"])

    feedback, reward, terminated, truncated, info = env.step(np.array([2, 1, 3]))
    assert (info["status"], terminated, truncated) == ("correct", True, False), feedback
    assert reward == info["reward"] > 0.3
    choices = {name: value for name, value in info.items() if name.startswith("choice_")}
    assert choices == {"choice_block": 4096.0, "choice_blocks_per_program": 4.0, "choice_num_warps": 16.0}
    assert env.last_code == env.template.render(block=4096, blocks_per_program=4, num_warps=16)
    assert env.last_code.strip() in env.render()

    env.reset()
    assert env.last_code == ""


def test_infos_have_the_same_keys_and_types(make_env: Any) -> None:
    env = TemplateAction(make_env(tasks=with_rows("softmax", 16)))
    infos = [env.reset()[1], env.step(env.values_to_action(QUICK_ROWS))[4]]
    assert len({tuple((key, type(value)) for key, value in info.items()) for info in infos}) == 1
    assert [info["choice_method"] for info in infos] == ["", "online"]


def test_what_cannot_work_is_judged(make_env: Any) -> None:
    env = TemplateAction(make_env(), template=RELU)
    statuses = []
    for formula in range(3):
        env.reset()
        _, reward, terminated, _, info = env.step([0, formula])
        statuses.append(info["status"])
        assert terminated
        assert (reward > 0) == (info["status"] == "correct")
    assert statuses[:2] == ["correct", "incorrect"]
    assert statuses[2] in ("compile_error", "runtime_error")
    assert "Costs $0." in env.last_code


def test_tasks_that_share_choices_share_an_action_space(make_env: Any) -> None:
    env = TemplateAction(make_env(tasks=["relu", "tanh"]))
    for task in ("tanh", "relu"):
        env.reset(options={"task": task})
        info = env.step(env.values_to_action(QUICK))[4]
        assert (info["task"], info["status"], env.template.name) == (task, "correct", task)


def test_tasks_of_different_choices_are_refused(make_env: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"'relu' and 'softmax' .* tasks='relu'"):
        TemplateAction(make_env(tasks=["relu", "softmax"]))


def test_a_task_without_a_template_says_what_to_pass(make_env: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"'product' has no template of its own\. Pass template="):
        TemplateAction(make_env(tasks=MATMUL))
    with pytest.raises(ConfigurationError, match="no kernel template 'relus'"):
        TemplateAction(make_env(), template="relus")
    with pytest.raises(ConfigurationError, match="must be a name"):
        TemplateAction(make_env(), template=3)


def test_only_text_environments_are_wrapped(make_env: Any) -> None:
    for env in (gymnasium.make("CartPole-v1"), TemplateAction(make_env())):
        with pytest.raises(ConfigurationError, match="actions are text"):
            TemplateAction(env)


@pytest.mark.parametrize("action", [[0, 0], [0, 0, 4], [-1, 0, 0], [0.0, 0.0, 0.0], 1, "relu"])
def test_actions_outside_of_the_space_are_refused(make_env: Any, action: Any) -> None:
    env = TemplateAction(make_env())
    env.reset()
    with pytest.raises(ConfigurationError, match="template 'relu'"):
        env.step(action)


def test_repairs_may_be_granted_on_either_side(make_env: Any) -> None:
    for env in (TemplateAction(RepairBudget(make_env())), RepairBudget(TemplateAction(make_env()))):
        action = env.get_wrapper_attr("values_to_action")(QUICK)
        env.reset()
        assert env.step(action)[2] is False
        _, _, terminated, _, info = env.step(action)
        assert terminated is True
        assert (info["turn"], info["choice_block"]) == (2, 4096.0)


def test_numbers_may_be_observed_on_either_side(make_env: Any) -> None:
    inside = TemplateAction(NumericObservation(make_env()))
    outside = NumericObservation(TemplateAction(make_env()))
    assert inside.action_space == outside.action_space
    assert inside.observation_space == outside.observation_space
    for env in (inside, outside):
        env.reset()
        observation, *_, info = env.step(inside.values_to_action(QUICK))
        assert observation in env.observation_space
        assert info["choice_block"] == 4096.0
        assert info["text"].startswith("Verdict: correct")


def test_vector_environments_batch_the_choices(make_env: Any) -> None:
    envs = SyncVectorEnv([lambda: NumericObservation(TemplateAction(make_env()))] * 2)
    envs.reset(seed=0)
    observations, rewards, *_, infos = envs.step(np.array([[2, 1, 0], [3, 1, 0]]))
    assert observations.shape == (2, 10)
    assert (rewards > 0.3).all()
    assert infos["choice_block"].tolist() == [4096.0, 16384.0]
    assert all(text.startswith("Verdict: correct") for text in infos["text"])


def test_check_env_finds_nothing(make_env: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Said of every wrapped environment, whatever the wrapper does.
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version.*")
        check_env(TemplateAction(make_env(), template=RELU))


@pytest.mark.parametrize("template", [None, "softmax"])
def test_the_spec_survives_json(make_env: Any, template: str | None) -> None:
    env = TemplateAction(make_env(tasks="softmax"), template=template)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, TemplateAction)
    assert again.spec == env.spec
    assert again.template == env.template
    again.close()


def test_templates_are_values() -> None:
    template = load_template("softmax")
    assert pickle.loads(pickle.dumps(template)) == template
    assert hash(template) == hash(load_template("softmax"))
    assert template != load_template("log_softmax")


def test_values_are_checked() -> None:
    template = load_template("relu")
    with pytest.raises(ConfigurationError, match=r"block of the template 'relu' is one of 256, .* not 100"):
        template.render(block=100, blocks_per_program=1, num_warps=4)
    with pytest.raises(ConfigurationError, match="takes a value for each of block"):
        template.render(block=256)


@pytest.mark.parametrize(
    ("source", "choices", "complaint"),
    [
        ("x", {}, "no choices"),
        ("$a", {"a": ()}, "at least one"),
        ("$a", {"a": (1, "x")}, "different whole numbers"),
        ("$a", {"a": (1, 1)}, "different whole numbers"),
        ("$a", {"a": (True, False)}, "different whole numbers"),
        ("$a $b", {"a": (1, 2)}, "the placeholders a, b, but the choices are a"),
        ("x", {"a": (1, 2)}, "the placeholders none"),
        ("$a costs $ 5", {"a": (1, 2)}, r"\$\$"),
    ],
)
def test_templates_are_checked(source: str, choices: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        KernelTemplate("toy", source, choices)
