"""Sampling from the trainer's model, with the log-probability of each token that was sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from gym_kernel.errors import ConfigurationError

__all__ = ["Sample", "sample"]


@dataclass(frozen=True)
class Sample:
    """One reply of the policy.

    Attributes:
        token_ids: Ids as sampled, with the one that ended the reply, if any.
        logprobs: For each id its log-probability at the trainer's temperature.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]


def sample(trainer: Any, prompts: Sequence[Sequence[int]]) -> list[Sample]:
    """Sample one reply to each prompt, as the trainer is configured: with vLLM, or with transformers.

    In a distributed run each process must call this equally often, as its model's parameters may be spread.

    Args:
        trainer: A ``GRPOTrainer``.
        prompts: Token ids of each prompt.

    Returns:
        A reply for each prompt, at least one token long. Log-probabilities of transformers leave truncation by
        ``top_k``, ``top_p`` and ``min_p`` out of account, as TRL's own do.

    Raises:
        ConfigurationError: The trainer samples in a way that this cannot follow.
    """
    if trainer.use_vllm:
        # TRL has synchronised the weights before it called the rollout function.
        _, ids, logprobs, _ = trainer.vllm_generation.generate(
            prompts=[list(prompt) for prompt in prompts], images=None, num_generations=1
        )
        # vLLM gives the alternatives of each position; the first is the token sampled.
        return [Sample(tuple(i), tuple(each[0] for each in p)) for i, p in zip(ids, logprobs, strict=True)]
    if trainer.is_fsdp_enabled or trainer.use_transformers_continuous_batching:
        raise ConfigurationError(
            "The rollout function samples with vLLM or with plain transformers. With FSDP, or with "
            "use_transformers_continuous_batching=True, set GRPOConfig(use_vllm=True) or use environment_factory."
        )
    return _with_transformers(trainer, prompts)


def _with_transformers(trainer: Any, prompts: Sequence[Sequence[int]]) -> list[Sample]:
    from trl.models import unwrap_model_for_generation

    config = trainer.generation_config
    recorder = _Recorder(config.temperature or 1.0)
    inputs = _left_padded(prompts, config.pad_token_id, trainer.accelerator.device)
    with (
        torch.no_grad(),
        unwrap_model_for_generation(
            trainer.model_wrapped,
            trainer.accelerator,
            gather_deepspeed3_params=trainer.args.ds3_gather_for_generation,
            generation_kwargs=trainer.generation_kwargs,
            gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
        ) as model,
    ):
        output = model.generate(
            **inputs,
            generation_config=config,
            logits_processor=LogitsProcessorList([recorder]),
            stopping_criteria=StoppingCriteriaList([_TellLastToken(recorder)]),
        )
    ids = output[:, inputs["input_ids"].shape[1] :].tolist()
    logprobs = recorder.logprobs().tolist()
    return [_until_end(i, p, trainer.eos_token_ids) for i, p in zip(ids, logprobs, strict=True)]


def _left_padded(
    prompts: Sequence[Sequence[int]], pad_id: int, device: torch.device
) -> dict[str, torch.Tensor]:
    """Input ids and attention mask, int64 of shape (prompts, longest)."""
    longest = max(map(len, prompts))
    ids = [[pad_id] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return {
        "input_ids": torch.tensor(ids, device=device),
        "attention_mask": torch.tensor(mask, device=device),
    }


def _until_end(ids: list[int], logprobs: list[float], end_ids: Sequence[int]) -> Sample:
    """Cut what pads a reply that ended before the longest of its batch."""
    length = next((place + 1 for place, each in enumerate(ids) if each in end_ids), len(ids))
    return Sample(tuple(ids[:length]), tuple(logprobs[:length]))


class _Recorder(LogitsProcessor):
    """Keeps the log-probability of each sampled token.

    ``generate(output_logits=True)`` would keep the whole vocabulary at every step: 20 GB for 16 replies of 2,048
    tokens. The distribution of a step is held until its token is known, and then dropped.
    """

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature
        self._pending: torch.Tensor | None = None
        self._sampled: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Note the distribution of the next token; it is left as it is."""
        self._pending = torch.log_softmax(scores.float() / self._temperature, dim=-1)
        return scores

    def tell(self, input_ids: torch.Tensor) -> None:
        """The last column of ``input_ids`` was sampled from the distribution noted last."""
        if self._pending is not None:
            self._sampled.append(self._pending.gather(1, input_ids[:, -1:]))
            self._pending = None

    def logprobs(self) -> torch.Tensor:
        """Float32 of shape (replies, longest reply)."""
        return torch.cat(self._sampled, dim=1)


class _TellLastToken(StoppingCriteria):
    """Stops nothing. It is what ``generate`` calls right after a token is sampled."""

    def __init__(self, recorder: _Recorder) -> None:
        self._recorder = recorder

    def __call__(self, input_ids: torch.LongTensor, scores: Any, **_: Any) -> torch.BoolTensor:
        self._recorder.tell(input_ids)
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)  # type: ignore[return-value]
