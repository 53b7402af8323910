"""How a candidate's output is compared with the oracle.

The error of element ``i`` is scaled by the output's own size, never by a constant::

    scale = RMS of the finite expected values
    e_i   = max(|a_i - x_i| - absolute, 0) / (|x_i| + scale)

so that a softmax over 393,216 columns (outputs near 2.5e-6) is held to the same relative accuracy as an
activation of order one, and a value near zero among larger ones is not asked for digits it cannot have.
The largest ``e_i`` counts, not a share of the elements, and in half precision their RMS as well:
:mod:`gym_kernel.evaluator.error_bound` has the bounds.

Everything runs in chunks on the tensors' own device, and the host waits once where all is well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import accumulate

import torch

from gym_kernel.evaluator.error_bound import ErrorSize, allowed_error, allowed_rms, is_exact, real_dtype
from gym_kernel.evaluator.tally import NOWHERE, Details, Tally
from gym_kernel.evaluator.verdict import Agreement
from gym_kernel.tasks.task import Tolerance

__all__ = ["Comparison", "compare", "output_scale", "scaled_error"]

_CHUNK_ELEMENTS = {"cuda": 1 << 24, "cpu": 1 << 19}

_NO_ERROR = ErrorSize()

# Sums of float32 squares between these have neither overflowed nor lost themselves in denormals.
_SAFE_SQUARES = (1e-30, 3e38)


def output_scale(expected: torch.Tensor) -> float:
    """RMS of the finite values of ``expected``; 0.0 where there are none. Waits on the device."""
    if expected.numel() == 0 or is_exact(expected.dtype):
        return 0.0
    wide = torch.float64 if real_dtype(expected.dtype) == torch.float64 else torch.float32
    chunks = [chunk for (chunk,) in _chunks(_as_real(expected))]
    norms = torch.stack([torch.linalg.vector_norm(chunk, dtype=wide) for chunk in chunks])
    total: float = norms.double().square_().sum().item()
    count: float = sum(chunk.numel() for chunk in chunks)
    if not _SAFE_SQUARES[0] < total < _SAFE_SQUARES[1]:
        total, count = torch.stack([_finite_squares(chunk) for chunk in chunks]).sum(dim=0).tolist()
    return math.sqrt(total / count) if count else 0.0


def scaled_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Largest scaled error of ``actual``: how the reference's own error is measured.

    Args:
        actual: Output at working precision, any shape.
        expected: The oracle's values, same shape and device.

    Returns:
        The largest ``e_i``; infinite where a NaN or Inf stands in one of the two alone.
    """
    comparison = Comparison(actual.dtype, scale=output_scale(expected), tolerance=Tolerance())
    comparison.add(actual, expected)
    return comparison.largest


def compare(
    actual: torch.Tensor,
    expected: torch.Tensor,
    *,
    tolerance: Tolerance,
    reference_error: ErrorSize = _NO_ERROR,
    input_kind: str = "official",
    scale: float | None = None,
) -> Agreement:
    """Compare a whole output with the oracle.

    Args:
        actual: The candidate's output, in the dtype the task asks for.
        expected: The oracle's values on the same device, same shape: float64, or ``actual``'s dtype at least.
        tolerance: The task's tolerance.
        reference_error: The eager reference's own; none where the expected values are its own.
        input_kind: Name of the inputs, for the record.
        scale: :func:`output_scale` of ``expected`` where it is known already, which saves a pass.

    Returns:
        The agreement. Its ``max_rel_error`` has the absolute tolerance taken off, ``max_abs_error`` has not.

    Raises:
        ValueError: The shapes or devices differ; both are the caller's to check first.
    """
    comparison = Comparison(
        actual.dtype,
        scale=output_scale(expected) if scale is None else scale,
        tolerance=tolerance,
        reference_error=reference_error,
        input_kind=input_kind,
        shape=tuple(actual.shape),
    )
    comparison.add(actual, expected)
    return comparison.agreement()


