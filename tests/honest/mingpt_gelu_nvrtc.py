"""GELU in CUDA, compiled by NVRTC through torch.cuda's own wrapper.

Style: NVRTC
Task: mingpt_gelu
Device: cuda
Slow: no
"""

import torch

SOURCE = r"""
extern "C" __global__ void gelu(const float* __restrict__ x, float* __restrict__ y, int n) {
    const int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const float v = x[i];
        const float w = 1.5957691216f * (v + 0.044715f * v * v * v);
        y[i] = v / (1.0f + expf(-w));
    }
}
"""

compile_kernel = getattr(torch.cuda, "_compile_kernel", None) or torch.cuda.compile_kernel


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = compile_kernel(SOURCE, "gelu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        self.kernel(grid=(4096, 1, 1), block=(256, 1, 1), args=[x, y, x.numel()])
        return y
