"""Split of a fused QKV projection into heads with RMS norm of queries and keys, float16."""

import torch
from torch import nn

TASK = {
    "level": 2,
    "shapes": {
        "qwen": {
            "official": {"batch": 4, "length": 2048, "heads": 16, "dim": 128},
            "small": {"batch": 2, "length": 9, "heads": 3, "dim": 96},
        },
        "vit": {
            "official": {"batch": 64, "length": 256, "heads": 16, "dim": 72},
            "small": {"batch": 3, "length": 8, "heads": 4, "dim": 72},
        },
        "odd": {
            "official": {"batch": 3, "length": 2999, "heads": 20, "dim": 64},
            "small": {"batch": 2, "length": 13, "heads": 5, "dim": 64},
        },
    },
    "domains": ["any"],
    "tolerance": {"reduction_length": 128},
    "flops_per_element": 3,
    "rows_independent": True,
}


class Model(nn.Module):
    """Three tensors (batch, heads, length, dim) out of one (batch, length, 3 * heads * dim): q, k and v in that order.

    Each head of q and of k is divided by ``sqrt(mean of its squares + 1e-6)`` and multiplied by a weight (dim,), in
    float32; v is only moved.
    """

    def __init__(self, heads: int, dim: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_weight = nn.Parameter((torch.rand(dim) + 0.5).half())
        self.k_weight = nn.Parameter((torch.rand(dim) + 0.5).half())

    def forward(self, qkv: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        batch, length, _ = qkv.shape
        q, k, v = qkv.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self._normalised(q, self.q_weight), self._normalised(k, self.k_weight), v.contiguous()

    def _normalised(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = x if x.dtype == torch.float64 else x.float()
        inverse = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6)
        return (wide * inverse * weight).to(x.dtype).contiguous()


batch = 4
length = 2048
heads = 16
dim = 128


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, length, 3 * heads * dim, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return [heads, dim]
