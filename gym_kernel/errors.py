"""Exceptions of the package: one class for each decision a caller can take.

    GymKernelError
    ├── TaskError              a task, suite or task file is not usable as given
    ├── ConfigurationError     an argument is wrong; the message names it and what to pass
    ├── DeviceUnavailable      the device asked for is not on this machine
    ├── IsolationUnavailable   the isolation tier asked for cannot be had here
    └── EvaluatorError         the evaluator could not be started or has gone

Nothing a *policy* writes raises any of these from ``step``: a submission ends in a
:class:`~gym_kernel.evaluator.verdict.Verdict`.
"""

__all__ = [
    "ConfigurationError",
    "DeviceUnavailable",
    "EvaluatorError",
    "GymKernelError",
    "IsolationUnavailable",
    "TaskError",
]


class GymKernelError(Exception):
    """Base of everything this package raises on purpose."""


class TaskError(GymKernelError):
    """A task, a suite name or a task file cannot be used as given."""


class ConfigurationError(GymKernelError, ValueError):
    """An argument is out of its domain."""


class DeviceUnavailable(GymKernelError):
    """The device asked for is not usable on this machine."""


class IsolationUnavailable(GymKernelError):
    """The isolation tier that was required cannot be had on this machine."""


class EvaluatorError(GymKernelError):
    """The evaluator's processes could not be started, or stopped answering."""
