"""Replies that carry their tokens, and what follows from an episode's segments."""

from __future__ import annotations

import copy
import doctest
import pickle
from typing import Any

import numpy as np
import pytest

from gym_kernel import ConfigurationError, transcripts
from gym_kernel.transcripts import (
    Owner,
    SampledReply,
    Segment,
    labels,
    prompt_and_completion,
    token_ids_and_mask,
    transcript_text,
)

EPISODE = (
    Segment(Owner.ENVIRONMENT, (1, 2), "ab"),
    Segment(Owner.POLICY, (3,), "c"),
    Segment(Owner.ENVIRONMENT, (), ""),
    Segment(Owner.POLICY, (4, 5), "de"),
    Segment(Owner.ENVIRONMENT, (6,), "f"),
)


def test_the_examples_in_the_docstrings_are_true() -> None:
    results = doctest.testmod(transcripts)
    assert results.attempted >= 5
    assert results.failed == 0


def test_an_episode_becomes_tokens_mask_labels_and_text() -> None:
    assert token_ids_and_mask(EPISODE) == ([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 1, 0])
    assert labels(EPISODE) == [-100, -100, 3, 4, 5, -100]
    assert prompt_and_completion(EPISODE) == ([1, 2], [3, 4, 5, 6], [1, 1, 1, 0])
    assert transcript_text(EPISODE) == "abcdef"


def test_an_episode_without_a_reply_is_all_prompt() -> None:
    assert prompt_and_completion(EPISODE[:1]) == ([1, 2], [], [])
    assert token_ids_and_mask(()) == ([], [])
    assert (labels(()), prompt_and_completion(()), transcript_text(())) == ([], ([], [], []), "")


def test_arrays_and_tensors_of_token_ids_serve() -> None:
    torch = pytest.importorskip("torch")
    for token_ids in (range(3), np.arange(3), torch.arange(3), iter([0, 1, 2])):
        stored = SampledReply("x", token_ids).token_ids
        assert stored == (0, 1, 2)
        assert {type(token) for token in stored} == {int}


def test_a_sampled_reply_is_a_str_that_can_be_copied() -> None:
    reply = SampledReply("x = 1", [1, 2])
    assert isinstance(reply, str)
    assert reply == "x = 1"
    for again in (copy.deepcopy(reply), pickle.loads(pickle.dumps(reply))):
        assert (type(again), again, again.token_ids) == (SampledReply, "x = 1", (1, 2))
    assert type(reply.strip()) is str


@pytest.mark.parametrize(
    ("token_ids", "complaint"),
    [
        ([[1, 2]], "flat sequence"),
        ([1.5], "flat sequence"),
        (7, "flat sequence"),
        ([1, -1], "negative"),
        ([], "empty"),
    ],
)
def test_token_ids_are_checked(token_ids: Any, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        SampledReply("x", token_ids)
