"""Split and norm of a fused projection in one launch, three outputs in one allocation, dispatched by tl.program_id.

Style: outputs as slices of one allocation
Task: qkv_split_norm_fp16
Device: any
"""

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(x_ptr, qw_ptr, kw_ptr, y_ptr, length, heads, dim, size, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    head = tl.program_id(2)
    d = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + ((token * 3 + part) * heads + head) * dim + d, mask=d < dim, other=0.0)
    at = y_ptr + part * size + ((token // length * heads + head) * length + token % length) * dim + d
    if part == 2:
        tl.store(at, x, mask=d < dim)
    else:
        wide = x.to(tl.float32)
        inverse = 1 / tl.sqrt(tl.sum(wide * wide, 0) / dim + 1e-6)
        w_ptr = qw_ptr if part == 0 else kw_ptr
        w = tl.load(w_ptr + d, mask=d < dim, other=0.0).to(tl.float32)
        tl.store(at, (wide * inverse * w).to(tl.float16), mask=d < dim)


class ModelNew(torch.nn.Module):
    def __init__(self, heads: int, dim: int) -> None:
        super().__init__()
        self.heads, self.dim = heads, dim
        self.q_weight = torch.nn.Parameter(torch.ones(dim, dtype=torch.half))
        self.k_weight = torch.nn.Parameter(torch.ones(dim, dtype=torch.half))

    def forward(self, qkv: torch.Tensor) -> tuple[torch.Tensor, ...]:
        batch, length, _ = qkv.shape
        y = torch.empty(3, batch, self.heads, length, self.dim, dtype=qkv.dtype, device=qkv.device)
        split_kernel[(batch * length, 3, self.heads)](
            qkv,
            self.q_weight,
            self.k_weight,
            y,
            length,
            self.heads,
            self.dim,
            y[0].numel(),
            BLOCK=triton.next_power_of_2(self.dim),
        )
        return tuple(y.unbind(0))
