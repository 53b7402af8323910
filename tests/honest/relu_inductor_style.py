"""ReLU written as torch's compiler would write it, helpers and names included.

Style: Inductor's idiom
Task: relu
Device: any
Slow: no
"""

import torch
import triton
import triton.language as tl
from torch import nn
from torch._inductor.runtime import triton_helpers

assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu


@triton.jit
def triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0).to(tl.int64) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + x0, xmask)
    tmp1 = tl.full([1], 0, tl.int32)
    tmp2 = triton_helpers.maximum(tmp1, tmp0)
    tl.store(out_ptr0 + x0, tmp2, xmask)


def call(args):
    (arg0_1,) = args
    args.clear()
    s0, s1 = arg0_1.shape
    assert_size_stride(arg0_1, (s0, s1), (s1, 1))
    empty_strided = empty_strided_cuda if arg0_1.is_cuda else empty_strided_cpu
    buf0 = empty_strided((s0, s1), (s1, 1), torch.float32)
    xnumel = s0 * s1
    triton_poi_fused_relu_0[(triton.cdiv(xnumel, 2048),)](
        arg0_1, buf0, xnumel, XBLOCK=2048, num_warps=8, num_stages=1
    )
    del arg0_1
    return (buf0,)


class ModelNew(nn.Module):
    def forward(self, input_0):
        arg0_1 = input_0
        output = call([arg0_1])
        return output[0]
