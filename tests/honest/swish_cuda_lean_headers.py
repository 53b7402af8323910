"""Swish in CUDA: a grid-stride kernel without torch headers and a small C++ binding.

Style: inline CUDA
Task: swish
Device: cuda
Slow: yes
"""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cstdint>
#include <cuda_runtime.h>

namespace {

__device__ __forceinline__ float swish(float x) { return x / (1.0f + __expf(-x)); }

__global__ void swish_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
    y[i] = swish(x[i]);
  }
}

}  // namespace

void launch_swish(const float* x, float* y, int64_t n, cudaStream_t stream) {
  int device = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  swish_kernel<<<processors * 8, 256, 0, stream>>>(x, y, n);
}
"""

CPP = r"""
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

void launch_swish(const float* x, float* y, int64_t n, cudaStream_t stream);

at::Tensor swish(const at::Tensor& input) {
  const c10::cuda::CUDAGuard guard(input.device());
  const at::Tensor x = input.contiguous();
  at::Tensor y = at::empty_like(x);
  launch_swish(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), x.numel(), at::cuda::getCurrentCUDAStream());
  return y;
}
"""

module = load_inline(
    "swish_cuda", cpp_sources=[CPP], cuda_sources=[CUDA], functions=["swish"], no_implicit_headers=True
)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return module.swish(x)
