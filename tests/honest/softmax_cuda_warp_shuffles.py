"""Softmax in CUDA: one block a row, online, reduced by warp shuffles and shared memory.

Style: inline CUDA
Task: softmax
Device: cuda
Slow: yes
"""

import torch
from torch.utils.cpp_extension import load_inline

# The binding stands in cuda_sources too; load_inline is told its name through `functions`.
cuda_src = r"""
#include <torch/types.h>
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime.h>
#include <cfloat>

constexpr int THREADS = 1024;

struct Pair { float m; float s; };

__device__ __forceinline__ Pair merge(Pair a, Pair b) {
  const float m = fmaxf(a.m, b.m);
  return {m, a.s * expf(a.m - m) + b.s * expf(b.m - m)};
}

__device__ __forceinline__ Pair warp_merge(Pair p) {
  for (int offset = 16; offset > 0; offset /= 2) {
    Pair other = {__shfl_xor_sync(0xffffffffu, p.m, offset), __shfl_xor_sync(0xffffffffu, p.s, offset)};
    p = merge(p, other);
  }
  return p;
}

__global__ void __launch_bounds__(THREADS) softmax_kernel(const float* __restrict__ x, float* __restrict__ y,
                                                          int columns) {
  __shared__ Pair partial[32];
  const float* row = x + (int64_t)blockIdx.x * columns;
  float* out = y + (int64_t)blockIdx.x * columns;

  Pair p = {-FLT_MAX, 0.0f};
  for (int c = threadIdx.x; c < columns; c += THREADS) {
    p = merge(p, {row[c], 1.0f});
  }
  p = warp_merge(p);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane == 0) partial[warp] = p;
  __syncthreads();
  p = warp_merge(partial[lane]);

  const float scale = 1.0f / p.s;
  for (int c = threadIdx.x; c < columns; c += THREADS) {
    out[c] = expf(row[c] - p.m) * scale;
  }
}

torch::Tensor softmax_forward(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.dim() == 2 && x.scalar_type() == torch::kFloat32, "needs a float32 matrix on a GPU");
  x = x.contiguous();
  auto y = torch::empty_like(x);
  softmax_kernel<<<x.size(0), THREADS, 0, at::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""

softmax_module = load_inline(
    name="softmax_warp_shuffles",
    cpp_sources="#include <torch/types.h>\ntorch::Tensor softmax_forward(torch::Tensor x);",
    cuda_sources=cuda_src,
    functions=["softmax_forward"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return softmax_module.softmax_forward(x)
