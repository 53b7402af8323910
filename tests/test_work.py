"""Counting bytes and FLOPs of a reference without running it."""

import pytest
import torch
from torch import nn

from gym_kernel.evaluator.work import count_work


class Scale(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


class Multiply(nn.Module):
    def forward(self, a, b):
        return a @ b


def test_elementwise_moves_input_and_output_once():
    work = count_work(Scale(), [torch.ones(100, 30)], 3.0)
    assert work.bytes == 2 * 3000 * 4
    assert work.flops == {"float32": 9000.0}


def test_official_sizes_need_no_memory():
    work = count_work(Scale(), [torch.empty(4096, 393_216, device="meta")], 1.0)
    assert work.bytes == 2 * 4096 * 393_216 * 4
    assert work.total_flops == 4096 * 393_216


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_products_count_under_their_own_dtype(dtype):
    a, b = (torch.empty(shape, dtype=dtype, device="meta") for shape in ((64, 128), (128, 32)))
    work = count_work(Multiply(), [a, b], 0.0)
    assert work.flops == {str(dtype).removeprefix("torch."): 2.0 * 64 * 128 * 32}
    assert work.bytes == (64 * 128 + 128 * 32 + 64 * 32) * a.element_size()


def test_parameters_and_buffers_count_once():
    model = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8))
    model.append(model[0].__class__(8, 16, bias=False))
    work = count_work(model.eval(), [torch.ones(4, 16)], 0.0)
    linear, norm, last = 16 * 8 + 8, 4 * 8, 8 * 16
    assert work.bytes == (4 * 16 + linear + norm + last + 4 * 16) * 4 + 8
    assert work.flops["float32"] == 2 * 4 * 16 * 8 * 2


def test_tied_parameters_and_repeated_inputs_count_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = self.second = nn.Parameter(torch.ones(10))

        def forward(self, a, b):
            return a + b + self.first + self.second

    x = torch.ones(10)
    assert count_work(Tied(), [x, x], 1.0).bytes == 3 * 40


def test_expanded_inputs_and_aliased_outputs_count_what_is_there():
    class Alias(nn.Module):
        def forward(self, x):
            return x.view(-1)

    assert count_work(Alias(), [torch.ones(6, 5)], 0.0).bytes == 120
    assert count_work(Scale(), [torch.ones(1, 5).expand(6, 5)], 0.0).bytes == 20 + 120


def test_tensors_outside_the_buffers_are_constants():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.mask = torch.ones(5)

        def forward(self, x):
            return x * self.mask

    assert count_work(Masked(), [torch.ones(3, 5)], 1.0).bytes == 120


def test_convolution_and_attention_are_counted():
    conv = nn.Conv2d(3, 4, 3)
    work = count_work(conv, [torch.empty(2, 3, 10, 10)], 0.0)
    assert work.flops == {"float32": 2.0 * 2 * 4 * 8 * 8 * 3 * 9}

    class Attention(nn.Module):
        def forward(self, q):
            return torch.nn.functional.scaled_dot_product_attention(q, q, q)

    work = count_work(Attention(), [torch.empty(1, 2, 16, 8)], 0.0)
    assert work.flops["float32"] == 2 * (2.0 * 2 * 16 * 16 * 8)


def test_several_outputs_and_plain_arguments():
    class Split(nn.Module):
        def forward(self, x, k, flag=None):
            return x * k, {"low": x.half()}

    work = count_work(Split(), [torch.ones(8), 3, None], 2.0)
    assert work.bytes == 32 + 32 + 16
    assert work.flops == {"float32": 32.0}


def test_float64_elementwise_counts_as_float64():
    assert count_work(Scale(), [torch.ones(4, dtype=torch.float64)], 1.0).flops == {"float64": 4.0}


def test_data_dependent_shapes_fall_back_to_a_real_run():
    class Nonzero(nn.Module):
        def forward(self, x):
            return x[x > 0] @ torch.ones(int((x > 0).sum()), 2)

    work = count_work(Nonzero(), [torch.tensor([1.0, -1.0, 2.0])], 1.0)
    assert work.bytes == 12 + 8
    assert work.flops["float32"] >= 2


def test_the_model_is_left_as_it_was():
    model = nn.BatchNorm1d(4)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    count_work(model, [torch.randn(6, 4)], 1.0)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_attention_counts_under_its_own_dtype(dtype):
    class Attention(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v)

    q, k, v = (torch.empty(2, 4, 64, 32, dtype=dtype, device="meta") for _ in range(3))
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    work = count_work(Attention(), [q, k, v], 0.0)
    assert work.flops == {str(dtype).removeprefix("torch."): 2 * 2.0 * 2 * 4 * 64 * 64 * 32}
    assert torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed() == before
