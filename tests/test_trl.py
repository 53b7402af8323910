"""TRL trains a tiny policy on real evaluations, through its tool loop and through the rollout function."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")
pytest.importorskip("peft")

import torch
from datasets import Dataset
from tiny_policy import (
    END,
    GOOD,
    NO_KERNEL,
    WRONG,
    in_a_fence,
    in_a_tool_call,
    make_model,
    make_tokenizer,
    reply_ids,
    trainable,
)
from trl import GRPOConfig, GRPOTrainer

from gym_kernel import ConfigurationError, TaskError
from gym_kernel.evaluator.status import Status
from gym_kernel.integrations.trl import (
    Episode,
    KernelTool,
    Outcome,
    environment_factory,
    kernel_return,
    log_outcomes,
    prompt_dataset,
    rollout_func,
)
from gym_kernel.integrations.trl.context import Context
from gym_kernel.integrations.trl.conversation import Chat, Conversation
from gym_kernel.integrations.trl.generation import Sample, sample
from gym_kernel.integrations.trl.rewards import episode_metrics

pytestmark = pytest.mark.usefixtures("warm_evaluator")

GROUP = 3
NAN = float("nan")


@dataclass
class Seen:
    """What the loss of one update was given, and the episodes behind it."""

    completion_ids: torch.Tensor
    mask: torch.Tensor
    advantages: torch.Tensor
    logprobs: torch.Tensor | None
    episodes: list[Episode] = field(default_factory=list)


class WatchedTrainer(GRPOTrainer):
    """Keeps what the loss was given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen: list[Seen] = []

    def compute_loss(self, model: Any, inputs: dict[str, Any], **kwargs: Any) -> Any:
        episodes = [each.episode for each in self.environments or []]
        self.seen.append(
            Seen(
                inputs["completion_ids"].clone(),
                (inputs["completion_mask"] * inputs["tool_mask"]).clone(),
                inputs["advantages"].clone(),
                inputs.get("sampling_per_token_logps"),
                episodes,
            )
        )
        return super().compute_loss(model, inputs, **kwargs)


def make_trainer(
    folder: Path,
    replies: list[str],
    group: int = GROUP,
    settings: dict[str, Any] | None = None,
    **kwargs: Any,
) -> WatchedTrainer:
    tokenizer = make_tokenizer(replies)
    config = GRPOConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=group,
        num_generations=group,
        max_steps=2,
        max_completion_length=4_096,
        max_tool_calling_iterations=2,
        generation_kwargs={"max_new_tokens": 8},
        temperature=0.8,
        loss_type="dr_grpo",
        scale_rewards="none",
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        seed=42,
        **(settings or {}),
    )
    return WatchedTrainer(
        model=make_model(tokenizer, replies),
        args=config,
        train_dataset=prompt_dataset("relu"),
        processing_class=tokenizer,
        **kwargs,
    )


def check_turns(trainer: WatchedTrainer, seen: Seen, replies: list[str], messages: int) -> None:
    """Sampled tokens, and no others, reach the loss: replies and their ends, feedback between them masked."""
    tokenizer = trainer.processing_class
    known = reply_ids(tokenizer, replies)
    statuses = []
    for ids, mask in zip(seen.completion_ids, seen.mask, strict=True):
        sampled = ids[mask == 1].tolist()
        assert len(sampled) == 2 * messages
        assert all(each in known for each in sampled[::2])
        assert all(each == tokenizer.eos_token_id for each in sampled[1::2])
        told = tokenizer.decode(ids[mask == 0], skip_special_tokens=False)
        assert told.count("Verdict:") == told.count("<|im_start|>user") == messages - 1
        assert not any(each in ids[mask == 0].tolist() for each in known)
        good = [Status.CORRECT if each == known[0] else Status.INCORRECT for each in sampled[::2]]
        statuses.append(good[:2])
    # TRL shuffles the rows of a batch before the loss sees them.
    assert sorted(statuses) == sorted([outcome.status for outcome in each.outcomes] for each in seen.episodes)


