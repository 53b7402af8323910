"""ReLU in CUDA graphs kept by shape; the graph's output is cloned for the caller.

Style: CUDA graph
Task: relu
Device: cuda
Slow: no
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(y_ptr + offsets, tl.maximum(tl.load(x_ptr + offsets, mask=inside), 0.0), mask=inside)


@dataclass
class Captured:
    graph: torch.cuda.CUDAGraph
    x: torch.Tensor
    y: torch.Tensor


def run(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
    return y


def capture(x: torch.Tensor) -> Captured:
    static = x.clone()
    for _ in range(2):
        run(static)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = run(static)
    return Captured(graph, static, y)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.captured = {}

    def forward(self, x):
        entry = self.captured.get(x.shape)
        if entry is None:
            entry = self.captured[x.shape] = capture(x)
        entry.x.copy_(x, non_blocking=True)
        entry.graph.replay()
        return entry.y.clone()
