"""A causal language model of the Hugging Face hub or of a folder, in this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from policy_evaluation.policy import Conversation, Decoding, PolicyError, PolicyFacts

__all__ = ["HuggingFaceModel"]


class HuggingFaceModel:
    """Decodes greedily with ``transformers``.

    Conversations of one batch are padded on the left, which may change the last bits of the logits and with them
    a reply; keep the batch the same in runs that are to be compared.

    Args:
        model: Name or path.
        decoding: How replies are made.
        adapter: Name or path of a PEFT adapter, or ``""``.
        device: ``"auto"`` (a GPU where there is one), or a name for ``torch.device``.
        batch: Conversations that are decoded together.

    Raises:
        PolicyError: A package is missing, or the model has no chat template.
    """

    def __init__(
        self, model: str, decoding: Decoding, adapter: str = "", device: str = "auto", batch: int = 1
    ) -> None:
        torch, transformers = _libraries()
        self.facts = PolicyFacts("hugging face", model, adapter=adapter, decoding=decoding)
        self.batch = batch
        self._torch = torch
        self._decoding = decoding
        self._mutex = threading.Lock()
        self._cancelled = threading.Event()
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(model, padding_side="left")
        if not self._tokenizer.chat_template:
            raise PolicyError(f"{model} has no chat template. Choose a model that was tuned to answer chats.")
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        loaded = transformers.AutoModelForCausalLM.from_pretrained(model, dtype="auto")
        self._model = _adapted(loaded, adapter).to(device).eval()

    def replies(self, conversations: Sequence[Conversation]) -> list[str | None]:
        """Decode the replies of one batch; other threads wait meanwhile.

        Raises:
            PolicyError: A conversation is too long for the model.
        """
        texts = [
            self._tokenizer.apply_chat_template(
                conversation.messages(),
                tokenize=False,
                add_generation_prompt=True,
                **self._decoding.template_options,
            )
            for conversation in conversations
        ]
        with self._mutex, self._torch.inference_mode():
            inputs = self._tokenizer(
                texts, return_tensors="pt", padding=len(texts) > 1, add_special_tokens=False
            ).to(self._model.device)
            length = inputs["input_ids"].shape[1]
            self._check_length(length)
            tokens = self._model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                generation_config=self._greedy(),
                stopping_criteria=[self._stop_if_cancelled],
            )
        if self._cancelled.is_set():
            raise PolicyError("The evaluation was stopped.")
        return list(self._tokenizer.batch_decode(tokens[:, length:], skip_special_tokens=True))

    def cancel(self) -> None:
        """Stop decoding after the next token."""
        self._cancelled.set()

    def _stop_if_cancelled(self, tokens: Any, _scores: Any, **_: Any) -> Any:
        shape, device = tokens.shape[:1], tokens.device
        return self._torch.full(shape, self._cancelled.is_set(), dtype=self._torch.bool, device=device)

    def _greedy(self) -> Any:
        """The model's own end tokens, without its sampling."""
        from transformers import GenerationConfig

        own = self._model.generation_config
        return GenerationConfig(
            do_sample=False,
            max_new_tokens=self._decoding.max_new_tokens,
            bos_token_id=own.bos_token_id,
            eos_token_id=own.eos_token_id or self._tokenizer.eos_token_id,
            pad_token_id=self._tokenizer.pad_token_id,
        )

    def _check_length(self, tokens: int) -> None:
        most = getattr(self._model.config, "max_position_embeddings", None)
        needed = tokens + self._decoding.max_new_tokens
        if most is not None and needed > most:
            raise PolicyError(
                f"A conversation of {tokens:,} tokens and a reply of {self._decoding.max_new_tokens:,} do not fit "
                f"into the model's {most:,}. Lower --max-new-tokens or choose a model with a longer context."
            )


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise PolicyError("--model needs transformers: pip install gym-kernel[trl].") from error
    return torch, transformers


def _adapted(model: Any, adapter: str) -> Any:
    if not adapter:
        return model
    try:
        from peft import PeftModel
    except ImportError as error:
        raise PolicyError("--adapter needs peft: pip install gym-kernel[trl].") from error
    return PeftModel.from_pretrained(model, adapter)
