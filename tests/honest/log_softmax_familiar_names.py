"""LogSoftmax whose kernel has the name of one of torch's own.

Style: familiar names
Task: log_softmax
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_warp_forward(
    dst, src, batch_size, stride, element_count, WARP_BATCH: tl.constexpr, is_log: tl.constexpr
):
    local = tl.arange(0, WARP_BATCH)
    row = tl.program_id(0).to(tl.int64) * stride
    max_value = tl.full((WARP_BATCH,), -3.4e38, tl.float32)
    total = tl.zeros((WARP_BATCH,), tl.float32)
    for start in range(0, element_count, WARP_BATCH):
        inside = start + local < element_count
        elements = tl.load(src + row + start + local, mask=inside, other=float("-inf"))
        larger = tl.maximum(max_value, elements)
        total = total * tl.exp(max_value - larger) + tl.exp(elements - larger)
        max_value = larger
    top = tl.max(max_value, 0)
    total = tl.sum(total * tl.exp(max_value - top), 0)
    for start in range(0, element_count, WARP_BATCH):
        inside = start + local < element_count
        elements = tl.load(src + row + start + local, mask=inside)
        if is_log:  # noqa: SIM108
            result = elements - top - tl.log(total)
        else:
            result = tl.exp(elements - top) / total
        tl.store(dst + row + start + local, result, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch_size, element_count = x.shape
        y = torch.empty_like(x)
        softmax_warp_forward[(batch_size,)](
            y, x, batch_size, x.stride(0), element_count, WARP_BATCH=4096, is_log=True, num_warps=8
        )
        return y
