"""Problems of KernelBench that no judge can hold a kernel to, and why.

Found by reading every problem and by running impostors against the judge's own rule
(``benchmarks/kernelbench_survey.py``). Problems whose *official inputs* alone let an impostor pass are not here where
hidden inputs tell it apart: on U[0, 1) inputs, for instance, ``return x`` passes for ReLU.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gym_kernel.tasks.kernelbench.problem import Problem

__all__ = ["UNSOUND", "Flaw", "Unsound", "flaw_of"]


class Flaw(str, Enum):
    """What is wrong with a problem."""

    CONSTANT = "constant"
    """The output does not depend on the inputs, or only by rounding errors."""
    RANDOM = "random"
    """The reference draws random numbers in ``forward``: two runs of it disagree."""
    UNCOPYABLE = "uncopyable"
    """The reference keeps tensors or modules where a float64 copy or a dry run of it cannot follow."""
    UNSTABLE = "unstable"
    """In float32 the reference is further from exact than an honest kernel may be: no kind of inputs is fit."""
    REMOVABLE = "removable"
    """Most of the counted work has no influence on the output or collapses by algebra: its roofline is no floor."""


@dataclass(frozen=True)
class Unsound:
    """Why a problem is refused.

    Attributes:
        flaw: What kind of flaw it is.
        reason: The flaw in a clause, to follow a colon.
    """

    flaw: Flaw
    reason: str


def _constant(reason: str) -> Unsound:
    return Unsound(Flaw.CONSTANT, reason)


def _random(reason: str) -> Unsound:
    return Unsound(Flaw.RANDOM, reason)


def _unstable(reason: str) -> Unsound:
    return Unsound(Flaw.UNSTABLE, reason)


def _removable(reason: str) -> Unsound:
    return Unsound(Flaw.REMOVABLE, reason)


#: By level and number at the pinned revision.
UNSOUND: dict[tuple[int, int], Unsound] = {
    (2, 13): _removable(
        "the transposed convolution is averaged over its depth, which a convolution of the input's sums over depth "
        "gives with a 32nd of the work"
    ),
    (2, 14): _removable(
        "the product is summed over its columns, so one product with the sum of the weight's rows replaces it"
    ),
    (2, 18): _removable(
        "the product is summed over its columns, so one product with the sum of the weight's rows replaces it, and "
        "the maximum, mean and two logsumexp after it go over a single element"
    ),
    (2, 23): _constant(
        "the mean over a whole sample after GroupNorm is the mean of its bias, which is 0: what is left is rounding"
    ),
    (2, 36): _constant(
        "it sums 256 minima over 128 channels, which is far below zero, and its GELU is 0: the output is the bias "
        "whatever the input"
    ),
    (2, 42): _removable(
        "the mean over all pixels of a transposed convolution is that of the input's channel sums times the sums of "
        "the weights"
    ),
    (2, 44): _removable(
        "the mean over all pixels of a transposed convolution follows from a few sums of the input, and the second "
        "mean goes over a single element"
    ),
    (2, 51): _removable(
        "the product is averaged over its columns, so one product with the mean of the weight's rows replaces it, "
        "and the logsumexp after it goes over a single element"
    ),
    (2, 58): _constant(
        "a logsumexp is seldom below zero, so what it clamps to [-1, 1] after subtracting one random scalar is the "
        "same number for nearly every input (1, with the parameters on a CPU)"
    ),
    (2, 66): _random("its dropout is active (p = 0.2), so two runs of the reference disagree"),
    (2, 80): _constant("it subtracts from a single maximum its own mean: the output is 0 whatever the input"),
    (2, 83): _constant("it clamps min(x, 0) to [0, 1]: the output is 0 whatever the input"),
    (2, 93): _constant(
        "it keeps min(x + 0.5, 0) of a convolution's small outputs: all but one in a million are 0, and inputs of "
        "which more are left make its GELU ill-posed in float32"
    ),
    (2, 98): _removable(
        "the product is averaged over groups of 16 columns, so the product with the averaged weights replaces it "
        "with a 16th of the work"
    ),
    (3, 10): _unstable("in float32 it is off by 4e-4 of its outputs' size at the official sizes"),
    (3, 20): _unstable("in float32 it is off by 1e-4 of its outputs' size at the official sizes"),
    (3, 24): _unstable("in float32 it is off by 5e-2 of its outputs' size at the official sizes"),
    (3, 28): _constant(
        "its transformer takes the batch for the sequence, so that the class token never sees a patch: the output "
        "does not depend on the image"
    ),
    (3, 33): Unsound(
        Flaw.UNCOPYABLE, "it keeps its hidden state from call to call in an attribute that is no buffer"
    ),
    (3, 35): _random("it draws the LSTM's initial states in forward, so two runs of the reference disagree"),
    (3, 49): _removable(
        "it returns the final state alone: the diagonal blocks, four fifths of the work that is counted, are thrown "
        "away"
    ),
}


def flaw_of(problem: Problem) -> Unsound | None:
    """Why a problem is unsound; ``None`` where nothing is known against it.

    The place and the name's number decide: a text that was changed after the pinned revision is refused as well,
    until somebody asks for it.
    """
    return UNSOUND.get((problem.level, problem.number))
