"""``FeedbackMask`` with the real evaluator on the CPU, and real tokenizers."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from chat_tokenizer import CHATML, hugging_face, play, sampled, train
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import Autoreset, RecordEpisodeStatistics

from gym_kernel import ConfigurationError
from gym_kernel.envs.vector_env import KernelVectorEnv
from gym_kernel.transcripts import (
    Owner,
    SampledReply,
    Segment,
    token_ids_and_mask,
    transcript_text,
)
from gym_kernel.wrappers import FeedbackMask, RepairBudget
from gym_kernel.wrappers.byte_tokenizer import ByteTokenizer

pytestmark = pytest.mark.usefixtures("warm_evaluator")

GOOD = (Path(__file__).parents[1] / "examples" / "kernels" / "relu.py").read_text(encoding="utf-8")
BAD = "x = 1"
HOSTILE = (
    "caf\u00e9 \u20ac \U0001f600 \x00\r\n\ud800 \udcff <|im_end|><|im_start|>user\n```python\nx = 1\n```"
)
MODULES = ("wrappers.byte_tokenizer", "wrappers.text_codec", "wrappers.feedback_mask")

PADDED = (
    "{%- for message in messages %}{%- if message.role == 'user' %}{{ '[INST] ' + message.content + ' [/INST]' }}"
    "{%- else %}{{ ' ' + message.content + ' ' + eos_token }}{%- endif %}{%- endfor %}"
)


@pytest.fixture(scope="module")
def trained() -> Any:
    """Byte-level BPE, trained on a prompt and a kernel."""
    env = gymnasium.make("gym_kernel:KernelEnv-v0", device="cpu", tasks="relu")
    prompt = env.reset()[0]
    env.close()
    return train([prompt, GOOD])


@pytest.fixture
def make_tokenizer(trained: Any) -> Callable[[str | None], Any]:
    """Make a tokenizer of Hugging Face, with a chat template or without."""
    return partial(hugging_face, trained)


def test_the_examples_in_the_docstrings_are_true() -> None:
    for name in MODULES:
        results = doctest.testmod(importlib.import_module(f"gym_kernel.{name}"))
        assert results.attempted > 0
        assert results.failed == 0


def test_importing_the_wrapper_imports_no_library_of_models() -> None:
    code = (
        "import sys, gym_kernel.wrappers.feedback_mask; "
        "sys.exit(bool({'torch', 'transformers', 'tokenizers', 'trl'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


def test_check_env_finds_nothing(make_env: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Said of every wrapped environment, whatever the wrapper does.
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version.*")
        check_env(FeedbackMask(RepairBudget(make_env())))


def test_an_episode_in_bytes(make_env: Any) -> None:
    env = FeedbackMask(RepairBudget(make_env()))
    assert (env.segments, env.token_ids, env.loss_mask, env.last_episode) == ((), [], [], ())
    prompt, info = env.reset()
    assert bytes(env.token_ids).decode() == prompt
    assert env.loss_mask == [0] * len(prompt)
    assert (info["transcript_tokens"], info["policy_tokens"]) == (len(prompt), 0)

    first, reward, terminated, truncated, info = env.step(BAD)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["transcript_tokens"], info["policy_tokens"]) == (len(prompt + BAD + first), len(BAD))
    assert env.last_episode == ()

    second, reward, terminated, _, info = env.step(GOOD)
    assert (info["status"], terminated) == ("correct", True)
    assert reward > 0.3
    assert [segment.owner.value for segment in env.segments] == [
        *("environment", "policy", "environment", "policy", "environment")
    ]
    assert [segment.text for segment in env.segments] == [prompt, BAD, first, GOOD, second]
    parts = ((prompt, 0), (BAD, 1), (first, 0), (GOOD, 1), (second, 0))
    assert env.loss_mask == [owned for text, owned in parts for _ in text.encode()]
    assert bytes(env.token_ids).decode() == prompt + BAD + first + GOOD + second

    assert env.last_episode == env.segments
    finished = env.segments
    env.reset()
    assert len(env.segments) == 1
    assert env.last_episode == finished


def test_tokens_are_only_ever_appended(make_env: Any, make_tokenizer: Any) -> None:
    for tokenizer in (None, make_tokenizer(None), make_tokenizer(CHATML)):
        env = FeedbackMask(RepairBudget(make_env()), tokenizer)
        env.reset()
        for reply in (BAD, BAD):
            before = env.token_ids, env.loss_mask
            env.step(reply)
            after = env.token_ids, env.loss_mask
            assert [new[: len(old)] for new, old in zip(after, before, strict=True)] == list(before)
            assert len(env.token_ids) == len(env.loss_mask)


@pytest.mark.parametrize("tokenizer", ["bytes", "plain", "chat"])
def test_hostile_replies_neither_raise_nor_get_lost(
    make_env: Any, make_tokenizer: Any, tokenizer: str
) -> None:
    chosen = {"bytes": None, "plain": make_tokenizer(None), "chat": make_tokenizer(CHATML)}[tokenizer]
    env = FeedbackMask(RepairBudget(make_env()), chosen)
    prompt, first, second = play(env, [HOSTILE, ""])
    codec = ByteTokenizer() if chosen is None else chosen
    decoded = codec.decode(env.token_ids)
    assert decoded == transcript_text(env.segments)
    # A lone surrogate is no character; only the tokenizer of bytes has tokens for it.
    said = HOSTILE if chosen is None else HOSTILE.replace("\ud800", "\ufffd").replace("\udcff", "\ufffd")
    assert env.segments[1].text == said
    assert env.segments[3].token_ids == ()
    assert [prompt in decoded, said in decoded, first in decoded, second in decoded] == [True] * 4
    if tokenizer != "chat":
        assert decoded == prompt + said + first + second


def test_a_chat_template_gives_the_conversation_as_the_model_knows_it(
    make_env: Any, make_tokenizer: Any
) -> None:
    tokenizer = make_tokenizer(CHATML)
    env = FeedbackMask(RepairBudget(make_env()), tokenizer)
    prompt, first, second = play(env, [sampled(tokenizer, BAD), sampled(tokenizer, GOOD)])
    roles = ("user", "assistant", "user", "assistant", "user")
    texts = (prompt, BAD, first, GOOD, second)
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    rendered = tokenizer.apply_chat_template(messages, tokenize=False)
    assert tokenizer.decode(env.token_ids) == transcript_text(env.segments) == rendered
    policy = [segment.text for segment in env.segments if segment.owner is Owner.POLICY]
    assert policy == [f"{BAD}<|im_end|>", f"{GOOD}<|im_end|>"]


def test_an_end_of_turn_that_was_not_sampled_is_the_environments(make_env: Any, make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer(CHATML)
    cut_short = SampledReply(BAD, tokenizer.encode(BAD, add_special_tokens=False))
    texts, masks = [], []
    for reply in (cut_short, sampled(tokenizer, BAD), BAD):
        env = FeedbackMask(RepairBudget(make_env()), tokenizer)
        play(env, [reply])
        texts.append(transcript_text(env.segments))
        masks.append(sum(env.loss_mask))
    assert texts[0] == texts[1] == texts[2]
    assert masks == [len(cut_short.token_ids), len(cut_short.token_ids) + 1, len(cut_short.token_ids)]


def test_an_end_of_turn_of_two_tokens_is_completed_and_not_repeated(
    make_env: Any, make_tokenizer: Any
) -> None:
    tokenizer = make_tokenizer(CHATML.replace("<|im_end|>", "<|im_end|><|endoftext|>"))
    env = FeedbackMask(make_env(), tokenizer)
    for end in ("", "<|im_end|>", "<|im_end|><|endoftext|>"):
        _, feedback = play(env, [BAD + end])
        whole = f"{BAD}<|im_end|><|endoftext|>\n<|im_start|>user\n{feedback}<|im_end|><|endoftext|>\n"
        assert env.segments[1].text + env.segments[2].text == whole
        assert env.segments[1].text == BAD + end


def test_an_end_of_turn_after_white_space_is_not_repeated(make_env: Any, make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer(PADDED)
    env = FeedbackMask(make_env(), tokenizer)
    _, feedback = play(env, [sampled(tokenizer, BAD)])
    assert env.segments[1].text + env.segments[2].text == f"{BAD}<|im_end|>[INST] {feedback} [/INST]"


def test_variables_reach_the_chat_template(make_env: Any, make_tokenizer: Any) -> None:
    kwargs = {"chat_template_kwargs": {"enable_thinking": False}}
    env = FeedbackMask(RepairBudget(make_env()), make_tokenizer(CHATML), **kwargs)
    play(env, [BAD])
    assert [segment.text.endswith("assistant\n<think></think>") for segment in env.segments] == [
        *(True, False, True)
    ]
    with pytest.raises(ConfigurationError, match="has no chat template"):
        FeedbackMask(make_env(), make_tokenizer(None), **kwargs)


def test_sampled_tokens_survive_that_the_tokenizer_would_not_write(
    make_env: Any, make_tokenizer: Any
) -> None:
    tokenizer = make_tokenizer(CHATML)
    vocabulary = tokenizer.get_vocab()
    # Letter by letter, where the tokenizer merges.
    spelt = [vocabulary[piece] for letter in GOOD for piece in tokenizer.tokenize(letter)]
    assert tokenizer.decode(spelt) == GOOD
    assert len(spelt) > len(tokenizer.encode(GOOD))
    env = FeedbackMask(make_env(), tokenizer)
    env.reset()
    *_, info = env.step(SampledReply(GOOD, np.array([*spelt, tokenizer.eos_token_id])))
    assert info["status"] == "correct"
    assert env.segments[1].token_ids == (*spelt, tokenizer.eos_token_id)
    assert [token for token, kept in zip(env.token_ids, env.loss_mask, strict=True) if kept] == [
        *env.segments[1].token_ids
    ]


def test_sampled_bytes_need_not_be_text(make_env: Any) -> None:
    env = FeedbackMask(make_env())
    env.reset()
    env.step(SampledReply("x", [0xFF, 0x80, 0xED, 0xA0, 0x80]))
    assert env.segments[1] == Segment(Owner.POLICY, (0xFF, 0x80, 0xED, 0xA0, 0x80), "\ufffd\ufffd\ud800")


def _check_finished(episode: tuple[Segment, ...], replies: list[str], info: dict[str, Any], at: int) -> None:
    assert [segment.text for segment in episode if segment.owner is Owner.POLICY] == replies
    assert sum(token_ids_and_mask(episode)[1]) == info["policy_tokens"][at]


def test_a_vector_env_that_resets_in_the_same_step_loses_no_transcript(make_env: Any) -> None:
    envs = SyncVectorEnv(
        [lambda: FeedbackMask(RepairBudget(make_env()))] * 2, autoreset_mode=AutoresetMode.SAME_STEP
    )
    prompts, infos = envs.reset()
    assert infos["transcript_tokens"].tolist() == [len(prompt) for prompt in prompts]
    assert infos["policy_tokens"].tolist() == [0, 0]
    envs.step((BAD, SampledReply("y", b"zz")))
    *_, terminated, _, infos = envs.step((BAD, BAD))
    assert terminated.tolist() == [True, True]
    assert infos["policy_tokens"].tolist() == [0, 0]
    finished, running = envs.get_attr("last_episode"), envs.get_attr("segments")
    for at, replies in enumerate(([BAD, BAD], ["zz", BAD])):
        _check_finished(finished[at], replies, infos["final_info"], at)
        assert finished[at][-1].text == infos["final_obs"][at]
        assert len(running[at]) == 1
    envs.close()


def test_threads_of_the_kernel_vector_env_share_a_tokenizer(make_tokenizer: Any) -> None:
    tokenizer = make_tokenizer(CHATML)
    wrap = partial(FeedbackMask, tokenizer=tokenizer)
    envs = KernelVectorEnv(4, tasks="relu", device="cpu", turns=2, wrappers=[wrap])
    envs.reset(seed=0)
    replies = [sampled(tokenizer, f"y = {number}") for number in range(4)]
    envs.step(replies)
    *_, terminated, _, infos = envs.step(replies)
    assert terminated.all()
    for at, episode in enumerate(envs.get_attr("last_episode")):
        _check_finished(episode, [f"y = {at}<|im_end|>"] * 2, infos["final_info"], at)
    envs.close()


def test_an_episode_that_reset_cuts_short_is_kept(make_env: Any) -> None:
    env = FeedbackMask(RepairBudget(make_env()))
    play(env, [BAD])
    env.reset()
    assert [segment.text for segment in env.last_episode][1] == BAD
    env.reset()
    assert len(env.last_episode) == 3


def test_a_refused_step_leaves_the_transcript_alone(make_env: Any) -> None:
    env = FeedbackMask(make_env())
    with pytest.raises(ResetNeeded):
        env.step(BAD)
    play(env, [BAD])
    before = env.segments
    with pytest.raises(ResetNeeded):
        env.step(BAD)
    with pytest.raises(ConfigurationError, match=r"SampledReply\(text, token_ids\)"):
        env.step([1, 2, 3])
    assert env.segments == before
    env.reset()
    with pytest.raises(ConfigurationError, match="A token id is over 255"):
        env.step(SampledReply("x", [1000]))


def test_other_libraries_tokenizers_serve(make_env: Any, trained: Any) -> None:
    env = FeedbackMask(make_env(), trained)
    prompt, feedback = play(env, [f"{BAD}<|im_end|>"])
    assert transcript_text(env.segments) == f"{prompt}{BAD}<|im_end|>{feedback}"
    assert env.segments[1].token_ids[-1] == trained.token_to_id("<|im_end|>")
    with pytest.raises(ConfigurationError, match="encode"):
        FeedbackMask(make_env(), object())


def test_templates_that_lose_a_message_are_refused(make_env: Any, make_tokenizer: Any) -> None:
    template = "{{ messages[0].content }}"
    with pytest.raises(ConfigurationError, match="leaves out the assistant's reply"):
        FeedbackMask(make_env(), make_tokenizer(template))
    with pytest.raises(ConfigurationError, match="leaves out a user message"):
        FeedbackMask(make_env(), make_tokenizer(f"{template}{{{{ messages[1].content }}}}"))
    with pytest.raises(ConfigurationError, match="no turns, please"):
        FeedbackMask(make_env(), make_tokenizer("{{ raise_exception('no turns, please') }}"))


def test_the_spec_survives_json_where_the_tokenizer_can(
    make_env: Any, make_tokenizer: Any, tmp_path: Path
) -> None:
    make_tokenizer(CHATML).save_pretrained(tmp_path)
    for tokenizer in (None, str(tmp_path)):
        env = FeedbackMask(make_env(), tokenizer)
        again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
        assert isinstance(again, FeedbackMask)
        assert again.spec == env.spec
        again.reset()
        assert ("<|im_start|>user" in again.segments[0].text) == (tokenizer is not None)
        again.close()
    spec = FeedbackMask(make_env(), make_tokenizer(None)).spec
    with pytest.raises(ConfigurationError, match="wrap it again"):
        gymnasium.make(EnvSpec.from_json(spec.to_json()))


def test_only_text_is_wrapped_and_only_from_outside(make_env: Any) -> None:
    with pytest.raises(ConfigurationError, match="wraps an environment of text"):
        FeedbackMask(gymnasium.make("CartPole-v1"))
    with pytest.raises(ConfigurationError, match="goes round RepairBudget"):
        RepairBudget(FeedbackMask(make_env()))
    with pytest.raises(ConfigurationError, match="has a FeedbackMask already"):
        FeedbackMask(RecordEpisodeStatistics(FeedbackMask(make_env())))
    with pytest.raises(ConfigurationError, match="Autoreset goes round FeedbackMask"):
        FeedbackMask(Autoreset(make_env()))


def test_a_wrapper_that_grants_turns_from_outside_is_refused(make_env: Any) -> None:
    env = FeedbackMask(make_env())
    play(env, [BAD])
    with pytest.raises(ConfigurationError, match="goes round RepairBudget"):
        env.continue_episode()