def check_advantages(seen: Seen) -> None:
    """Dr. GRPO: the return less the group's mean, divided by nothing."""
    returns = torch.tensor([each.episode_return for each in seen.episodes])
    for each in seen.episodes:
        first, second = (outcome.reward for outcome in each.outcomes)
        assert each.episode_return == pytest.approx(first + 0.4 * second)
    expected = (returns - returns.mean()).sort().values
    torch.testing.assert_close(seen.advantages.sort().values, expected, atol=1e-4, rtol=1e-4)
    assert (expected != 0).any()


def check_learned(trainer: WatchedTrainer, before: dict[str, torch.Tensor]) -> None:
    after = trainable(trainer.model)
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(torch.isfinite(each).all() for each in after.values())


def test_trl_trains_through_the_tool_loop(tmp_path: Path) -> None:
    replies = [in_a_tool_call(GOOD), in_a_tool_call(WRONG)]
    trainer = make_trainer(
        tmp_path,
        replies,
        group=2,
        environment_factory=environment_factory(tasks="relu", device="cpu"),
        reward_funcs=[log_outcomes],
    )
    before = trainable(trainer.model)
    trainer.train()
    check_learned(trainer, before)
    assert len(trainer.seen) == 2
    for seen in trainer.seen:
        # TRL samples a last message after the feedback on the last submission.
        check_turns(trainer, seen, replies, messages=3)
        check_advantages(seen)
    logged = trainer.state.log_history[1]
    outcomes = [outcome for each in trainer.seen[1].episodes for outcome in each.outcomes]
    assert logged["kernel/correct_rate"] == pytest.approx(sum(each.correct for each in outcomes) / 4)
    assert logged["kernel/compile_rate"] == 1.0
    assert logged["reward"] == pytest.approx(logged["rewards/KernelTool/mean"])


def test_trl_trains_through_the_rollout_function(tmp_path: Path) -> None:
    replies = [in_a_fence(GOOD), in_a_fence(WRONG)]
    batches: list[list[Episode]] = []

    def watched_return(episode: list[Episode], **kwargs: Any) -> list[float | None]:
        batches.append(episode)
        return kernel_return(episode=episode, **kwargs)

    rollout = rollout_func(tasks="relu", device="cpu")
    trainer = make_trainer(tmp_path, replies, rollout_func=rollout, reward_funcs=[watched_return])
    before = trainable(trainer.model)
    trainer.train()
    check_learned(trainer, before)
    for seen, episodes in zip(trainer.seen, batches, strict=True):
        seen.episodes = episodes
        check_turns(trainer, seen, replies, messages=2)
        check_advantages(seen)
        assert seen.logprobs.shape == seen.mask.shape
        assert (seen.logprobs[seen.mask == 0] == 0).all()
        assert (seen.logprobs[seen.mask == 1] < 0).all()
    logged = trainer.state.log_history[0]
    assert logged["reward"] == pytest.approx(
        sum(each.episode_return for each in batches[0]) / GROUP, abs=1e-4
    )
    assert 0 <= logged["kernel/correct_rate"] <= 1
    rollout.close()


@pytest.fixture(scope="module")
def text_trainer(tmp_path_factory: pytest.TempPathFactory) -> WatchedTrainer:
    """A trainer for its model and settings; it is not trained."""
    replies = [in_a_fence(GOOD), in_a_fence(WRONG), NO_KERNEL]
    return make_trainer(
        tmp_path_factory.mktemp("trainer"),
        replies,
        rollout_func=rollout_func(tasks="relu", device="cpu"),
        reward_funcs=[kernel_return],
    )


def test_logprobs_are_those_of_the_sampled_tokens(text_trainer: WatchedTrainer) -> None:
    tokenizer = text_trainer.processing_class
    prompts = [
        tokenizer(text)["input_ids"] for text in ("Task: relu", "A longer prompt, so that one is padded.")
    ]
    for prompt, reply in zip(prompts, sample(text_trainer, prompts), strict=True):
        assert len(reply.token_ids) == len(reply.logprobs) == 2
        assert reply.token_ids[-1] == tokenizer.eos_token_id
        with torch.no_grad():
            logits = text_trainer.model(torch.tensor([[*prompt, *reply.token_ids]])).logits[
                0, len(prompt) - 1 :
            ]
        expected = torch.log_softmax(logits / 0.8, dim=-1)
        for place, (each, logprob) in enumerate(zip(reply.token_ids, reply.logprobs, strict=True)):
            assert logprob == pytest.approx(expected[place, each].item(), abs=1e-4)


