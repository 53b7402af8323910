"""Hashes of KernelBench's problems at the pinned revision; written by ``benchmarks/kernelbench_survey.py``."""

#: For each level, see :func:`gym_kernel.tasks.kernelbench.pinning.level_hash`.
LEVEL_HASHES: dict[int, str] = {}

#: Level, number, first 16 characters of the content hash, and the way to small sizes that was found to work.
TABLE = """\
"""
