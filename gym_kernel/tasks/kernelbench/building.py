"""Make a task of a problem: everything that KernelBench does not say is inferred from the problem's text."""

from __future__ import annotations

import ast
import functools
import math

from gym_kernel.errors import TaskError
from gym_kernel.tasks.kernelbench.domains import FunctionKind, InferredDomains, infer_domains
from gym_kernel.tasks.kernelbench.pinning import pinned_plan
from gym_kernel.tasks.kernelbench.problem import Problem
from gym_kernel.tasks.kernelbench.shrinking import CAREFUL, small_sizes
from gym_kernel.tasks.kernelbench.static import InputFacts, ModuleFacts, read_module
from gym_kernel.tasks.task import Domain, Task, TaskScale, Tolerance
from gym_kernel.tasks.validation import validate_task

__all__ = ["build_task"]

#: 2**18 float32 terms allow 6.1e-5, which is below the error of arithmetic in TF32.
_LONGEST_SUM = 1 << 18
_FLOAT_BYTES = 4
# Two sets of inputs, and a float64 oracle beside outputs and temporaries of about the inputs' size.
_COPIES = 10
_LEAST_MEMORY_GIB = 24.0
_LEVEL = {1: 1, 2: 2, 3: 3, 4: 3}


@functools.lru_cache(maxsize=1024)
def build_task(problem: Problem) -> Task:
    """Make a task of a problem.

    Args:
        problem: As it was read.

    Raises:
        TaskError: Its text does not follow KernelBench's contract, or its inputs cannot be understood.
    """
    plain = Task(id=problem.task_id, suite=problem.suite, title=problem.title, source=problem.source)
    validate_task(plain)
    facts = read_module(ast.parse(problem.source))
    inferred = infer_domains(facts)
    plan = pinned_plan(problem)
    small = small_sizes(facts, CAREFUL if plan is None else plan)
    pointwise = inferred.kind is FunctionKind.POINTWISE
    task = Task(
        id=problem.task_id,
        suite=problem.suite,
        title=problem.title,
        source=problem.source,
        sizes={TaskScale.SMALL: small} if small else {},
        domains=_domains(inferred, problem),
        tolerance=Tolerance(reduction_length=1 if pointwise else _longest_sum(facts)),
        # Nothing is counted that a kernel might do without, so that the roofline stays a floor.
        flops_per_element=1.0 if pointwise else 0.0,
        rows_independent=pointwise and len(facts.inputs or ()) == 1 and "Parameter" not in problem.source,
        family="kernelbench",
        level=_LEVEL[problem.level],
        memory_gib=_memory_gib(facts),
    )
    validate_task(task)
    return task


def _domains(inferred: InferredDomains, problem: Problem) -> tuple[Domain, ...]:
    if not inferred.domains and inferred.kind is FunctionKind.PARTIAL:
        raise TaskError(
            f"The tensors of get_inputs in KernelBench's {problem.place} cannot be told from its text, and "
            f"{inferred.reason}. Have get_inputs return a list of them, or pass a Task with domains of your own."
        )
    return inferred.domains


def _longest_sum(facts: ModuleFacts) -> int:
    """No fewer terms than are summed into an output element, as far as the inputs' shapes tell; capped."""
    sums = (math.prod(shape) // max(min(shape), 1) for shape in _shapes(facts) if shape and min(shape) > 0)
    return max(1, min(max(sums, default=_LONGEST_SUM), _LONGEST_SUM))


def _memory_gib(facts: ModuleFacts) -> float:
    size_bytes = sum(math.prod(shape) for shape in _shapes(facts)) * _FLOAT_BYTES
    return max(_LEAST_MEMORY_GIB, float(math.ceil(_COPIES * size_bytes / (1 << 30))))


def _shapes(facts: ModuleFacts) -> list[tuple[int, ...]]:
    inputs: tuple[InputFacts, ...] = facts.inputs or ()
    return [each.shape for each in inputs if each.shape is not None]
