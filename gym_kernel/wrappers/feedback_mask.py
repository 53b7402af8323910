"""``FeedbackMask``: the conversation as tokens, and which of them the policy sampled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, SupportsFloat

import gymnasium as gym
from gymnasium.spaces import Text
from gymnasium.utils import RecordConstructorArgs

from gym_kernel.errors import ConfigurationError
from gym_kernel.transcripts import Owner, SampledReply, Segment, token_ids_and_mask
from gym_kernel.wrappers.byte_tokenizer import ByteTokenizer
from gym_kernel.wrappers.chat_format import conversation_format
from gym_kernel.wrappers.text_codec import TextCodec
from gym_kernel.wrappers.wrapper_order import MASK_INSIDE_BUDGET, check_no_autoreset, layers

__all__ = ["FeedbackMask"]

_UNRECORDED = "<a tokenizer object, which a specification cannot hold>"


class FeedbackMask(gym.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Keep each episode as tokens, and say which of them the policy sampled: only those belong in its loss.

    Observations, rewards and ends are those of ``env``. Beside them grows a transcript of
    :class:`~gym_kernel.transcripts.Segment`: the prompt, each reply, each feedback. Tokens are only ever
    appended. Before each ``step``, ``token_ids`` is what the policy is to continue.

    Hand in replies as :class:`~gym_kernel.transcripts.SampledReply`, with the tokens that were sampled. They are
    kept as they are, whether or not the tokenizer would write the text so. A plain ``str`` works too, and is
    encoded once.

    With a chat template, prompt and feedback are user messages, and everything that the template adds belongs to
    the environment: roles, headers, and an end-of-turn token that the policy did not sample. Without one, prompt,
    replies and feedback follow each other with nothing in between; no token for the beginning of the text is
    added.

    Info gains ``transcript_tokens`` and ``policy_tokens``, counts of this episode. The transcript of the episode
    that last ended stays in ``last_episode`` when a vector environment resets in the same step:
    ``envs.get_attr("last_episode")``.

    Args:
        env: A :class:`~gym_kernel.envs.kernel_env.KernelEnv` or a :class:`~gym_kernel.wrappers.RepairBudget`.
            Wrappers that change the text go inside, so that the transcript has what the policy sees.
        tokenizer: The policy's: an object with ``encode`` and ``decode``, such as Hugging Face's; a ``str``, the
            name or folder of one for ``transformers.AutoTokenizer``; or ``None`` for one token a byte of UTF-8. A
            specification (``env.spec``) holds only the latter two; ``gymnasium.make`` refuses that of an object.
        chat_template_kwargs: More variables for the chat template, for instance ``{"enable_thinking": False}``.

    Raises:
        ConfigurationError: ``env`` does not observe text, has a ``FeedbackMask`` or gymnasium's ``Autoreset``
            already, the tokenizer is none, adds tokens to each text, pads or
            truncates, or its chat template fails.

    Example:
        >>> import gymnasium
        >>> env = FeedbackMask(gymnasium.make("gym_kernel:KernelEnv-v0", device="cpu"))
        >>> env.token_ids, env.loss_mask
        ([], [])
    """

    def __init__(
        self,
        env: gym.Env[str, str],
        tokenizer: Any = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(env.observation_space, Text) or not isinstance(env.action_space, Text):
            raise ConfigurationError(
                f"FeedbackMask wraps an environment of text, not {env}. "
                "Apply it after RepairBudget and before wrappers that change actions or observations."
            )
        if any(isinstance(layer, FeedbackMask) for layer in layers(env)):
            raise ConfigurationError(
                "This environment has a FeedbackMask already, whose transcript is the one to train on. Wrap it once: "
                "FeedbackMask(RepairBudget(env), tokenizer)."
            )
        check_no_autoreset(env, "FeedbackMask")
        RecordConstructorArgs.__init__(
            self,
            tokenizer=tokenizer if tokenizer is None or isinstance(tokenizer, str) else _UNRECORDED,
            chat_template_kwargs=None if chat_template_kwargs is None else dict(chat_template_kwargs),
        )
        super().__init__(env)
        tokenizer = _loaded(tokenizer)
        self._codec = TextCodec(tokenizer)
        self._format = conversation_format(self._codec, tokenizer, chat_template_kwargs or {})
        self._segments: tuple[Segment, ...] = ()
        self._last_episode: tuple[Segment, ...] = ()

    @property
    def segments(self) -> tuple[Segment, ...]:
        """This episode so far, in order; empty before the first ``reset``."""
        return self._segments

    @property
    def token_ids(self) -> list[int]:
        """All tokens of this episode so far."""
        return token_ids_and_mask(self._segments)[0]

    @property
    def loss_mask(self) -> list[int]:
        """As long as ``token_ids``: 1 where the policy sampled the token, 0 where it was given."""
        return token_ids_and_mask(self._segments)[1]

    @property
    def last_episode(self) -> tuple[Segment, ...]:
        """Segments of the episode that last ended, or that a ``reset`` cut short; empty before there is one."""
        return self._last_episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode and its transcript."""
        prompt, info = self.env.reset(seed=seed, options=options)
        if any(segment.owner is Owner.POLICY for segment in self._segments):
            self._last_episode = self._segments
        self._segments = (self._format.opening(prompt),)
        return prompt, self._counted(info)

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        """Judge one submission, and append it and its feedback.

        Args:
            action: A :class:`~gym_kernel.transcripts.SampledReply`, or a plain ``str``.

        Raises:
            ConfigurationError: ``action`` is not a ``str``, or its token ids are not the tokenizer's.
            ResetNeeded: The episode is over, or none has begun.
        """
        if not isinstance(action, str):
            raise ConfigurationError(
                f"An action is a str, not {type(action).__name__}. To hand in tokens, pass "
                "gym_kernel.transcripts.SampledReply(text, token_ids)."
            )
        if isinstance(action, SampledReply):
            self._codec.check_known(action.token_ids)
            reply = self._codec.sampled(action.token_ids)
        else:
            reply = self._codec.segment(Owner.POLICY, action)
        observation, reward, terminated, truncated, info = self.env.step(str(action))
        if terminated or truncated:
            self._segments += (reply, self._format.closing(reply, observation))
            self._last_episode = self._segments
        else:
            self._segments += (reply, self._format.between(reply, observation))
        return observation, reward, terminated, truncated, self._counted(info)

    def continue_episode(self) -> NoReturn:
        """Refuse: a wrapper that grants turns from outside would end its notes past the transcript.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(MASK_INSIDE_BUDGET)

    def _counted(self, info: dict[str, Any]) -> dict[str, Any]:
        loss_mask = self.loss_mask
        return {**info, "transcript_tokens": len(loss_mask), "policy_tokens": sum(loss_mask)}


def _loaded(tokenizer: Any) -> Any:
    if tokenizer is None:
        return ByteTokenizer()
    if not isinstance(tokenizer, str):
        return tokenizer
    if tokenizer == _UNRECORDED:
        raise ConfigurationError(
            "This specification is of a FeedbackMask round a tokenizer object, which it cannot hold. Make the "
            "environment without it and wrap it again: FeedbackMask(env, tokenizer)."
        )
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise ConfigurationError(
            f"Loading the tokenizer {tokenizer!r} takes transformers: pip install gym-kernel[trl], or pass the "
            "tokenizer itself."
        ) from error
    return AutoTokenizer.from_pretrained(tokenizer)
