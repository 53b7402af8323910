"""KernelBench's problems as tasks, read from where the user keeps them; nothing of KernelBench comes along.

    load("kernelbench/level1", kernelbench="KernelBench")

Importing this needs neither torch nor KernelBench.
"""

from gym_kernel.tasks.kernelbench.pinning import REVISION, KernelBenchMismatch
from gym_kernel.tasks.kernelbench.selecting import UnsoundLeftOut, is_kernelbench, kernelbench_tasks

__all__ = ["REVISION", "KernelBenchMismatch", "UnsoundLeftOut", "is_kernelbench", "kernelbench_tasks"]
