"""Parameters and buffers drawn anew for every evaluation, from its secret seeds.

What a constructor makes can be made by a submission too, where the seed is known, and often has a property that an
input never shows: weights of a norm that are all positive, biases that start as zeros, stored variances beside which
an epsilon is nothing.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

import torch

__all__ = ["Liberty", "ParameterDraw"]

_SIZES = (0.5, 1.5)
_NOISE = 0.1
_FROM_ZERO = (0.1, 0.5)
# A temperature, a slope, an epsilon: of so few values one of the wrong sign may change the function.
_FEW = 8
# Enough for one that takes all signs for positive to fail; with more, a slope of the wrong sign would give a few large
# outputs in every row, and hide what is wrong with small ones.
_FLIPPED = 1 / 256
# A variance of so many times its constructed size: beside 0.002 an epsilon of 1e-5 is a quarter of a per cent of the
# output, and what is divided by its root is at most 45 times as large, which float16 bears. All channels alike: a few
# of large outputs would hide what is wrong with the others.
_NEAR_ZERO = 2e-3
_VARIANCES = ("var", "variance")
_CHUNK_ELEMENTS = 1 << 24
_TRIED = (101, 102, 103)


class Liberty(Enum):
    """How far drawn values may go from constructed ones."""

    NEAR_ZERO = "near_zero"
    """As ``FULL``, and stored variances are near zero."""
    FULL = "full"
    """Another size, the other sign here and there, and some noise."""
    SIZE = "size"
    """Another size; signs and zeros stay, but for tensors of nothing but zeros."""
    NONE = "none"
    """As constructed."""


class ParameterDraw:
    """The parameters of some models that are to hold the same values.

    Args:
        models: The reference, and copies of it in other precisions or forms. Names are the first one's; a model that
            lacks one of them, or has it in another shape, forbids any change.
    """

    def __init__(self, models: Sequence[torch.nn.Module]) -> None:
        first, *others = (model.state_dict() for model in models)
        trained = {name for name, _ in models[0].named_parameters(remove_duplicate=False)}
        self._tensors: list[_Drawn] = []
        known: dict[tuple[int, torch.Size], _Drawn] = {}
        alike = all(_shapes(other) == _shapes(first) for other in others)
        for name, tensor in first.items() if alike else ():
            if not _may_change(tensor, name in trained):
                continue
            key = (tensor.data_ptr(), tensor.shape)
            twins = [other[name] for other in others]
            if key in known:
                # One tensor under two names is drawn once.
                known[key].twins.extend(twins)
                continue
            known[key] = _Drawn(
                tensor,
                twins,
                may_be_negative=name in trained and tensor.numel() >= _FEW,
                is_variance=name not in trained and name.endswith(_VARIANCES) and bool((tensor > 0).all()),
            )
            self._tensors.append(known[key])
        self.liberty = next(self._liberties(), Liberty.NONE)

    def settle(self, acceptable: Callable[[], bool]) -> None:
        """Find how far values may go, and leave the constructed ones in place.

        Args:
            acceptable: Whether the models do their work with the values that they hold now.
        """
        for liberty in self._liberties():
            self.liberty = liberty
            if all(self._accepts(seed, acceptable) for seed in _TRIED):
                break
        else:
            self.liberty = Liberty.NONE
        for drawn in self._tensors:
            drawn.restore()
        if self.liberty is Liberty.NONE:
            self._tensors.clear()

    def _liberties(self) -> Iterator[Liberty]:
        """Those that may be tried, widest first."""
        if not self._tensors:
            return
        # What is divided by several roots one after the other would leave the range of numbers.
        if sum(drawn.is_variance for drawn in self._tensors) == 1:
            yield Liberty.NEAR_ZERO
        yield from (Liberty.FULL, Liberty.SIZE)

    def _accepts(self, seed: int, acceptable: Callable[[], bool]) -> bool:
        self.draw(seed)
        return acceptable()

    @torch.no_grad()
    def draw(self, seed: int) -> None:
        """Give all models the values of a seed.

        Args:
            seed: Seed of the evaluation's parameters.
        """
        for position, drawn in enumerate(self._tensors):
            generator = torch.Generator(drawn.tensor.device).manual_seed((seed + position) % (1 << 63))
            drawn.draw(generator, self.liberty)


class _Drawn:
    """One tensor in the models' state."""

    def __init__(
        self, tensor: torch.Tensor, twins: list[torch.Tensor], *, may_be_negative: bool, is_variance: bool
    ) -> None:
        self.tensor = tensor
        self.twins = twins
        self.is_variance = is_variance
        self._may_be_negative = may_be_negative
        self._constructed = tensor.clone()
        rms = float(torch.linalg.vector_norm(tensor.float())) / math.sqrt(tensor.numel())
        self._noise = _NOISE * rms if may_be_negative else 0.0
        self._is_zero = rms == 0

    def restore(self) -> None:
        self._hand_on(self._constructed)

    def draw(self, generator: torch.Generator, liberty: Liberty) -> None:
        signed = self._may_be_negative and liberty in (Liberty.NEAR_ZERO, Liberty.FULL)
        shrink = _NEAR_ZERO if self.is_variance and liberty is Liberty.NEAR_ZERO else 1.0
        spread = torch.empty((), device=self.tensor.device).uniform_(*_FROM_ZERO, generator=generator)
        drawn = torch.empty_like(self._constructed, memory_format=torch.contiguous_format)
        for new, old in zip(_chunks(drawn), _chunks(self._constructed), strict=True):
            values = torch.empty(old.shape, dtype=_wide(old), device=old.device)
            if self._is_zero:
                values.normal_(generator=generator).mul_(spread)
                new.copy_(values if signed else values.abs_())
                continue
            values.uniform_(*_SIZES, generator=generator).mul_(old).mul_(shrink)
            if signed:
                other = torch.empty_like(values)
                values.add_(other.normal_(generator=generator), alpha=self._noise)
                values.copysign_(other.uniform_(-_FLIPPED, 1 - _FLIPPED, generator=generator).mul_(old))
            new.copy_(values)
        if signed and not self._is_zero:
            # At least one, wherever it may be.
            flat = drawn.view(-1)
            chosen = random.Random(generator.initial_seed()).randrange(flat.numel())
            flat[chosen] = -self._constructed.reshape(-1)[chosen]
        self._hand_on(drawn)

    @torch.no_grad()
    def _hand_on(self, values: torch.Tensor) -> None:
        # The twins get what the first model's precision made of it.
        for tensor in (self.tensor, *self.twins):
            tensor.copy_(values)


def _shapes(state: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in state.items()}


def _may_change(tensor: torch.Tensor, trained: bool) -> bool:
    if not tensor.is_floating_point() or not tensor.numel() or not bool(tensor.isfinite().all()):
        return False
    if trained:
        return True
    # Buffers: a mask of zeros and ones says which, not how much, and a single number is a constant.
    is_mask = bool(((tensor == 0) | (tensor == 1)).all()) and bool((tensor != tensor.view(-1)[0]).any())
    return tensor.numel() > 1 and not is_mask


def _chunks(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    yield from tensor.reshape(-1).split(_CHUNK_ELEMENTS)


def _wide(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32
