"""GELU in a CUDA graph over static buffers: the input is copied in, the graph computes it anew.

Style: CUDA graph
Task: mingpt_gelu
Device: cuda
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    v = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    tl.store(y_ptr + offsets, x * tl.sigmoid(v), mask=inside)


def launch(x, y):
    gelu_kernel[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048, num_warps=8)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.graph = None

    def capture(self, x: torch.Tensor) -> None:
        self.x = torch.empty_like(x)
        self.y = torch.empty_like(x)
        self.x.copy_(x)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            launch(self.x, self.y)  # compiles, which must not happen during a capture
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch(self.x, self.y)
        self.graph = graph

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.graph is None or self.x.shape != x.shape:
            self.capture(x)
        self.x.copy_(x)
        self.graph.replay()
        return self.y