def test_a_rollout_is_aligned_and_what_the_policy_would_see(text_trainer: WatchedTrainer) -> None:
    tokenizer = text_trainer.processing_class
    prompt = prompt_dataset("relu")[0]["prompt"]
    rollout = rollout_func(tasks="relu", device="cpu")
    output = rollout([prompt] * GROUP, text_trainer)
    assert set(output) == {"prompt_ids", "completion_ids", "logprobs", "env_mask", "episode"}
    assert {len(entries) for entries in output.values()} == {GROUP}
    for place in range(GROUP):
        ids, mask = output["completion_ids"][place], output["env_mask"][place]
        assert len(ids) == len(mask) == len(output["logprobs"][place])
        # The ids are those of the chat rendered as a whole, because each reply here is one token.
        text = tokenizer.decode(output["prompt_ids"][place] + ids)
        turns = text.split("<|im_start|>")
        assert turns[2].startswith("user\nTask: relu\n\n# Task: ReLU (relu)")
        assert "You have 2 submissions" in turns[2]
        assert turns[4].startswith("user\nVerdict:")
        assert "1 left" in turns[4]
        assert [each.split("\n")[0] for each in turns[1:]] == [
            "system",
            "user",
            "assistant",
            "user",
            "assistant",
        ]
        assert tokenizer(text, add_special_tokens=False)["input_ids"] == output["prompt_ids"][place] + ids
        assert len(output["episode"][place].outcomes) == 2
    rollout.close()


def test_an_episode_ends_where_another_whole_reply_would_not_fit(text_trainer: WatchedTrainer) -> None:
    prompt = prompt_dataset("relu")[0]["prompt"]
    rollout = rollout_func(tasks="relu", device="cpu")
    whole = rollout([prompt], text_trainer)
    rollout.close()
    opening, completion = len(whole["prompt_ids"][0]), len(whole["completion_ids"][0])
    # The trainer's replies have up to eight tokens.
    for tokens, turns in ((opening + 8, 1), (opening + 3 * completion, 2)):
        rollout = rollout_func(tasks="relu", device="cpu", max_context_tokens=tokens)
        output = rollout([prompt] * 2, text_trainer)
        assert [sum(each) for each in output["env_mask"]] == [2 * turns] * 2
        assert [len(each.outcomes) for each in output["episode"]] == [turns] * 2
        rollout.close()


def test_a_prompt_must_leave_room_for_a_reply(text_trainer: WatchedTrainer) -> None:
    prompt = prompt_dataset("relu")[0]["prompt"]
    rollout = rollout_func(tasks="relu", device="cpu", max_context_tokens=100)
    with pytest.raises(
        ConfigurationError, match=r"task relu has .* a reply has up to 8, .* may have 100\. Allow"
    ):
        rollout([prompt] * 2, text_trainer)
    rollout.close()
    for wrong in (0, True, "100"):
        with pytest.raises(ConfigurationError, match="max_context_tokens must be"):
            rollout_func(tasks="relu", device="cpu", max_context_tokens=wrong)  # type: ignore[arg-type]


def test_feedback_needs_room_for_itself_and_a_whole_reply(text_trainer: WatchedTrainer) -> None:
    chat = Chat(text_trainer)
    opening = chat.opening([{"role": "user", "content": "?"}])
    reply = Sample((text_trainer.processing_class.eos_token_id,), (-1.0,))

    def after_feedback(most_tokens: float) -> Conversation:
        conversation = Conversation(chat, Episode("relu"), [opening])
        conversation.add_reply(reply)
        conversation.add_feedback("Wrong.", Context(most_tokens, reply_tokens=8))
        return conversation

    tokens = len(after_feedback(math.inf).token_ids)
    assert after_feedback(tokens + 8).open
    cut = after_feedback(tokens + 7)
    assert not cut.open
    assert cut.token_ids == [*opening.token_ids, *reply.token_ids]


