"""``TemplateAction``: numbers in the place of text, for agents that choose from the grid of a kernel template."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import MultiDiscrete
from gymnasium.utils import RecordConstructorArgs

from gym_kernel.envs.text_space import KernelText
from gym_kernel.errors import ConfigurationError
from gym_kernel.tasks.task import Task
from gym_kernel.templates import KernelTemplate, load_template, template_names
from gym_kernel.templates.template import Choice

__all__ = ["TemplateAction"]

_NAN = float("nan")
_Action = npt.NDArray[np.int64]


# Gymnasium declares the wrapped env with the outer types, so a wrapper that changes them cannot be written down.
class TemplateAction(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Let an agent choose the parameters of a kernel template instead of writing the kernel.

    The action space is a MultiDiscrete with one entry for each choice of the template (block sizes, warps,
    variants). ``step`` renders the chosen kernel and submits its text; observation and reward are the text
    environment's. :class:`gym_kernel.wrappers.NumericObservation` may go inside or outside of this wrapper, and so
    may :class:`gym_kernel.wrappers.RepairBudget` inside of it.

    Info gains ``choice_<name>`` for each choice: a float for a number (``nan`` after ``reset``), a string for a
    variant (``""`` after ``reset``). The submitted text is :attr:`last_code`.

    Args:
        env: A :class:`~gym_kernel.envs.KernelEnv`, or one under wrappers that leave the action a text.
        template: Name of a built-in template (see :func:`gym_kernel.templates.template_names`), a
            :class:`~gym_kernel.templates.KernelTemplate` of your own, or ``None`` for the template of the task that
            ``reset`` draws. With an object of your own, ``env.spec`` cannot be written as JSON.

    Raises:
        ConfigurationError: ``env`` does not take text, a task has no template, or the tasks' templates have
            different choices, so that there is no one action space.

    Example:
        >>> import gymnasium
        >>> env = TemplateAction(gymnasium.make("gym_kernel:KernelEnv-v0", tasks="softmax", device="cpu"))
        >>> env.action_space
        MultiDiscrete([4 2 2 3])
        >>> env.action_to_values([1, 0, 1, 2])
        {'block': 1024, 'method': 'online', 'last_sweep': 'backward', 'num_warps': 16}
    """

    def __init__(self, env: gym.Env[Any, str], template: str | KernelTemplate | None = None) -> None:
        RecordConstructorArgs.__init__(self, template=template)
        super().__init__(env)
        if not isinstance(env.action_space, KernelText) or not env.has_wrapper_attr("tasks"):
            raise ConfigurationError(
                f"TemplateAction wraps a KernelEnv whose actions are text, not {env}. "
                "Apply it once, after gymnasium.make."
            )
        tasks: tuple[Task, ...] = env.get_wrapper_attr("tasks")
        self._templates = {task.id: _template_for(task, template) for task in tasks}
        self._template = _first_of_one_grid(self._templates)
        self.action_space = MultiDiscrete(np.array(self._template.shape))
        self._last_code = ""

    @property
    def template(self) -> KernelTemplate:
        """The template of the current episode's task; before the first ``reset``, of the first task."""
        return self._template

    @property
    def last_code(self) -> str:
        """The module that the last ``step`` of this episode submitted; ``""`` after ``reset``."""
        return self._last_code

    def action_to_values(self, action: npt.ArrayLike) -> dict[str, Choice]:
        """The values that an action stands for; see :meth:`KernelTemplate.action_to_values`."""
        return self._template.action_to_values(action)

    def values_to_action(self, values: dict[str, Choice]) -> _Action:
        """The action that stands for some values; see :meth:`KernelTemplate.values_to_action`."""
        return self._template.values_to_action(values)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with the template of its task."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._template = self._templates[info["task"]]
        self._last_code = ""
        return observation, {**info, **_nothing_chosen(self._template)}

    def step(self, action: _Action) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Render the chosen kernel and have it judged.

        Args:
            action: One index for each choice, integers of shape ``(len(choices),)``.

        Returns:
            What the text environment returns, with the choices in info.

        Raises:
            ConfigurationError: The action is not in the action space.
        """
        values = self.action_to_values(action)
        self._last_code = self._template.render(**values)
        observation, reward, terminated, truncated, info = self.env.step(self._last_code)
        return observation, reward, terminated, truncated, {**info, **_chosen(values)}


def _template_for(task: Task, template: str | KernelTemplate | None) -> KernelTemplate:
    if isinstance(template, KernelTemplate):
        return template
    if isinstance(template, str):
        return load_template(template)
    if template is not None:
        raise ConfigurationError(f"template must be a name, a KernelTemplate or None, not {template!r}.")
    name = task.template or task.base_id
    if name not in template_names():
        raise ConfigurationError(
            f"The task {task.id!r} has no template of its own. Pass template= with one of "
            f"{', '.join(template_names())}, or a gym_kernel.templates.KernelTemplate."
        )
    return load_template(name)


def _first_of_one_grid(templates: dict[str, KernelTemplate]) -> KernelTemplate:
    (first_id, first), *others = templates.items()
    for task_id, template in others:
        if list(template.choices.items()) != list(first.choices.items()):
            raise ConfigurationError(
                f"The tasks {first_id!r} and {task_id!r} have templates with different choices, so they cannot share "
                f"an action space. Make the environment with one task, for instance tasks={first_id!r}."
            )
    return first


def _nothing_chosen(template: KernelTemplate) -> dict[str, float | str]:
    return {
        f"choice_{name}": "" if isinstance(values[0], str) else _NAN
        for name, values in template.choices.items()
    }


def _chosen(values: dict[str, Choice]) -> dict[str, float | str]:
    return {
        f"choice_{name}": value if isinstance(value, str) else float(value) for name, value in values.items()
    }
