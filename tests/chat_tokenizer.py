"""A real byte-level tokenizer, trained in a moment, and what a chat model samples with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium
import pytest

from gym_kernel.transcripts import SampledReply

__all__ = ["CHATML", "hugging_face", "play", "sampled", "train"]

# Tool messages look like the user's, as in Qwen's templates.
CHATML = (
    "{%- for message in messages %}"
    "{{ '<|im_start|>' + ('user' if message.role == 'tool' else message.role) + '\n' }}"
    "{{ message.content + '<|im_end|>\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{%- if enable_thinking is defined and not enable_thinking %}{{ '<think></think>' }}{%- endif %}{%- endif %}"
)


def train(texts: Iterable[str]) -> Any:
    """Byte-level BPE of the library ``tokenizers``, with ChatML's special tokens; skips where that is missing."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def hugging_face(trained: Any, chat_template: str | None) -> Any:
    """The same as a fast tokenizer of ``transformers``; skips where that is missing."""
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = chat_template
    return tokenizer


def sampled(tokenizer: Any, text: str) -> SampledReply:
    """What a chat model samples for a text: its tokens and the end of its turn."""
    return SampledReply(text, [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id])


def play(env: gymnasium.Env[Any, Any], replies: Iterable[str]) -> list[str]:
    """Begin an episode and reply to it; returns its observations."""
    observations = [env.reset()[0]]
    observations += [env.step(reply)[0] for reply in replies]
    return observations
