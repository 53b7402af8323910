"""Softmax in plain C++ with torch's implicit headers, one thread.

Style: inline C++
Task: softmax
Device: cpu
Slow: yes
"""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
#include <cmath>
#include <limits>

torch::Tensor softmax_rows(torch::Tensor x) {
    auto input = x.contiguous();
    auto output = torch::empty_like(input);
    const int64_t rows = input.size(0);
    const int64_t columns = input.size(1);
    const float* in = input.data_ptr<float>();
    float* out = output.data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        const float* a = in + r * columns;
        float* b = out + r * columns;
        float top = -std::numeric_limits<float>::infinity();
        for (int64_t c = 0; c < columns; ++c) top = a[c] > top ? a[c] : top;
        double total = 0.0;
        for (int64_t c = 0; c < columns; ++c) {
            b[c] = std::exp(a[c] - top);
            total += b[c];
        }
        const float inverse = static_cast<float>(1.0 / total);
        for (int64_t c = 0; c < columns; ++c) b[c] *= inverse;
    }
    return output;
}
"""

softmax_cpp = load_inline(name="softmax_cpp", cpp_sources=cpp_source, functions=["softmax_rows"])


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return softmax_cpp.softmax_rows(x)
