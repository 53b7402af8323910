"""LogSoftmax by a submodule that keeps its workspace as a buffer sized at the first call.

Style: workspace kept in a buffer
Task: log_softmax
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, work_ptr, columns, chunks, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    chunk = tl.program_id(0)
    c = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns, other=-float("inf"))
    m = tl.max(x, 0)
    pair = work_ptr + (row * chunks + chunk) * 2
    tl.store(pair, m)
    tl.store(pair + 1, tl.sum(tl.exp(x - m), 0))


@triton.jit
def finish_kernel(x_ptr, y_ptr, work_ptr, columns, chunks, CHUNKS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    k = tl.arange(0, CHUNKS)
    pairs = work_ptr + (row * chunks + k) * 2
    m = tl.load(pairs, mask=k < chunks, other=-float("inf"))
    s = tl.load(pairs + 1, mask=k < chunks, other=0.0)
    top = tl.max(m, 0)
    log_sum = tl.log(tl.sum(s * tl.exp(m - top), 0))
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + c, mask=c < columns)
    tl.store(y_ptr + row * columns + c, (x - top) - log_sum, mask=c < columns)


class RowLogSoftmax(torch.nn.Module):
    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block
        self.register_buffer("workspace", None, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        chunks = triton.cdiv(columns, self.block)
        if self.workspace is None or self.workspace.shape[:2] != (rows, chunks):
            self.workspace = torch.empty(rows, chunks, 2, device=x.device)
        y = torch.empty_like(x)
        grid = (chunks, rows)
        partial_kernel[grid](x, self.workspace, columns, chunks, BLOCK=self.block, num_warps=8)
        finish_kernel[grid](
            x,
            y,
            self.workspace,
            columns,
            chunks,
            CHUNKS=triton.next_power_of_2(chunks),
            BLOCK=self.block,
            num_warps=8,
        )
        return y


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.op = RowLogSoftmax(4096)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.op(x)