class Comparison:
    """A comparison fed slice by slice, for oracles that do not fit into memory at once.

    Args:
        dtype: Dtype of the output.
        scale: :func:`output_scale` of the whole expected output (the float32 reference's is good enough).
        tolerance: The task's tolerance.
        reference_error: The eager reference's own; none where the expected values are its own.
        input_kind: Name of the inputs, for the record.
        shape: Shape of the whole output, to say where the worst element is.
    """

    def __init__(
        self,
        dtype: torch.dtype,
        *,
        scale: float,
        tolerance: Tolerance,
        reference_error: ErrorSize = _NO_ERROR,
        input_kind: str = "official",
        shape: tuple[int, ...] = (),
    ) -> None:
        self._dtype = dtype
        self._exact = is_exact(dtype)
        self._absolute = 0.0 if self._exact else tolerance.absolute
        self._allowed = allowed_error(dtype, tolerance, reference_error.largest)
        self._reference_rms = reference_error.rms
        # An oracle of zeros alone has no size of its own; the smallest normal number keeps 0/0 out.
        self._scale = 1.0 if self._exact else max(scale, torch.finfo(real_dtype(dtype)).tiny)
        self._input_kind = input_kind
        self._shape = shape
        self._elements = 0
        self._tally = Tally()

    def add(self, actual: torch.Tensor, expected: torch.Tensor) -> None:
        """Compare the next slice, in the order of the elements; at most two waits on the device.

        Raises:
            ValueError: The shapes or devices differ.
        """
        if actual.shape != expected.shape or actual.device != expected.device:
            raise ValueError(
                f"Compare tensors of one shape on one device, not {tuple(actual.shape)} on {actual.device} "
                f"with {tuple(expected.shape)} on {expected.device}."
            )
        if actual.numel() == 0:
            return
        if self._agrees_at_a_glance(actual, expected):
            self._elements += actual.numel()
            return
        pairs = list(_chunks(_as_real(actual), _as_real(expected)))
        starts = list(accumulate((a.numel() for a, _ in pairs), initial=self._elements))
        self._elements = starts.pop()
        maxima = torch.stack([self._maxima(a, x) for a, x in pairs]).tolist()
        suspect = []
        for (a, x), start, (absolute, relative, squares) in zip(pairs, starts, maxima, strict=True):
            # Written so that NaN, which compares false, is looked into.
            if relative <= self._allowed:
                self._tally.merge_clean(absolute, relative, squares)
            else:
                suspect.append(self._details(a, x, start))
        if suspect:
            for row in torch.stack(suspect).tolist():
                self._tally.merge(Details(*row))

    def _agrees_at_a_glance(self, actual: torch.Tensor, expected: torch.Tensor) -> bool:
        """One fused pass on a GPU, which settles every slice that is right and finite."""
        dtypes = (torch.float16, torch.bfloat16, torch.float32)
        contiguous = actual.is_contiguous() and expected.is_contiguous()
        # The pass divides in float32, which must hold the scale with room below it.
        if not (actual.is_cuda and contiguous and actual.dtype in dtypes and self._scale > 1e-20):
            return False
        if expected.dtype not in (*dtypes, torch.float64):
            return False
        try:
            from gym_kernel.evaluator.numerics_fused import error_sizes
        except ImportError:
            return False
        with torch.cuda.device(actual.device):
            absolute, relative, squares = error_sizes(actual, expected, self._absolute, self._scale)
        if not relative <= self._allowed:
            return False
        self._tally.merge_clean(absolute, relative, squares)
        return True

    @property
    def largest(self) -> float:
        """Largest scaled error so far; infinite where a NaN or Inf is out of place."""
        return max(self._tally.max_rel, self._tally.worst)

    @property
    def _rms(self) -> float:
        return math.sqrt(self._tally.squares / self._elements) if self._elements else 0.0

    def agreement(self) -> Agreement:
        """The result over everything added so far."""
        tally = self._tally
        return Agreement(
            rms_error=self._rms,
            rms_tolerance=allowed_rms(self._dtype, self._elements, self._reference_rms),
            input_kind=self._input_kind,
            elements=self._elements,
            mismatched=tally.mismatched,
            max_abs_error=tally.max_abs,
            max_rel_error=tally.max_rel,
            tolerance=self._allowed,
            worst_index=self._unravel(tally.worst_position) if tally.mismatched else (),
            worst_actual=tally.worst_actual if tally.mismatched else None,
            first_wrong=self._share(tally.first_wrong, self._elements),
            first_wrong_column=self._share(tally.first_wrong_column, self._row_elements()),
            nan_count=tally.nans,
            inf_count=tally.infs,
            expected_nonfinite=tally.expected_nonfinite,
        )

    def _maxima(self, actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Largest absolute and scaled error of a chunk and the sum of the latter's squares; NaN where anything is NaN.

        Returns:
            float64, shape (3,).
        """
        if self._exact:
            differs = (actual != expected).any().double()
            return torch.stack((torch.zeros_like(differs), differs, differs))
        actual, expected = _widened(actual, expected)
        error = torch.sub(actual, expected).abs_()
        largest = error.amax()
        if self._absolute:
            error.sub_(self._absolute).clamp_(min=0.0)
        relative = error.div_(expected.abs().add_(self._scale))
        return torch.stack((largest.double(), relative.amax().double(), _sum_of_squares(relative)))

    def _details(self, actual: torch.Tensor, expected: torch.Tensor, start: int) -> torch.Tensor:
        """Fields of :class:`Details` for one chunk, float64."""
        if self._exact:
            unequal = actual != expected
            actual, expected = actual.double(), expected.double()
        else:
            # What the oracle holds beyond the range of the dtype is infinite there.
            narrowed = expected.to(actual.dtype).to(expected.dtype)
            expected = torch.where(narrowed.isinf(), narrowed, expected)
            actual, expected = _widened(actual, expected)
            unequal = ~((actual == expected) | (actual.isnan() & expected.isnan()))
        both = actual.isfinite() & expected.isfinite()
        error = torch.where(both, (actual - expected).abs_(), 0.0)
        relative = (error - self._absolute).clamp_(min=0.0) / (expected.abs() + self._scale)
        # Integers count as wholly wrong or right; so does a NaN or Inf, wherever it stands.
        relative = unequal.double() if self._exact else relative
        judged = torch.where(both, relative, torch.where(unequal, math.inf, 0.0))
        worst = judged.argmax()
        wrong = judged > self._allowed
        positions = torch.arange(start, start + judged.numel(), device=judged.device)
        nowhere = int(NOWHERE)
        parts = (
            wrong.sum(),
            error.max(),
            torch.where(both, relative, 0.0).max(),
            _sum_of_squares(torch.where(both, relative, 0.0)),
            judged[worst],
            worst + start,
            actual[worst],
            torch.where(wrong, positions, nowhere).amin(),
            torch.where(wrong, positions % self._row_elements(), nowhere).amin(),
            actual.isnan().sum(),
            actual.isinf().sum(),
            (~expected.isfinite()).sum(),
        )
        return torch.stack([part.double() for part in parts])

    def _row_elements(self) -> int:
        """Elements in a row, real and imaginary parts counted singly; the whole output where there are no rows."""
        parts = 2 if self._dtype.is_complex else 1
        return max((self._shape[-1] if self._shape else self._elements) * parts, 1)

    @staticmethod
    def _share(position: float, elements: int) -> float:
        return 0.0 if position == NOWHERE else position / max(elements, 1)

    def _unravel(self, position: int) -> tuple[int, ...]:
        if self._dtype.is_complex:
            position //= 2
        index: list[int] = []
        for size in reversed(self._shape):
            position, remainder = divmod(position, size)
            index.append(remainder)
        return tuple(reversed(index))


def _as_real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Matching one-dimensional pieces in the order of the elements, views wherever the layouts allow it."""
    first = tensors[0]
    limit = _CHUNK_ELEMENTS.get(first.device.type, 1 << 20)
    if first.numel() <= limit or all(tensor.is_contiguous() for tensor in tensors):
        yield from zip(*(torch.split(tensor.detach().reshape(-1), limit) for tensor in tensors), strict=True)
        return
    for rows in zip(*tensors, strict=True):
        yield from _chunks(*rows)


def _widened(actual: torch.Tensor, expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both in a dtype whose differences are not rounded away: float32 at least."""
    wide = torch.float64 if torch.float64 in (actual.dtype, expected.dtype) else torch.float32
    # A float32 operand is promoted inside the kernel, without a copy.
    actual = actual if actual.dtype in (wide, torch.float32) else actual.to(wide)
    return actual, expected if expected.dtype == wide else expected.to(wide)


def _sum_of_squares(errors: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(errors).double().square_()


def _finite_squares(chunk: torch.Tensor) -> torch.Tensor:
    """Sum of squares and count of the finite values of a chunk, float64, shape (2,)."""
    finite = chunk.isfinite()
    squares = torch.where(finite, chunk, 0.0).double().square_().sum()
    return torch.stack((squares, finite.sum().double()))
