"""Play a two-turn ReLU episode as a policy would see it, then evaluate a C++ or CUDA GELU.

Run it with ``make demo``. Without a GPU the Triton kernels run in Triton's interpreter and the GELU is C++; where
a GPU is present it is used, and the GELU is inline CUDA.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import gymnasium

import gym_kernel
from gym_kernel.wrappers import RepairBudget

KERNELS = Path(__file__).parent / "kernels"

FIRST_TRY = """
My plan is one program per block of elements.

```python
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=inside)
    tl.store(y_ptr + offsets, tl.abs(x), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        relu_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)
        return y
```
"""


def show(title: str, text: str) -> None:
    """Print a passage under a heading, indented as in a transcript."""
    print(f"\n=== {title} " + "=" * max(4, 96 - len(title)))
    print(textwrap.indent(text.strip(), "    "))


def main() -> None:
    """Play the episode."""
    env = RepairBudget(gymnasium.make("gym_kernel:KernelEnv-v0", tasks="pilot", device="auto"), turns=2)
    try:
        prompt, info = env.reset(seed=0, options={"task": "relu"})
        show("prompt", prompt)
        for turn, reply in enumerate((FIRST_TRY, (KERNELS / "relu.py").read_text()), start=1):
            show(f"turn {turn}: the policy writes", reply)
            feedback, reward, terminated, truncated, info = env.step(reply)
            show(f"turn {turn}: feedback", feedback)
            print(f"\n    status {info['status']}, reward {reward:.3f}, done {terminated or truncated}")
        print(f"\n    episode return {info['episode_return']:.3f}")

        language = "cuda" if info["device"].startswith("cuda") else "cpp"
        env.reset(options={"task": "mingpt_gelu"})
        print(f"\nCompiling examples/kernels/{language}/mingpt_gelu.py ...", flush=True)
        feedback, reward, *_ = env.step((KERNELS / language / "mingpt_gelu.py").read_text())
        show(f"mingpt_gelu in {language}: feedback", feedback)
    finally:
        env.close()
    print(f"\ngym-kernel {gym_kernel.__version__}: done.")


if __name__ == "__main__":
    main()
