"""What the linter found. Importing this needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "Rule", "Severity", "ShapeReport", "TaskReport"]


class Severity(str, Enum):
    """How bad a finding is."""

    ERROR = "error"
    """The task judges wrongly, or cannot be judged: do not train on it."""
    WARNING = "warning"
    """Worth a look; the task can be used."""


class Rule(str, Enum):
    """What a sound task keeps to."""

    REFERENCE_RUNS = "reference_runs"
    """The reference module runs, is constructed and computes."""
    REFERENCE_PURE = "reference_pure"
    """It changes neither its inputs nor its parameters, and returns tensors of its own of one shape."""
    DETERMINISTIC = "deterministic"
    """The same inputs give the same outputs."""
    FINITE = "finite"
    """Outputs are finite on official inputs."""
    WELL_POSED = "well_posed"
    """The reference agrees with its own float64 computation, on official inputs and most other kinds."""
    ORACLE_PRECISION = "oracle_precision"
    """With float64 inputs and parameters it computes in float64 throughout."""
    ROWS_INDEPENDENT = "rows_independent"
    """Rows are independent where the task says that they are."""
    DOMAIN = "domain"
    """Official inputs lie in the declared domains, and some input is not fixed."""
    LAYOUT = "layout"
    """Inputs, parameters and outputs are contiguous."""
    NULL_CANDIDATE = "null_candidate"
    """No cheap impostor (zeros, the input, a constant, a part of the output) passes for the function."""
    LOWER_PRECISION = "lower_precision"
    """Arithmetic of the next lower precision does not pass."""
    MISSING_CLAMP = "missing_clamp"
    """The reference without one of its clamps does not pass."""
    INPUT_USED = "input_used"
    """The output depends on every input."""
    PARAMETER_USED = "parameter_used"
    """The output depends on every parameter and buffer."""
    ROOFLINE_BYTES = "roofline_bytes"
    """The roofline's bytes are those of the inputs, parameters and outputs."""
    ROOFLINE_FLOPS = "roofline_flops"
    """The roofline's FLOPs are at most what the reference does."""
    MEMORY = "memory"
    """An evaluation at the official sizes fits into the declared memory."""
    SIZES = "sizes"
    """Small sizes are quick in Triton's interpreter, official ones long enough to be timed."""


@dataclass(frozen=True)
class Finding:
    """One thing to change.

    Attributes:
        rule: The rule that is broken.
        severity: How bad that is.
        message: A sentence that says what is wrong and what to change.
        shape: The shape at which it was found; empty where the task has none.
    """

    rule: Rule
    severity: Severity
    message: str
    shape: str = ""


@dataclass(frozen=True)
class ShapeReport:
    """A task at one of its shapes.

    Attributes:
        shape: Name of the shape; empty where the task has none.
        findings: What was found.
        kinds_used: Names of the kinds of hidden inputs that are fit to judge by.
        kinds_dropped: Names of those at which the reference itself is too far from float64.
        candidates: Number of null candidates that were tried.
        work_bytes: Bytes of the roofline at the sizes that were run.
        work_flops: FLOPs of the roofline at the sizes that were run.
        memory_gib: GPU memory that the official sizes need, in GiB; NaN where it could not be counted.
    """

    shape: str
    findings: tuple[Finding, ...]
    kinds_used: tuple[str, ...] = ()
    kinds_dropped: tuple[str, ...] = ()
    candidates: int = 0
    work_bytes: int = 0
    work_flops: float = 0.0
    memory_gib: float = float("nan")


@dataclass(frozen=True)
class TaskReport:
    """A task at all of its shapes.

    Attributes:
        task_id: Id of the task.
        device: Device it was run on; a GPU means official sizes, a CPU small ones.
        shapes: One report for each shape.
    """

    task_id: str
    device: str
    shapes: tuple[ShapeReport, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of every shape, in order."""
        return tuple(finding for shape in self.shapes for finding in shape.findings)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make the task unfit."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are worth a look."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)

    @property
    def sound(self) -> bool:
        """Whether the task may be used: there is no error."""
        return not self.errors
