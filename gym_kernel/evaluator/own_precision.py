"""Keeping references at the precision of their dtype."""

from __future__ import annotations

import torch

__all__ = ["compute_as_written"]


def compute_as_written() -> None:
    """Have torch compute in the dtypes that a reference names, in this process.

    By default convolutions use TF32, and split sums of half-precision products add up in half precision; a
    submission would be held to values that are further from the truth than its own.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
