"""One Adam step: vectors of pointers, typing and a docstring in the kernel, a list comprehension for outputs.

Style: documented kernel
Task: adam_step
Device: any
"""

from typing import Final

import torch
import triton
import triton.language as tl

BLOCK: Final[int] = 1024


@triton.jit
def adam_kernel(
    p_ptr, g_ptr, m_ptr, v_ptr, p_out, m_out, v_out, n, rate, beta1, beta2, eps, BLOCK: tl.constexpr
):
    """Kingma and Ba's update without bias correction.

    The moments are written as they are used.
    """
    i = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    g = tl.load(g_ptr + i, mask=mask)
    m = beta1 * tl.load(m_ptr + i, mask=mask) + (1 - beta1) * g
    v = beta2 * tl.load(v_ptr + i, mask=mask) + (1 - beta2) * g * g
    p = tl.load(p_ptr + i, mask=mask) - rate * m / (tl.sqrt(v) + eps)
    tl.store(p_out + i, p, mask=mask)
    tl.store(m_out + i, m, mask=mask)
    tl.store(v_out + i, v, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, parameter, gradient, first, second):
        n = parameter.numel()
        outputs = [torch.empty_like(t) for t in (parameter, first, second)]
        adam_kernel[(triton.cdiv(n, BLOCK),)](
            parameter, gradient, first, second, *outputs, n, 0.1, 0.9, 0.95, 0.01, BLOCK=BLOCK
        )
        return tuple(outputs)
