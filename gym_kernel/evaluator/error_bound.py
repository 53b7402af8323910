"""How far an honest kernel may be from the oracle: by its worst element, and on the whole.

The worst element alone would let through what rounds every element alike: in half precision its bound is a few units
in the last place, and a bias of two per cent fits below that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from gym_kernel.tasks.task import Tolerance

__all__ = ["ErrorSize", "allowed_error", "allowed_rms", "is_exact", "is_well_posed", "real_dtype"]

_HARD_CAP = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}

_REFERENCE_FACTOR = 16.0
_EPS_FACTOR = 32.0

_HALF = (torch.float16, torch.bfloat16)
_RMS_EPS = 0.6
_RMS_REFERENCE_FACTOR = 4.0
_RMS_SPREAD = 2.0


@dataclass(frozen=True)
class ErrorSize:
    """Scaled errors of one output against the oracle, as :mod:`gym_kernel.evaluator.numerics` defines them.

    Attributes:
        largest: That of the worst element.
        rms: Their root mean square.
    """

    largest: float = 0.0
    rms: float = 0.0

    def doubled(self) -> ErrorSize:
        """Twice the size: what two such outputs may be from each other."""
        return ErrorSize(2 * self.largest, 2 * self.rms)

    def joined(self, other: ErrorSize) -> ErrorSize:
        """The larger of both, in either respect."""
        return ErrorSize(max(self.largest, other.largest), max(self.rms, other.rms))


def allowed_error(dtype: torch.dtype, tolerance: Tolerance, reference_error: float = 0.0) -> float:
    """Largest scaled error that an honest kernel may have.

    ``min(max(16 * reference_error, 32 * eps, eps * sqrt(reduction_length)), cap, task's own cap)``, where

    * ``16 * reference_error``: the eager reference rounds as well. Another order of summation or another
      library's exp may be several times worse, not hundreds of times.
    * ``32 * eps`` (3.8e-6 in float32): the CUDA guide gives 2 + 1.16 x ulp for ``__expf`` and 2 ulp for
      ``ex2.approx`` and ``__fdividef``. Where exp(x) still matters beside the scale (x > -8) that is at most
      13 ulp, and the division adds 2.
    * ``eps * sqrt(reduction_length)``: the rounding of a sum of K terms grows like a random walk (Higham,
      *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 4.2). 7.5e-5 for 393,216 columns.
    * the cap keeps out arithmetic of the next lower precision, whatever the other three allow. float16 and
      TF32 round to 4.9e-4, so an element near the scale is off by up to 2.4e-4: over float32's cap of 1e-4.
      In half precision 5e-3 (float16) and 3e-2 (bfloat16) are about 5 and 4 eps, a handful of rounded
      intermediates, and below the 6e-2 that float8 rounds to. In float64 1e-12 is far below float32's 6e-8.

    Args:
        dtype: Dtype of the output. Integers and booleans are compared exactly.
        tolerance: The task's reduction length and cap. Its absolute tolerance is applied to the errors instead.
        reference_error: Largest scaled error of the eager reference against the float64 oracle; 0 where the
            expected values come from the reference itself.

    Returns:
        A relative error; 0.0 for dtypes that are compared exactly.
    """
    if is_exact(dtype):
        return 0.0
    dtype = real_dtype(dtype)
    eps = torch.finfo(dtype).eps
    grown = max(
        _REFERENCE_FACTOR * reference_error, _EPS_FACTOR * eps, eps * math.sqrt(tolerance.reduction_length)
    )
    # Float8 outputs have no cap of their own: a few roundings of theirs is what their range can hold.
    cap = _HARD_CAP.get(dtype, 4 * eps)
    return min(grown, cap) if tolerance.cap is None else min(grown, cap, tolerance.cap)


def allowed_rms(dtype: torch.dtype, elements: int, reference_rms: float = 0.0) -> float | None:
    """Largest root mean square of the scaled errors that an honest kernel may have.

    ``max(0.6 * eps, 4 * reference_rms) * (1 + 2 / sqrt(elements))`` in float16 and bfloat16. A value that is rounded
    once is off by at most eps / 2, evenly spread: 0.1 eps in the RMS of scaled errors, where most values are near the
    scale. Independent roundings add in squares, so 0.6 eps has room for some thirty of them, or for a few where they
    are amplified, while a bias of 2 % (bfloat16: 0.8 to 1.3 eps) or 0.4 % (float16: 1.7 eps), float16 sums of 256 terms
    (1.2 eps) and float8 operands (3 eps) are out. Of few elements the RMS may come out larger by chance.

    Args:
        dtype: Dtype of the output.
        elements: How many there are.
        reference_rms: The same figure of the eager reference against the float64 oracle.

    Returns:
        A relative error; ``None`` for other dtypes, where the worst element's bound is tight enough.
    """
    dtype = real_dtype(dtype)
    if dtype not in _HALF:
        return None
    grown = max(_RMS_EPS * torch.finfo(dtype).eps, _RMS_REFERENCE_FACTOR * reference_rms)
    return grown * (1 + _RMS_SPREAD / math.sqrt(max(elements, 1)))


def is_well_posed(dtype: torch.dtype, reference_error: float) -> bool:
    """Whether inputs are fit to judge by: the reference itself stays within half the hard cap.

    Where it does not (it overflows, or cancels all its digits), a disagreement says nothing about a
    candidate.

    Args:
        dtype: Dtype of the output.
        reference_error: The reference's largest scaled error.
    """
    if is_exact(dtype):
        return True
    dtype = real_dtype(dtype)
    return reference_error <= 0.5 * _HARD_CAP.get(dtype, 4 * torch.finfo(dtype).eps)


def is_exact(dtype: torch.dtype) -> bool:
    """Whether outputs of a dtype are compared exactly."""
    return not (dtype.is_floating_point or dtype.is_complex)


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the parts of complex numbers; any other dtype itself."""
    return dtype.to_real() if dtype.is_complex else dtype
