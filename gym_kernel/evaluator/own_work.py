"""Whether a call's values came from the submission's own kernels: the judge's rules.

The evidence is gathered in the worker by :mod:`gym_kernel.evaluator.work_evidence`. What allocates, views, fills
or copies memory is nobody's arithmetic; any other torch operator, and any GPU kernel of a library, is somebody else
doing the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gym_kernel.evaluator.worker_messages import Profile, WorkEvidence

__all__ = [
    "borrowed_kernels",
    "borrowed_operations",
    "is_innocent_kernel",
    "is_innocent_operation",
    "is_torch_operation",
    "refuse_cpu_work",
    "refuse_thin_work",
    "refuse_work",
]

# Allocation, metadata, initialisation and movement: none of these computes a value of the output. Comparisons give
# truth values, which are of use only to an operator that is not in this list.
_INNOCENT = frozenset(
    """
    _local_scalar_dense _reshape_alias _to_copy _unsafe_view alias alias_copy all any arange as_strided as_strided_
    broadcast_to cat chunk clone concat
    constant_pad_nd contiguous copy copy_ cpu cuda detach detach_ empty empty_like
    empty_permuted empty_strided eq equal expand expand_as expand_copy fill fill_ flatten flip full full_like ge gt
    hstack is_floating_point is_nonzero is_pinned is_same_size isfinite isinf isnan item le lift_fresh lt movedim mT
    narrow ne new_empty new_empty_strided new_full new_ones new_zeros numpy_T ones ones_like pad permute pin_memory
    record_stream repeat requires_grad_ reshape reshape_as resize_ resolve_conj resolve_neg
    result_type roll select set_ size slice split split_with_sizes squeeze squeeze_ stack stride swapaxes swapdims
    sym_numel sym_size sym_storage_offset sym_stride t tensor_split tile to to_dense transpose
    transpose_ type_as unbind unflatten
    unsqueeze unsqueeze_ view view_as vstack zero zero_ zeros zeros_like
    """.split()
)

# The namespaces that torch brings along; an operator of any other one is the submission's own.
_TORCH_NAMESPACES = frozenset(
    "_quantized aten c10d _c10d_functional flash_attn fbgemm higher_order inductor mkl mkldnn mkldnn_prepacked "
    "onednn prim prims quantized sparse symm_mem torchvision torchaudio xnnpack".split()
)

# How kernels of torch and of NVIDIA's libraries are called. Names are matched, so this tells honest mistakes and
# plain cheats; one that renames a library's kernels is caught by what it cannot rename.
_LIBRARY_KERNEL = re.compile(
    r"""
    \bat::native\b | \bat_cuda_detail\b | \bc10::
    | cublas | cudnn | nvjet | cusparse | cusolver | cufft | cask_ | flash_fwd | flash_bwd | fmha_cutlass
    | cutlass_\d\d | Kernel2<cutlass_ | \b(?:ampere|volta|turing|maxwell|hopper|sm\d\d)_\w*(?:gemm|xmma|conv|s?sgemm)
    | \bgemv(?:2|NSP|x|_) | splitKreduce | \bgemmk1_ | implicit_convolve
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Where moving values is the whole of a task, letting torch move them is letting it do the work. An honest kernel
# between two transposing copies, which reach half of the bandwidth, has a fifth of the time, and one behind a pad
# and before a crop two sevenths; below a tenth a kernel is there for show. In a few microseconds there is nothing
# to tell: any launch takes one or two.
_OWN_TIME_SHARE = 0.1
_FEW_US = 20.0
# On a CPU times say nothing, but stores can be followed.
_OWN_ELEMENTS_SHARE = 0.5

_INNOCENT_KERNEL = re.compile(
    r"FillFunctor|direct_copy_kernel|CopyFunctor|CatArrayBatchedCopy|Memcpy|Memset|spin_kernel|arange"
    r"|Functor<\s*(?:long|int|short|bool|unsigned char|signed char)\b"
)


def borrowed_operations(names: Iterable[str]) -> tuple[str, ...]:
    """Those operators that compute values and are torch's, sorted.

    Args:
        names: Operator names with their namespace, for instance ``"aten::relu"``.
    """
    return tuple(sorted({n for n in names if is_torch_operation(n) and not is_innocent_operation(n)}))


