"""Rollouts for ``GRPOTrainer(rollout_func=...)``: a batch of episodes, judged at once."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gymnasium.vector import AutoresetMode

from gym_kernel.envs.vector_env import KernelVectorEnv
from gym_kernel.errors import ConfigurationError
from gym_kernel.integrations.trl.context import Context
from gym_kernel.integrations.trl.episode import Episode
from gym_kernel.integrations.trl.prompts import Message, task_of, with_observation

if TYPE_CHECKING:
    from gym_kernel.integrations.trl.conversation import Chat, Conversation

__all__ = ["KernelRollout", "rollout_func"]


class KernelRollout:
    """What :func:`rollout_func` makes: called by TRL with prompts and trainer, it plays an episode for each prompt.

    Its environments are made at the first call and kept; ``close()``, or dropping it, lets go of them.

    Args:
        turns: Submissions an episode.
        max_context_tokens: Longest prompt with completion; ``None`` takes the model's own limit.
        env_kwargs: Arguments of :class:`~gym_kernel.envs.vector_env.KernelVectorEnv`.
    """

    def __init__(self, turns: int, max_context_tokens: int | None, env_kwargs: dict[str, Any]) -> None:
        self._turns = turns
        self._max_context_tokens = max_context_tokens
        self._env_kwargs = {**env_kwargs, "turns": turns, "autoreset_mode": AutoresetMode.DISABLED}
        # By number and size of group: training and evaluation may differ in either, and closing the one would stop
        # the other's evaluator.
        self._envs: dict[tuple[int, int], KernelVectorEnv] = {}

    def __call__(self, prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
        """Play an episode for each prompt.

        Args:
            prompts: Chat messages that name a task, each repeated ``num_generations`` times, or
                ``num_generations_eval`` times in an evaluation, as TRL gives them.
            trainer: The ``GRPOTrainer``.

        Returns:
            Lists with an entry for each prompt: ``prompt_ids``; ``completion_ids``, all replies with the feedback
            between them; ``logprobs``, 0 for tokens of feedback; ``env_mask``, 1 for sampled tokens, 0 for others;
            and, for the reward function, ``episode``, an
            :class:`~gym_kernel.integrations.trl.episode.Episode`.

        Raises:
            ConfigurationError: A prompt names no task or leaves no room for a reply, or the trainer samples in a
                way that is not supported.
            TaskError: A task is none of those that the rollout function was made for.
            EvaluatorError: The evaluator could not be started.
        """
        # These import torch and transformers, which whoever calls this has done already.
        from gym_kernel.integrations.trl.conversation import Chat
        from gym_kernel.integrations.trl.generation import sample

        tasks = [task_of(prompt) for prompt in prompts]
        envs = self._environments(tasks, trainer)
        context = Context.of(trainer, self._max_context_tokens)
        rollouts = _begin(envs, prompts, tasks, Chat(trainer), context)
        for turn in range(self._turns):
            playing = [place for place, each in enumerate(rollouts) if each.open]
            # Sampling is a collective operation in a distributed run, so a turn without episodes has it as well.
            samples = sample(trainer, [rollouts[place].token_ids for place in playing or [0]])
            if not playing:
                continue
            replies = dict(zip(playing, samples, strict=True))
            for place, reply in replies.items():
                rollouts[place].add_reply(reply)
            texts = {place: rollouts[place].chat.text(reply) for place, reply in replies.items()}
            feedback = _judge(envs, rollouts, texts)
            for place in playing:
                if rollouts[place].open and turn + 1 < self._turns:
                    rollouts[place].add_feedback(feedback[place], context)
        prompt_ids, completion_ids, env_mask = zip(*(each.split() for each in rollouts), strict=True)
        return {
            "prompt_ids": list(prompt_ids),
            "completion_ids": list(completion_ids),
            "logprobs": [each.logprobs for each in rollouts],
            "env_mask": list(env_mask),
            "episode": [each.episode for each in rollouts],
        }

    def close(self) -> None:
        """Close the environments; a second call does nothing. The next rollout makes them again."""
        for envs in self._envs.values():
            envs.close()
        self._envs.clear()

    def _environments(self, tasks: Sequence[str], trainer: Any) -> KernelVectorEnv:
        key = (len(tasks), _group_size(tasks, trainer))
        if key not in self._envs:
            # A group stays on one device, so that the times that are compared come from the same GPU.
            self._envs[key] = KernelVectorEnv(key[0], groups=key[1], **self._env_kwargs)
            weakref.finalize(self, self._envs[key].close)
        return self._envs[key]


def rollout_func(
    tasks: Any = "pilot",
    device: Any = "auto",
    turns: int = 2,
    discount: float = 0.4,
    max_context_tokens: int | None = None,
    **env_kwargs: Any,
) -> KernelRollout:
    """Make what ``GRPOTrainer(rollout_func=...)`` takes; pair it with ``reward_funcs=[kernel_return]``.

    Each reply is sampled with the trainer's model and settings, up to ``max_completion_length`` tokens, or
    ``generation_kwargs={"max_new_tokens": n}`` (vLLM: ``"max_tokens"``). A completion holds the replies of all
    turns and the feedback between them, so it may be longer than ``max_completion_length``, which TRL still uses
    as the constant of the ``dr_grpo`` loss: set it to the length of a whole episode. Sampled ids go to the trainer
    as they are; text is made of them only for the judge.

    Args:
        tasks: As for :class:`~gym_kernel.envs.kernel_env.KernelEnv`; the prompts' tasks must be among them.
        device: As for :class:`~gym_kernel.envs.vector_env.KernelVectorEnv`. Give evaluation GPUs that the trainer
            does not use; ``"auto"`` takes every GPU that is visible.
        turns: Submissions an episode.
        discount: Weight of each submission's reward relative to the one before it.
        max_context_tokens: An episode ends early where another whole reply would not fit into this many tokens,
            and a prompt must leave room for one; ``None`` takes the limit of the model.
        **env_kwargs: Everything else that ``KernelVectorEnv`` takes.

    Returns:
        A callable for TRL, with ``close()``.

    Raises:
        ConfigurationError: An argument is out of its domain.
        TaskError: ``tasks`` names something that does not exist.

    Example:
        >>> rollout = rollout_func(tasks="pilot/train", device="cpu", turns=2)
        >>> rollout.close()
    """
    if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1:
        raise ConfigurationError(f"turns must be a whole number of submissions, at least 1, not {turns!r}.")
    if max_context_tokens is not None and (
        not isinstance(max_context_tokens, int)
        or isinstance(max_context_tokens, bool)
        or max_context_tokens < 1
    ):
        raise ConfigurationError(
            "max_context_tokens must be a whole number of tokens, at least 1, or None for the limit of the model, "
            f"not {max_context_tokens!r}."
        )
    env_kwargs = {**env_kwargs, "tasks": tasks, "device": device, "discount": discount}
    # A wrong argument is told here, not in the middle of the first update. This starts nothing.
    KernelVectorEnv(1, turns=turns, **env_kwargs).close()
    return KernelRollout(turns, max_context_tokens, env_kwargs)


def _group_size(tasks: Sequence[str], trainer: Any) -> int:
    """The trainer's group size, or, where a process has only parts of groups, the largest that divides them."""
    wanted = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
    runs = (len(list(run)) for _, run in itertools.groupby(tasks))
    return math.gcd(wanted, *runs)


