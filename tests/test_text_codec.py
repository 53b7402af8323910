"""``TextCodec`` and ``FeedbackMask`` with tokenizers that add, cut, or do not know tokens."""

from __future__ import annotations

from typing import Any

import pytest
from chat_tokenizer import CHATML, hugging_face, train

from gym_kernel import ConfigurationError
from gym_kernel.transcripts import Owner, SampledReply
from gym_kernel.wrappers import FeedbackMask
from gym_kernel.wrappers.text_codec import TextCodec

pytestmark = pytest.mark.usefixtures("warm_evaluator")

TEXT = "import torch, triton"
HUGE = 10**12


@pytest.fixture
def raw() -> Any:
    """A tokenizer of ``tokenizers`` that begins each text with ``<|im_start|>`` and ends it, unless told not to."""
    tokenizer = train([TEXT])
    processors = pytest.importorskip("tokenizers").processors
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A <|im_end|>", special_tokens=[("<|im_start|>", 1), ("<|im_end|>", 2)]
    )
    return tokenizer


class Wrapper:
    """Hands everything on."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def encode(self, text: str, **kwargs: Any) -> Any:
        return self.tokenizer.encode(text, **kwargs)

    def decode(self, token_ids: list[int], **kwargs: Any) -> str:
        return str(self.tokenizer.decode(token_ids, **kwargs))


class Deaf(Wrapper):
    """Takes options and does not heed them."""

    def encode(self, text: str, **_: Any) -> Any:
        return self.tokenizer.encode(text)


class Characters:
    """One token a character; like ``tiktoken``'s, it refuses special tokens unless told, and unknown options."""

    n_vocab = 0x110000

    def encode(self, text: str, *, disallowed_special: Any = "all") -> list[int]:
        if disallowed_special and "<|im_end|>" in text:
            raise ValueError("a special token")
        return [ord(letter) for letter in text]

    def decode(self, token_ids: list[int]) -> str:
        return "".join(map(chr, token_ids))


def test_options_reach_a_tokenizer_through_a_wrapper(raw: Any) -> None:
    exact = raw.encode(TEXT, add_special_tokens=False).ids
    assert raw.encode(TEXT).ids == [1, *exact, 2]
    for tokenizer in (raw, hugging_face(raw, CHATML), hugging_face(raw, None)):
        for wrapped in (tokenizer, Wrapper(tokenizer), Wrapper(Wrapper(tokenizer))):
            codec = TextCodec(wrapped)
            assert codec.segment(Owner.POLICY, TEXT).token_ids == tuple(exact)
            assert codec.decode([1, *exact, 2]) == f"<|im_start|>{TEXT}<|im_end|>"


def test_an_option_that_is_refused_is_left_out() -> None:
    for tokenizer in (Characters(), Wrapper(Characters())):
        codec = TextCodec(tokenizer)
        assert codec.decode(codec.encode("x<|im_end|>")) == "x<|im_end|>"


def test_a_tokenizer_that_adds_tokens_whatever_it_is_told_is_refused(raw: Any, make_env: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"adds tokens to each text: .* \[1, 2\].*add_special_tokens=False"
    ):
        TextCodec(Deaf(raw))
    with pytest.raises(ConfigurationError, match="adds tokens to each text"):
        FeedbackMask(make_env(), Deaf(hugging_face(raw, None)))


def test_a_tokenizer_that_pads_or_truncates_is_refused(raw: Any) -> None:
    raw.enable_padding(length=64)
    with pytest.raises(ConfigurationError, match=r"no_padding\(\)"):
        TextCodec(raw)
    with pytest.raises(ConfigurationError, match=r"no_padding\(\)"):
        TextCodec(Wrapper(raw))
    raw.no_padding()
    codec = TextCodec(raw)
    whole = codec.encode(TEXT)
    raw.enable_truncation(max_length=2)
    with pytest.raises(ConfigurationError, match=r"no_truncation\(\)"):
        TextCodec(raw)
    with pytest.raises(ConfigurationError, match=r"no_truncation\(\)"):
        codec.encode(TEXT)
    raw.no_truncation()
    assert TextCodec(raw).encode(TEXT) == codec.encode(TEXT) == whole


@pytest.mark.parametrize("kind", ["bytes", "raw", "hugging face", "characters", "wrapper"])
def test_ids_beyond_the_vocabulary_are_refused(raw: Any, make_env: Any, kind: str) -> None:
    tokenizer = {
        "bytes": None,
        "raw": raw,
        "hugging face": hugging_face(raw, CHATML),
        "characters": Characters(),
        # It does not say how large its vocabulary is, but cannot decode such an id.
        "wrapper": Wrapper(raw),
    }[kind]
    env = FeedbackMask(make_env(), tokenizer)
    env.reset()
    before = env.segments
    past = {"bytes": 256, "raw": raw.get_vocab_size(), "characters": 0x110000, "wrapper": HUGE}
    for token in (past.get(kind, raw.get_vocab_size()), HUGE, 10**30):
        with pytest.raises(ConfigurationError, match="tokenizer that the policy samples with"):
            env.step(SampledReply("x", [5, token]))
    assert env.segments == before
    last = 5 if kind == "wrapper" else past.get(kind, raw.get_vocab_size()) - 1
    env.step(SampledReply("x", [last]))
    assert env.segments[1].token_ids == (last,)


def test_an_added_token_past_a_gap_is_known() -> None:
    class Sparse(Characters):
        n_vocab = 256

        def get_vocab(self) -> dict[str, int]:
            return {"a": 97, "<added>": 1_000}

    codec = TextCodec(Sparse())
    codec.check_known([97, 1_000])
    with pytest.raises(ConfigurationError, match="1001 is none of the tokenizer's, whose ids end at 1000"):
        codec.check_known([1_001])
