"""LogSoftmax in an autograd.Function, with the row's sum kept in float64.

Style: autograd function
Task: log_softmax
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    lanes = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + lanes
        top = tl.maximum(top, tl.load(x_ptr + row + c, mask=c < columns, other=-float("inf")))
    m = tl.max(top, 0)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, columns, BLOCK):
        c = start + lanes
        x = tl.load(x_ptr + row + c, mask=c < columns, other=-float("inf"))
        total += tl.exp(x - m).to(tl.float64)
    log_sum = tl.log(tl.sum(total, 0)).to(tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + lanes
        x = tl.load(x_ptr + row + c, mask=c < columns)
        tl.store(y_ptr + row + c, (x - m) - log_sum, mask=c < columns)


class LogSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(x):
        y = torch.empty_like(x)
        log_softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=2048, num_warps=8)
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, dy):
        raise NotImplementedError("inference only")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return LogSoftmax.apply(x.contiguous())