def _begin(
    envs: KernelVectorEnv,
    prompts: Sequence[list[Message]],
    tasks: Sequence[str],
    chat: Chat,
    context: Context,
) -> list[Conversation]:
    from gym_kernel.integrations.trl.conversation import Conversation

    observations, _ = envs.reset(options={"tasks": list(tasks)})
    rollouts = [
        Conversation(chat, Episode(task), [chat.opening(with_observation(prompt, observation))])
        for prompt, observation, task in zip(prompts, observations, tasks, strict=True)
    ]
    for each in rollouts:
        tokens = len(each.token_ids)
        if not context.has_room_after(tokens):
            raise ConfigurationError(
                f"The prompt of task {each.episode.task} has {tokens:,} tokens and a reply has up to "
                f"{context.reply_tokens:,}, but prompt and reply together may have {context.most_tokens:,}. Allow "
                "shorter replies, with GRPOConfig(generation_kwargs={'max_new_tokens': n}) (vLLM: 'max_tokens'), "
                "take a model with a longer context or raise max_context_tokens, or leave the task out."
            )
    return rollouts


def _judge(envs: KernelVectorEnv, rollouts: list[Conversation], texts: dict[int, str]) -> tuple[str, ...]:
    """Judge all replies at once and note what became of them; returns the feedback of every environment."""
    # An environment whose rollout is over gets an empty reply, which is refused without being run.
    replies = [texts.get(place, "") for place in range(len(rollouts))]
    feedback, _, terminated, truncated, infos = envs.step(replies)
    for place in texts:
        info = {key: infos[key][place] for key in ("status", "reward", "speedup", "episode_return")}
        rollouts[place].episode = rollouts[place].episode.after(info)
        rollouts[place].open = not (terminated[place] or truncated[place])
    finished = terminated | truncated
    if finished.any() and any(each.open for each in rollouts):
        # The others play on, and a vector environment steps all of its environments or none.
        envs.reset(options={"reset_mask": finished, "tasks": [each.episode.task for each in rollouts]})
    return feedback
