"""Swish on two halves of the rows, on two streams that are joined by events.

Style: side stream
Task: swish
Device: cuda
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def swish_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, x / (1.0 + tl.exp(-x)), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.streams = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.streams is None:
            self.streams = [torch.cuda.Stream(x.device) for _ in range(2)]
        y = torch.empty_like(x)
        begun = torch.cuda.Event()
        begun.record()
        for stream, source, target in zip(self.streams, x.tensor_split(2), y.tensor_split(2), strict=True):
            n = source.numel()
            with torch.cuda.stream(stream):
                stream.wait_event(begun)
                swish_kernel[(triton.cdiv(n, 4096),)](source, target, n, BLOCK=4096)
                done = torch.cuda.Event()
                done.record(stream)
            torch.cuda.current_stream().wait_event(done)
        return y
