"""GELU in its tanh form in CUDA C++: 16 bytes a thread and step, grid-stride, bound by memory bandwidth."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

# The .cu part includes no torch header, so that nvcc is done with it in seconds.
CUDA_SOURCE = r"""
#include <cstdint>
#include <cuda_runtime.h>

__device__ __forceinline__ float gelu(float x) {
  // 0.5 * (1 + tanh(u)) is sigmoid(2 * u), which does not cancel where u is negative.
  // 1.5957691216 is 2 * sqrt(2 / pi).
  const float v = 1.5957691216f * (x + 0.044715f * x * x * x);
  const float e = __expf(-fabsf(v));
  return x * __fdividef(v < 0.0f ? e : 1.0f, 1.0f + e);
}

__global__ void __launch_bounds__(256) gelu_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t n) {
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  const int64_t quads = n / 4;
  const float4* x4 = reinterpret_cast<const float4*>(x);
  float4* y4 = reinterpret_cast<float4*>(y);
  for (int64_t i = first; i < quads; i += stride) {
    const float4 v = __ldcs(x4 + i);
    __stcs(y4 + i, make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w)));
  }
  for (int64_t i = quads * 4 + first; i < n; i += stride) {
    y[i] = gelu(x[i]);
  }
}

void launch_gelu(const float* x, float* y, int64_t n, cudaStream_t stream) {
  const int64_t threads = 256;
  const int64_t wanted = (n / 4 + threads - 1) / threads + 1;
  const int64_t blocks = wanted < 65536 ? wanted : 65536;
  gelu_kernel<<<blocks, threads, 0, stream>>>(x, y, n);
}
"""

CPP_SOURCE = r"""
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

void launch_gelu(const float* x, float* y, int64_t n, cudaStream_t stream);

at::Tensor mingpt_gelu(const at::Tensor& input) {
  TORCH_CHECK(input.is_cuda() && input.scalar_type() == at::kFloat, "mingpt_gelu takes a float32 tensor on a GPU");
  const c10::cuda::CUDAGuard guard(input.device());
  const at::Tensor x = input.contiguous();
  at::Tensor y = at::empty_like(x);
  launch_gelu(x.const_data_ptr<float>(), y.mutable_data_ptr<float>(), x.numel(), at::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

extension = load_inline(
    name="mingpt_gelu_cuda",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["mingpt_gelu"],
    extra_cflags=["-O3"],
    extra_cuda_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return extension.mingpt_gelu(x)