def test_an_evaluation_may_have_groups_of_another_size(tmp_path: Path) -> None:
    rollout = rollout_func(tasks=["relu", "tanh", "swish"], device="cpu", turns=1)
    seen: list[list[Episode]] = []

    def watched_return(episode: list[Episode], **kwargs: Any) -> list[float | None]:
        seen.append(episode)
        return kernel_return(episode=episode, **kwargs)

    trainer = make_trainer(
        tmp_path,
        [NO_KERNEL],
        settings={"num_generations_eval": 2, "per_device_eval_batch_size": 6},
        eval_dataset=prompt_dataset(["relu", "tanh", "swish"]),
        rollout_func=rollout,
        reward_funcs=[watched_return],
    )
    assert "eval_reward" in trainer.evaluate()
    # TRL shuffles the rows, and the members of a group stay together.
    evaluated = [each.task for each in seen[0]]
    assert evaluated[::2] == evaluated[1::2]
    assert sorted(evaluated[::2]) == ["relu", "swish", "tanh"]
    # As many rollouts in groups of three, and then parts of groups, as a process of several may get.
    trainer.model.train()
    rows = {row["task"]: row["prompt"] for row in prompt_dataset(["relu", "tanh"])}
    for tasks in (["tanh"] * 3 + ["relu"] * 3, ["relu"] * 1 + ["tanh"] * 3 + ["relu"] * 2):
        output = rollout([rows[task] for task in tasks], trainer)
        assert [each.task for each in output["episode"]] == tasks
    assert sorted(envs.group_size for envs in rollout._envs.values()) == [1, 2, 3]
    rollout.close()


def test_episodes_of_a_batch_may_end_at_different_turns(text_trainer: WatchedTrainer) -> None:
    torch.manual_seed(0)
    prompt = prompt_dataset("relu")[0]["prompt"]
    rollout = rollout_func(tasks="relu", device="cpu", stop_when_correct=True)
    output = rollout([prompt] * 5, text_trainer)
    lengths = []
    for episode, mask in zip(output["episode"], output["env_mask"], strict=True):
        lengths.append(len(episode.outcomes))
        assert lengths[-1] == (1 if episode.outcomes[0].correct else 2)
        assert sum(mask) == 2 * lengths[-1]
        assert (0 in mask) == (lengths[-1] == 2)
        assert episode.episode_return == pytest.approx(
            sum(outcome.reward * 0.4**turn for turn, outcome in enumerate(episode.outcomes))
        )
    assert set(lengths) == {1, 2}
    rollout.close()


def test_a_prompt_must_name_its_task(text_trainer: WatchedTrainer) -> None:
    rollout = rollout_func(tasks="relu", device="cpu")
    for prompt in ("relu", [{"role": "user", "content": "relu, please"}], []):
        with pytest.raises(ConfigurationError, match="Task: <id>"):
            rollout([prompt], text_trainer)
    with pytest.raises(TaskError, match="tanh"):
        rollout([[{"role": "user", "content": "Task: tanh"}]], text_trainer)


def test_a_reply_that_was_cut_off_is_ended_by_the_environment(text_trainer: WatchedTrainer) -> None:
    tokenizer = text_trainer.processing_class
    between = "\n<|im_start|>user\nWrong.<|im_end|>\n<|im_start|>assistant\n"
    reply = tokenizer(NO_KERNEL)["input_ids"]
    chat = Chat(text_trainer)
    for sampled, told in ((reply, END + between), ([*reply, tokenizer.eos_token_id], between)):
        conversation = Conversation(chat, Episode("relu"), [chat.opening([{"role": "user", "content": "?"}])])
        conversation.add_reply(Sample(tuple(sampled), (-1.0,) * len(sampled)))
        conversation.add_feedback("Wrong.", Context(math.inf, reply_tokens=8))
        _, ids, mask = conversation.split()
        assert ids[: len(sampled)] == sampled
        assert tokenizer.decode(ids[len(sampled) :]) == told
        assert mask == [1] * len(sampled) + [0] * (len(ids) - len(sampled))
        assert conversation.logprobs == [-1.0] * len(sampled) + [0.0] * (len(ids) - len(sampled))


