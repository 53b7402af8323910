"""Rounding to fewer significant bits: what arithmetic of the next lower precision does to a value."""

from __future__ import annotations

import torch

__all__ = ["LOWER_PRECISIONS", "rounded"]

#: For each dtype the next lower precisions, with their significant bits (the hidden one included).
LOWER_PRECISIONS: dict[torch.dtype, tuple[tuple[str, int], ...]] = {
    torch.float64: (("float32", 24),),
    torch.float32: (("float16", 11), ("bfloat16", 8)),
    torch.float16: (("float8_e4m3", 4), ("float8_e5m2", 3)),
    torch.bfloat16: (("float8_e4m3", 4), ("float8_e5m2", 3)),
}


# Rounding holds several temporaries, which must not be as large as a task's outputs.
_CHUNK_ELEMENTS = 1 << 24


def rounded(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """Round to the nearest value of so many significant bits, ties to even; the range of exponents stays.

    A submission may scale its values before it rounds them, so the range of the lower precision is no obstacle
    to it.

    Args:
        tensor: Floating-point, any shape.
        bits: Significant bits, the hidden one included.

    Returns:
        A new, contiguous tensor of the same dtype; NaN and Inf stay.
    """
    result = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    pieces = zip(
        result.view(-1).split(_CHUNK_ELEMENTS), tensor.reshape(-1).split(_CHUNK_ELEMENTS), strict=True
    )
    for target, piece in pieces:
        target.copy_(_rounded_piece(piece, bits))
    return result


def _rounded_piece(piece: torch.Tensor, bits: int) -> torch.Tensor:
    wide = piece if piece.dtype == torch.float64 else piece.float()
    mantissa, exponent = torch.frexp(torch.where(wide.isfinite(), wide, 0.0))
    steps = float(1 << bits)
    value = torch.ldexp((mantissa * steps).round_().div_(steps), exponent)
    return torch.where(wide.isfinite(), value, wide)
