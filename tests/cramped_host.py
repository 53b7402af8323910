"""A host whose workers may use very little, so that their bounds can be reached in a test."""

from __future__ import annotations

from gym_kernel.evaluator import host, worker_pool
from gym_kernel.evaluator.fence_limits import FenceLimits

LIMITS = FenceLimits(
    processes=150, memory_bytes=1 << 30, scratch_bytes=96 << 20, scratch_files=2_000, file_bytes=64 << 20
)

if __name__ == "__main__":
    worker_pool.FenceLimits = lambda: LIMITS
    host.main()