def test_the_tool_judges_and_keeps_the_budget() -> None:
    tool = environment_factory(tasks="relu", device="cpu")()
    assert tool.submit(GOOD).startswith("No submission is left")
    opening = tool.reset(task="relu", prompt=[{"role": "user", "content": "Task: relu"}])
    assert opening.startswith("\n\n# Task: ReLU")
    assert "tool `submit`" in opening
    assert tool.get_reward() == 0.0
    assert "1 left" in tool.submit(WRONG)
    assert "The episode is over" in tool.submit(GOOD)
    first, second = tool.episode.outcomes
    assert (first.status, second.status) == (Status.INCORRECT, Status.CORRECT)
    assert tool.get_reward() == pytest.approx(0.4 * second.reward)
    assert tool.submit(GOOD).startswith("No submission is left")
    assert len(tool.episode.outcomes) == 2
    tool.reset(task="relu")
    assert tool.episode == Episode("relu")


def test_the_tool_wants_a_task_and_a_text() -> None:
    tool = environment_factory(tasks="relu", device="cpu")()
    with pytest.raises(ConfigurationError, match="column 'task'"):
        tool.reset(prompt="relu")
    with pytest.raises(TaskError, match="tanh"):
        tool.reset(task="tanh")
    tool.reset(task="relu")
    with pytest.raises(ConfigurationError, match="str"):
        tool.submit(5)  # type: ignore[arg-type]
    assert "1 left" in tool.submit(NO_KERNEL)


def test_dropping_the_tool_closes_its_environment() -> None:
    tool = KernelTool(tasks="relu", device="cpu")
    tool.reset(task="relu")
    env = tool._env
    evaluator = env.unwrapped._evaluator
    assert evaluator is not None
    del tool
    assert env.unwrapped._evaluator is None


@pytest.mark.parametrize("make", [environment_factory, rollout_func])
@pytest.mark.parametrize("kwargs", [{"turns": 0}, {"turns": "2"}, {"discount": 2}, {"max_code_chars": 0}])
def test_arguments_are_checked_at_once(make: Any, kwargs: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(kwargs))):
        make(tasks="relu", device="cpu", **kwargs)
    with pytest.raises(TaskError):
        make(tasks="no such task", device="cpu")


def test_rows_name_their_tasks() -> None:
    rows = prompt_dataset(["relu", "tanh"], system="Be brief.", repeats=2)
    assert isinstance(rows, Dataset)
    assert rows["task"][:] == ["relu", "tanh"] * 2
    assert [each["content"] for each in rows[1]["prompt"]] == ["Be brief.", "Task: tanh"]
    with pytest.raises(ConfigurationError, match="repeats"):
        prompt_dataset("relu", repeats=0)


def test_metrics_leave_lost_submissions_out() -> None:
    correct = Outcome(Status.CORRECT, 1.5, 2.0)
    refused = Outcome(Status.COMPILE_ERROR, 0.0, NAN)
    lost = Episode("relu", (refused, Outcome(Status.INFRASTRUCTURE_ERROR, 0.0, NAN)), 0.0)
    solved = Episode("relu", (refused, correct), 0.6)
    assert (lost.reward, solved.reward) == (None, 0.6)
    assert episode_metrics([lost, solved]) == pytest.approx(
        {
            "kernel/submissions": 2.0,
            "kernel/lost_rate": 0.5,
            "kernel/solved_rate": 1.0,
            "kernel/correct_rate": 1 / 3,
            "kernel/compile_rate": 1 / 3,
            "kernel/speedup": 2.0,
        }
    )
    assert episode_metrics([]) == {}


def test_reward_functions_tell_what_they_need() -> None:
    with pytest.raises(ConfigurationError, match="rollout_func="):
        kernel_return(prompts=[], completions=[])
    with pytest.raises(ConfigurationError, match="environment_factory="):
        log_outcomes(prompts=[], completions=[])
    logged: dict[str, float] = {}
    rewards = kernel_return(
        episode=[Episode("relu", (Outcome(Status.CORRECT, 1.5, 2.0),), 1.5)], log_metric=logged.__setitem__
    )
    assert rewards == [1.5]
    assert logged["kernel/speedup"] == 2.0
    assert all(math.isfinite(each) for each in logged.values())


def test_a_missing_library_is_named() -> None:
    code = "import sys; sys.modules['trl'] = None; import gym_kernel.integrations.trl"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode != 0
    assert "pip install 'gym-kernel[trl]'" in found.stderr.splitlines()[-1]