def is_torch_operation(name: str) -> bool:
    """Whether an operator is one that torch brings along, and not the submission's own.

    Args:
        name: With its namespace, for instance ``"aten::relu"``.
    """
    namespace, _, operator = name.partition("::")
    return bool(operator) and namespace in _TORCH_NAMESPACES


def is_innocent_operation(name: str) -> bool:
    """Whether a torch operator only allocates, views, fills, moves or compares.

    Args:
        name: With its namespace, for instance ``"aten::copy_"``.
    """
    return is_torch_operation(name) and name.partition("::")[2].split(".")[0] in _INNOCENT


def borrowed_kernels(names: Iterable[str]) -> tuple[str, ...]:
    """Those GPU kernels that compute values and are a library's, sorted.

    Args:
        names: Demangled kernel names.
    """
    return tuple(sorted({n for n in names if _LIBRARY_KERNEL.search(n) and not is_innocent_kernel(n)}))


def is_innocent_kernel(name: str) -> bool:
    """Whether a GPU kernel only fills, copies or counts."""
    return _INNOCENT_KERNEL.search(name) is not None


def refuse_work(evidence: WorkEvidence) -> str:
    """Why a call's work is not the submission's own; empty where nothing speaks against it.

    Args:
        evidence: What the worker saw of one call.
    """
    borrowed = borrowed_operations(evidence.operations) or borrowed_operations(evidence.profile.hidden)
    if evidence.compiled:
        return "torch.compile or Inductor wrote kernels for this submission."
    if borrowed:
        return (
            f"torch computed values: {_listed(borrowed)}. That is left to your own kernels, even where the values "
            "are only looked at."
        )
    return _refuse_kernels(evidence.profile) if evidence.profile.saw_kernels else ""


def refuse_cpu_work(evidence: WorkEvidence, libraries: int) -> str:
    """The same for a CPU, where a kernel is one that Triton interprets or that lives in a library.

    Args:
        evidence: What the worker saw of one call.
        libraries: Shared objects of the submission's own that it has loaded.
    """
    if libraries:
        return ""
    if evidence.stored_elements == 0:
        return "No kernel ran: neither a Triton kernel nor a compiled library of the submission's own."
    if evidence.conversions:
        return f"The values left torch by {_listed(evidence.conversions)}, where no kernel works on them."
    return ""


def refuse_thin_work(evidence: WorkEvidence, libraries: int, elements: int) -> str:
    """Why kernels on a CPU cannot have made an output that is right; empty where they can.

    Half of the elements that are not zero must be what kernels stored: a part that is pure movement may be left to
    torch. Values that something else computed and a kernel only copied pass; see
    :mod:`gym_kernel.evaluator.store_journal`.

    Args:
        evidence: What the worker saw of the call.
        libraries: Shared objects of the submission's own, whose stores nobody counts.
        elements: Elements of all outputs together.
    """
    there = elements - evidence.zero_elements
    if libraries or evidence.own_elements >= _OWN_ELEMENTS_SHARE * there:
        return ""
    return f"Of {there:,} elements of the output that are not zero, kernels stored {evidence.own_elements:,}."


def _refuse_kernels(profile: Profile) -> str:
    names = [kernel.name for kernel in profile.kernels if not kernel.bookkeeping]
    borrowed = borrowed_kernels(set(names) - set(profile.own_kernels))
    if borrowed:
        return f"Library kernels ran on the GPU: {_listed(n[:80] for n in borrowed)}."
    if all(is_innocent_kernel(name) for name in names):
        return "No kernel of the submission's own ran on the GPU."
    # The kernels that are recorded one by one are the first ones; their sums are over all.
    if profile.moved_us > _FEW_US and profile.own_us < _OWN_TIME_SHARE * (profile.own_us + profile.moved_us):
        return (
            f"Of the GPU's time, copies and fills of torch took {profile.moved_us:.0f} us and the submission's own "
            f"kernels {profile.own_us:.0f} us."
        )
    return ""


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")
