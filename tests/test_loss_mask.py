"""The loss mask where it counts: in a real model's loss, and beside the mask of TRL's own tool loop."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from chat_tokenizer import CHATML, hugging_face, play, sampled, train

from gym_kernel.transcripts import SampledReply, labels, prompt_and_completion
from gym_kernel.wrappers import FeedbackMask, RepairBudget

pytestmark = pytest.mark.usefixtures("warm_evaluator")

GOOD = (Path(__file__).parents[1] / "examples" / "kernels" / "relu.py").read_text(encoding="utf-8")
BAD = "x = 1"


def _tokenizer(make_env: Any, chat_template: str | None) -> Any:
    return hugging_face(train([make_env().reset()[0], GOOD]), chat_template)


@pytest.mark.parametrize("chat", [False, True])
def test_the_loss_depends_on_the_labels_of_sampled_tokens_alone(make_env: Any, chat: bool) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = _tokenizer(make_env, CHATML if chat else None)
    env = FeedbackMask(RepairBudget(make_env()), tokenizer)
    play(env, [sampled(tokenizer, BAD), sampled(tokenizer, f"```python\n{BAD}\n```")])
    token_ids, loss_mask = env.token_ids, env.loss_mask
    assert 10 < sum(loss_mask) < len(loss_mask) // 2

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=len(token_ids), n_embd=32, n_layer=2, n_head=2
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    output = model(torch.tensor([token_ids]), labels=torch.tensor([labels(env.segments)]))
    output.logits.retain_grad()
    output.loss.backward()
    # The logits before a token predict it.
    learnt = output.logits.grad[0].abs().sum(-1) > 0
    assert learnt.int().tolist() == [*loss_mask[1:], 0]

    log_probabilities = output.logits.detach()[0, :-1].log_softmax(-1)

    def loss(targets: list[int]) -> float:
        kept = [target if mask else -100 for target, mask in zip(targets, loss_mask, strict=True)]
        return float(torch.nn.functional.nll_loss(log_probabilities, torch.tensor(kept[1:])))

    assert loss(token_ids) == pytest.approx(output.loss.item())
    for position, mask in enumerate(loss_mask):
        changed = list(token_ids)
        changed[position] = (changed[position] + 1) % len(tokenizer)
        assert (loss(changed) != loss(token_ids)) == bool(mask), position


def test_trl_masks_the_same_conversation_alike(make_env: Any) -> None:
    trl = pytest.importorskip("trl")
    if not all(hasattr(trl.GRPOTrainer, name) for name in ("_tool_call_loop", "_get_tool_suffix_ids")):
        pytest.skip("this TRL keeps its tool loop elsewhere")
    tokenizer = _tokenizer(make_env, CHATML)
    content = {"close_pattern": r"<\|im_end\|>\s*", "content": "text"}
    tokenizer.response_template = {"defaults": {"role": "assistant"}, "fields": {"content": content}}
    env = FeedbackMask(RepairBudget(make_env()), tokenizer)
    prompt, _ = env.reset()
    first, second = sampled(tokenizer, BAD), sampled(tokenizer, GOOD)
    generated: list[list[int]] = []

    def submit(code: str) -> str:
        return env.step(SampledReply(code, first.token_ids))[0]

    def generate(prompts: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        generated.extend(prompts)
        return [list(second.token_ids)], None

    trainer = SimpleNamespace(
        processing_class=tokenizer,
        _tokenizer=tokenizer,
        _is_vlm=False,
        chat_template=None,
        chat_template_kwargs={},
        max_tool_calling_iterations=1,
        max_completion_length=10_000,
        use_vllm=False,
        vllm_mode="server",
        model=SimpleNamespace(config=SimpleNamespace(max_position_embeddings=20_000)),
        environment_factories=None,
        tools=[submit],
        _sync_tool_dicts=[{"submit": submit}],
        _async_tool_dicts=[{}],
        _generate_single_turn=generate,
    )
    trainer._get_tool_suffix_ids = partial(trl.GRPOTrainer._get_tool_suffix_ids, trainer)
    call = {"type": "function", "function": {"name": "submit", "arguments": {"code": BAD}}}
    message = {"role": "assistant", "content": BAD, "tool_calls": [call]}
    prompt_ids, _, _ = prompt_and_completion(env.segments)
    mask, _, completion_ids, *_ = trl.GRPOTrainer._tool_call_loop(
        trainer,
        [[{"role": "user", "content": prompt}]],
        [prompt_ids],
        [list(first.token_ids)],
        [[message]],
        None,
        None,
        {},
    )
    # What TRL would generate from after the feedback is what FeedbackMask has at that point.
    assert generated == [env.token_ids]
    assert env.step(second)[2] is True
    assert tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=False
    ) == list(env.segments[0].token_ids)
    ours = prompt_and_completion(env.segments)
    length = len(completion_ids[0])
    assert (ours[0], ours[1][:length], ours[2][:length]) == (prompt_ids, completion_ids[0], mask[0])
    # TRL ends with the policy's last token; the last feedback follows here, and is masked.
    assert ours[2][length:] == [0] * len(env.segments[-1].token_ids)
