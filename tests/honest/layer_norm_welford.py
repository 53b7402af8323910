"""Layer norm by Welford's method: tl.reduce over a triple with a combine function of its own.

Style: Welford by tl.reduce
Task: layer_norm
Device: any
Slow: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    share = tl.where(n > 0, n_b / tl.where(n > 0, n, 1.0), 0.0)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, y_ptr, dim, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    inside = c < dim
    x = tl.load(x_ptr + row * dim + c, mask=inside, other=0.0)
    mean, m2, n = tl.reduce((x, tl.zeros_like(x), inside.to(tl.float32)), 0, merge)
    y = (x - mean) * (1.0 / tl.sqrt(m2 / n + eps))
    w = tl.load(w_ptr + c, mask=inside)
    b = tl.load(b_ptr + c, mask=inside)
    tl.store(y_ptr + row * dim + c, y * w + b, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.empty(dim))
        self.bias = torch.nn.Parameter(torch.empty(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device)
        rows, dim = x.shape
        layer_norm_kernel[(rows,)](
            x, self.weight, self.bias, y, dim, self.eps, BLOCK=triton.next_power_of_2(dim), num_warps=8
        )
        return y
