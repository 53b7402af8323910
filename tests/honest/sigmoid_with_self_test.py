"""Sigmoid with a long docstring, prints and a self-test under __main__.

Style: self-test block
Task: sigmoid
Device: any
Slow: no

The kernel below replaces

    y = torch.sigmoid(x)

and is checked against it when this file is run by hand:

    >>> ModelNew()(torch.zeros(2, 2))
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
"""

import sys
import time
import warnings

import torch
import triton
import triton.language as tl

print(f"building with triton {triton.__version__}")
if sys.platform != "linux":
    warnings.warn("untested on this system", stacklevel=1)


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = 1 / (1 + exp(-x)), one block of elements in each program."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside)
    # torch.sigmoid would do here as well, but that is not the point.
    tl.store(y_ptr + offsets, 1.0 / (1.0 + tl.exp(-x)), mask=inside)


class ModelNew(torch.nn.Module):
    """Sigmoid.

    Example:
        >>> model = ModelNew()
        >>> model(torch.randn(3, 4)).shape
        torch.Size([3, 4])
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        sigmoid_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, x.numel(), BLOCK=4096)
        return y


def check(rows: int = 100, columns: int = 1000) -> None:
    x = torch.randn(rows, columns, device="cuda")
    started = time.time()
    actual = ModelNew()(x)
    torch.cuda.synchronize()
    print("seconds:", time.time() - started)
    torch.testing.assert_close(actual, torch.sigmoid(x))
    print("ok")


if __name__ == "__main__":
    check()
