"""What vendors say their GPUs can do: a cross-check of measured ceilings, and their fall-back.

Rates are dense (no structured sparsity), at boost clock. ``float32`` and ``float64`` are the rates of the
unit that full-precision products may use; ``tf32`` is apart because it rounds its operands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["DatasheetEntry", "lookup"]

_TERA = 1e12
_GIGA = 1e9
_MEBI = 1 << 20


@dataclass(frozen=True)
class DatasheetEntry:
    """One product's figures.

    Attributes:
        product: Name for people.
        bandwidth_bytes_per_s: Peak memory bandwidth, bytes per second.
        flops_per_s: Dense peak by ``"float64"``, ``"float32"``, ``"tf32"``, ``"float16"``, ``"bfloat16"`` and
            ``"float8"`` where the product has it, FLOP/s.
        l2_bytes: Size of the L2 cache.
        source: Where the figures are printed.
    """

    product: str
    bandwidth_bytes_per_s: float
    flops_per_s: dict[str, float]
    l2_bytes: int
    source: str


def lookup(device_name: str) -> DatasheetEntry | None:
    """Find a GPU by the name its driver gives it.

    Args:
        device_name: For instance ``"NVIDIA H100 80GB HBM3"`` or ``"NVIDIA A100-PCIE-40GB"``; case does not
            matter.

    Returns:
        The entry, or None where the product is not in the table.

    Example:
        >>> lookup("NVIDIA A100-SXM4-80GB").product
        'A100 80GB SXM'
    """
    words = set(re.split(r"[^A-Z0-9]+", device_name.upper()))
    for required, excluded, entry in _TABLE:
        if required <= words and not excluded & words:
            return entry
    return None


def _entry(
    product: str,
    gigabytes_per_s: float,
    teraflops: tuple[float, float, float, float, float],
    l2_mebibytes: int,
    source: str,
) -> DatasheetEntry:
    """Build an entry; ``teraflops``: float64, float32, tf32, float16 (as bfloat16), float8 (0: none)."""
    float64, float32, tf32, half, float8 = (rate * _TERA for rate in teraflops)
    rates = {"float64": float64, "float32": float32, "tf32": tf32, "float16": half, "bfloat16": half}
    if float8:
        rates["float8"] = float8
    return DatasheetEntry(product, gigabytes_per_s * _GIGA, rates, l2_mebibytes * _MEBI, source)


_A100 = (19.5, 19.5, 156.0, 312.0, 0.0)
_A100_SOURCE = "NVIDIA A100 Tensor Core GPU datasheet, 2021"
_H100 = (67.0, 67.0, 494.7, 989.4, 1978.9)
_H100_SOURCE = "NVIDIA H100 Tensor Core GPU datasheet; architecture white paper v1.03"

_A100_SXM_80 = _entry("A100 80GB SXM", 2039, _A100, 40, _A100_SOURCE)
_A100_SXM_40 = _entry("A100 40GB SXM", 1555, _A100, 40, _A100_SOURCE)
_A100_PCIE_80 = _entry("A100 80GB PCIe", 1935, _A100, 40, _A100_SOURCE)
_A100_PCIE_40 = _entry("A100 40GB PCIe", 1555, _A100, 40, _A100_SOURCE)
_H100_SXM = _entry("H100 SXM", 3352, _H100, 50, _H100_SOURCE)
_H100_PCIE = _entry("H100 PCIe", 2039, (51.2, 51.2, 378.0, 756.0, 1513.0), 50, _H100_SOURCE)
_H100_NVL = _entry("H100 NVL", 3938, (60.0, 60.0, 417.5, 835.5, 1671.0), 50, _H100_SOURCE)
_H200 = _entry("H200", 4800, _H100, 60, "NVIDIA H200 Tensor Core GPU datasheet, 2024; L2 as CUDA reports it")
_B200 = _entry(
    "B200", 8000, (40.0, 80.0, 1125.0, 2250.0, 4500.0), 126, "NVIDIA Blackwell architecture brief, 2024"
)
_L40S = _entry("L40S", 864, (1.4, 91.6, 183.0, 362.0, 733.0), 96, "NVIDIA L40S datasheet, 2023")
# With float32 accumulation, as torch's products do it; float16 accumulation is twice as fast.
_RTX_4090 = _entry(
    "GeForce RTX 4090", 1008, (1.3, 82.6, 82.6, 165.2, 330.3), 72, "NVIDIA Ada architecture white paper v2.1"
)

# First match wins: words that must be in the name, words that must not, and the product.
_TABLE: tuple[tuple[frozenset[str], frozenset[str], DatasheetEntry], ...] = tuple(
    (frozenset(required.split()), frozenset(excluded.split()), entry)
    for required, excluded, entry in (
        ("A100 SXM4 80GB", "", _A100_SXM_80),
        ("A100 SXM 80GB", "", _A100_SXM_80),
        ("A100 SXM4 40GB", "", _A100_SXM_40),
        ("A100 SXM 40GB", "", _A100_SXM_40),
        ("A100 80GB", "", _A100_PCIE_80),
        ("A100 40GB", "", _A100_PCIE_40),
        ("H100 PCIE", "", _H100_PCIE),
        ("H100 NVL", "", _H100_NVL),
        # A slice of a GPU (MIG) has a fraction of everything.
        ("H100", "MIG 64GB 96GB", _H100_SXM),
        ("H200", "MIG NVL", _H200),
        ("B200", "MIG", _B200),
        ("L40S", "MIG", _L40S),
        ("RTX 4090", "LAPTOP D", _RTX_4090),
    )
)
