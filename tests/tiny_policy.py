"""A causal model so small that a test trains it in seconds, which nevertheless writes whole kernels.

Its vocabulary holds pieces of words, the marks of ChatML and, as one token each, a few complete replies. Its weights
are set so that it samples one of the replies at the start of a turn and then ends the turn. Which one is left to
training.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import trl
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import gym_kernel

GOOD = (Path(__file__).parents[1] / "examples" / "kernels" / "relu.py").read_text(encoding="utf-8")
WRONG = GOOD.replace("tl.where(x < 0.0, 0.0, x)", "tl.abs(x)")
NO_KERNEL = "x = 1"

END = "<|im_end|>"
_HIDDEN = 32
# How far a token is above all others in the logits where the weights want it.
_PUSH = 3.0


def in_a_fence(code: str) -> str:
    """A reply in plain text."""
    return f"Here it is.\n\n```python\n{code}\n```"


def in_a_tool_call(code: str) -> str:
    """A reply that calls the tool ``submit``, in the format of the Qwen models."""
    call = json.dumps({"name": "submit", "arguments": {"code": code}})
    return f"<tool_call>\n{call}\n</tool_call>"


def make_tokenizer(replies: Sequence[str]) -> PreTrainedTokenizerFast:
    """Pieces of bytes learnt from the wording of prompts and feedback, ChatML's marks, each reply as one token."""
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1_000,
        special_tokens=["<|pad|>", "<|im_start|>", END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    wording = (Path(gym_kernel.__file__).parent / "envs").glob("*.py")
    pieces.train_from_iterator([each.read_text(encoding="utf-8") for each in sorted(wording)], trainer)
    pieces.add_tokens([AddedToken(reply, normalized=False) for reply in replies])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, eos_token=END, pad_token="<|pad|>")
    template = Path(trl.__file__).parent / "chat_templates" / "qwen2_5.jinja"
    tokenizer.chat_template = template.read_text(encoding="utf-8")
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast, replies: Sequence[str]) -> LlamaForCausalLM:
    """Two layers, hidden size 32, about 90,000 parameters."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=_HIDDEN,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=16_384,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config)
    ids = reply_ids(tokenizer, replies)
    with torch.no_grad():
        # Dimension 0 says "a turn begins", dimension 1 "a reply was written"; the norm scales either to sqrt(32).
        embeddings, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        embeddings[:, 0] = 8.0
        embeddings[ids, 0], embeddings[ids, 1] = 0.0, 8.0
        head[ids, 0] = _PUSH
        head[tokenizer.eos_token_id, 1] = _PUSH
    return model


def reply_ids(tokenizer: PreTrainedTokenizerFast, replies: Sequence[str]) -> list[int]:
    """The token of each reply."""
    return [tokenizer.convert_tokens_to_ids(reply) for reply in replies]


def save_policy(folder: Path, replies: Sequence[str]) -> Path:
    """Write tokenizer and model as a folder that ``from_pretrained`` reads."""
    tokenizer = make_tokenizer(replies)
    tokenizer.save_pretrained(folder)
    make_model(tokenizer, replies).save_pretrained(folder)
    return folder


def trainable(model: Any) -> dict[str, torch.Tensor]:
    """A copy of the parameters that training may change."""
    return {name: each.detach().clone() for name, each in model.named_parameters() if each.requires_grad}
