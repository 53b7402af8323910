"""Tasks: what a policy is asked to write a kernel for. Importing this needs no torch."""

from gym_kernel.tasks.loading import load
from gym_kernel.tasks.suites import suite_names
from gym_kernel.tasks.task import Domain, Task, TaskScale, Tolerance, WorkPolicy

__all__ = ["Domain", "Task", "TaskScale", "Tolerance", "WorkPolicy", "load", "suite_names"]
