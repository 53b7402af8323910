"""What a disagreement with the oracle looks like, and so where to look for its cause."""

from __future__ import annotations

from gym_kernel.evaluator.verdict import Agreement

__all__ = ["diagnosis"]

# float16 and TF32 keep 11 bits of a value, bfloat16 8: what one or a few roundings of theirs leave.
_HALF_ERRORS = (2e-4, 2e-3)
_BFLOAT16_ERROR = 3e-2
_MOST = 0.2
_NEARLY = 100
_TAIL = 0.5
_FEW = 0.05
_INT32_ELEMENTS = tuple(float(1 << power) for power in (29, 30, 31))
_AT = 1e-3

_BY_KIND = {
    "outlier_blocks": (
        "Earlier inputs agree; these have large values in a small part of every row, at its end, its start or between. "
        "Look whether the sum or the maximum takes in every element of a row, and whether the last block is masked "
        "rightly."
    ),
    "large_scale": (
        "Smaller inputs agree. Look at what large values do: overflow of exp (subtract the maximum before it), clamps, "
        "the ends of an approximation."
    ),
    "offset": (
        "Inputs around zero agree. Look at overflow of exp (subtract the maximum before it) and at differences of "
        "large numbers."
    ),
    "small_scale": (
        "Larger inputs agree. Look at digits lost near zero: differences of nearly equal numbers, flushing to zero."
    ),
    "negative_tail": (
        "Other inputs agree; these lie between -9 and -3, where many functions are small. Look at the ends of an "
        "approximation, and at small values that are cut off to zero."
    ),
    "huge": (
        "Smaller inputs agree; these are in the ten thousands (hundreds in float16) or at the edges of what is "
        "allowed. Use -inf and inf, not finite numbers, where a maximum or minimum starts and where a block is padded, "
        "and float32 for squares and sums."
    ),
    "sparse": "Look at rows of zeros alone (division by their norm), and at what exact zeros do.",
    "signed_normal": "The official inputs agree. Look at what negative values do.",
}


def diagnosis(agreement: Agreement) -> str:
    """Say where to look for the cause of wrong values.

    Args:
        agreement: A comparison in which something is wrong.

    Returns:
        One to three sentences. Nothing in them depends on more than sizes and places of errors, so they tell no
        hidden value.
    """
    if not agreement.mismatched and agreement.is_biased:
        return (
            "Every element is near enough by itself, but together they are further off than rounding explains. Look "
            "for a factor that is slightly off (a mean over too many elements, a rounded constant) and for sums or "
            "operands kept in lower precision: accumulate in float32 and round once, at the store."
        )
    first_element = agreement.first_wrong * agreement.elements
    if any(abs(first_element - limit) <= _AT * limit for limit in _INT32_ELEMENTS):
        return (
            f"The first wrong element is number {first_element:,.0f}, where offsets in 32 bits overflow: compute "
            "offsets in int64, for instance tl.program_id(0).to(tl.int64) * BLOCK."
        )
    if agreement.nan_count + agreement.inf_count > agreement.expected_nonfinite:
        return (
            "Look for overflow (subtract the maximum before exp), division by zero, and elements that are "
            f"never written: outputs are filled with NaN beforehand.{_tail(agreement)}"
        )
    # A row that is just over the bound may stand anywhere; what was left out is wrong by far.
    return _precision(agreement) or _tail(agreement).strip() or _elsewhere(agreement)


def _tail(agreement: Agreement) -> str:
    if agreement.first_wrong_column >= _TAIL:
        where = f"the last {100 * (1 - agreement.first_wrong_column):.3g} % of their rows"
    elif agreement.first_wrong >= _TAIL and agreement.input_kind != "outlier_blocks":
        # With outliers some rows go wrong and some do not, so where the first of them stands is chance.
        where = f"the last {100 * (1 - agreement.first_wrong):.3g} % of the output"
    else:
        return ""
    return (
        f" All wrong elements stand in {where}: look at the number of programs, the last block, and its mask."
    )


def _precision(agreement: Agreement) -> str:
    error = agreement.max_rel_error
    nearly_all = agreement.mismatched >= _MOST * agreement.elements
    if nearly_all and _HALF_ERRORS[0] <= error <= _HALF_ERRORS[1]:
        return (
            "Nearly every element is off by what float16 or TF32 arithmetic leaves: compute and accumulate in float32, "
            'and give tl.dot input_precision="ieee".'
        )
    if nearly_all and _HALF_ERRORS[1] < error <= _BFLOAT16_ERROR:
        return (
            "Nearly every element is off by what bfloat16 arithmetic or an approximated function leaves: compute and "
            "accumulate in float32, and use an exact exp, tanh or division in place of an approximation."
        )
    if error <= _NEARLY * agreement.tolerance:
        return (
            "The formula is nearly right: look at precision, such as sums in float32, exact constants, exact exp and "
            "division."
        )
    return ""


def _elsewhere(agreement: Agreement) -> str:
    if agreement.mismatched <= _FEW * agreement.elements:
        return (
            "Few elements are wrong: look at masks, the last block, and values at the edges of the formula."
        )
    return _BY_KIND.get(agreement.input_kind, "Look at the formula and at the indexing of loads and stores.")
