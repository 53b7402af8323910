"""Numbers as people read them: three significant digits and a decimal prefix."""

from __future__ import annotations

__all__ = ["bandwidth_text", "bytes_text", "flop_rate_text", "flops_text", "time_text"]

_PREFIXES = ("", "k", "M", "G", "T", "P")


def time_text(time_us: float) -> str:
    """A time given in microseconds.

    Example:
        >>> time_text(4.4), time_text(3104.6), time_text(2.5e6)
        ('4.40 us', '3.10 ms', '2.50 s')
    """
    if time_us < 1e3:
        return f"{_digits(time_us)} us"
    if time_us < 1e6:
        return f"{_digits(time_us / 1e3)} ms"
    return f"{_digits(time_us / 1e6)} s"


def bytes_text(count: float) -> str:
    """A number of bytes.

    Example:
        >>> bytes_text(12_884_901_888), bytes_text(512)
        ('12.9 GB', '512 B')
    """
    return _scaled(count, "B")


def bandwidth_text(bytes_per_s: float) -> str:
    """A bandwidth in bytes each second.

    Example:
        >>> bandwidth_text(4.2e12)
        '4.20 TB/s'
    """
    return _scaled(bytes_per_s, "B/s")


def flops_text(count: float) -> str:
    """A number of floating-point operations.

    Example:
        >>> flops_text(1.61e9)
        '1.61 GFLOP'
    """
    return _scaled(count, "FLOP")


def flop_rate_text(flops_per_s: float) -> str:
    """A rate in floating-point operations each second.

    Example:
        >>> flop_rate_text(51.2e12)
        '51.2 TFLOP/s'
    """
    return _scaled(flops_per_s, "FLOP/s")


def _scaled(value: float, unit: str) -> str:
    power = 0
    while value >= 999.5 and power < len(_PREFIXES) - 1:
        value /= 1e3
        power += 1
    number = str(int(value)) if not power and float(value).is_integer() else _digits(value)
    return f"{number} {_PREFIXES[power]}{unit}"


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"
