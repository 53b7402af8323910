"""``lint_task``: every rule, at every shape of a task."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch

from gym_kernel.errors import DeviceUnavailable, TaskError
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.linter.impostors import Impostors
from gym_kernel.linter.observer import ForwardWatch
from gym_kernel.linter.official_count import OfficialCount
from gym_kernel.linter.report import Finding, Rule, Severity, ShapeReport, TaskReport
from gym_kernel.linter.rules_inputs import Dependence, check_domains, check_layout, check_not_empty
from gym_kernel.linter.rules_reference import (
    check_determinism,
    check_finite,
    check_kinds,
    check_oracle_precision,
    check_purity,
    check_rows,
)
from gym_kernel.linter.rules_roofline import check_bytes, check_product_flops, claimed_products
from gym_kernel.linter.rules_sizes import check_official_sizes, check_small_sizes
from gym_kernel.linter.workbench import LintDevice, Sample, Workbench, lint_device
from gym_kernel.tasks.task import Task
from gym_kernel.tasks.validation import validate_task

__all__ = ["lint_task"]


def lint_task(task: Task, device: str = "cpu") -> TaskReport:
    """Prove a task sound, or say what to change, with the judge's own reference, inputs and comparison.

    The reference runs in this process, at the small sizes on a CPU and at the official ones on a GPU (which this
    process then uses). The memory of the official sizes is counted either way.

    Args:
        task: The task. Every one of its shapes is tried, or the named one of ``task.at(shape)``.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.

    Returns:
        What was found. ``report.sound`` is true where there is no error.

    Raises:
        ConfigurationError: The device's name is not known.
        DeviceUnavailable: The device is not on this machine.
        KeyboardInterrupt: As pressed by the user. All else that a reference raises is a finding; see
            :class:`~gym_kernel.linter.apart.LintProcess` for references that end or hold up the process.

    Example:
        >>> from gym_kernel.tasks import load
        >>> lint_task(load("relu")[0]).sound
        True
    """
    place = lint_device(device)
    with place.reserved():
        shapes = tuple(_lint_shape(name, each, place) for name, each in _shapes(task))
    return TaskReport(task.id, place.facts.id, shapes)


def _shapes(task: Task) -> list[tuple[str, Task]]:
    if task.id != task.base_id:
        return [(task.id.partition("@")[2], task)]
    if not task.shapes:
        return [("", task)]
    return [(shape.name, task.at(shape.name)) for shape in task.shapes]


def _lint_shape(name: str, task: Task, device: LintDevice) -> ShapeReport:
    inspection = _Inspection(task)
    try:
        validate_task(task)
        inspection.run(device)
    except TaskError as error:
        inspection.findings.append(
            Finding(
                Rule.REFERENCE_RUNS,
                Severity.ERROR,
                f"{str(error).rstrip('.')}. Nothing else is checked before this is put right.",
            )
        )
    except (torch.OutOfMemoryError, DeviceUnavailable) as error:
        inspection.findings.append(
            Finding(
                Rule.MEMORY,
                Severity.ERROR,
                f"The task does not fit on {device.facts.name}: {error}. Choose smaller sizes, or another device.",
            )
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # The task's own code runs here, and may raise anything, SystemExit included.
        what = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode().rstrip(".: ")
        inspection.findings.append(
            Finding(
                Rule.REFERENCE_RUNS,
                Severity.ERROR,
                f"Checking it was cut short by {what} ({_place(error)}). Change what raises it.",
            )
        )
    return inspection.report(name)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"line {frames[-1].lineno} of {frames[-1].filename}" if frames else "at an unknown place"


@dataclass
class _Inspection:
    """One task at one shape, and what has come to light."""

    task: Task
    findings: list[Finding] = field(default_factory=list)
    used: list[InputKind] = field(default_factory=list)
    dropped: list[InputKind] = field(default_factory=list)
    candidates: int = 0
    work_bytes: int = 0
    work_flops: float = 0.0
    memory_gib: float = float("nan")

    def report(self, name: str) -> ShapeReport:
        """What there is to say."""
        return ShapeReport(
            shape=name,
            findings=tuple(replace(finding, shape=name) for finding in self.findings),
            kinds_used=tuple(kind.value for kind in self.used),
            kinds_dropped=tuple(kind.value for kind in self.dropped),
            candidates=self.candidates,
            work_bytes=self.work_bytes,
            work_flops=self.work_flops,
            memory_gib=self.memory_gib,
        )

    def run(self, device: LintDevice) -> None:
        """Apply every rule.

        Raises:
            TaskError: The reference does not run.
        """
        with Workbench.open(self.task, device) as workbench:
            count, findings = check_official_sizes(self.task)
            self.findings.extend(findings)
            if count is not None:
                self.memory_gib = count.memory_gib
            self._inspect(workbench, count)

    def _inspect(self, workbench: Workbench, count: OfficialCount | None) -> None:
        work = workbench.bench.roofline.work
        self.work_bytes, self.work_flops = work.bytes, work.total_flops
        official = workbench.sample(InputKind.OFFICIAL)
        empty = list(check_not_empty(official))
        self.findings.extend(empty)
        if empty:
            # There are no values to tell anything by.
            return
        impure = list(check_purity(workbench, official))
        self.findings.extend(impure)
        if impure:
            # Nothing else can be told of a reference that writes over what it is compared with.
            return
        official = workbench.sample(InputKind.OFFICIAL)
        fixed = list(check_determinism(workbench, official))
        self.findings.extend(fixed)
        if fixed:
            return
        self.findings.extend(self._official_findings(workbench, official, count))
        with ForwardWatch() as watch:
            workbench.bench.expected(official.inputs)
        impostors = Impostors(
            workbench, official, tuple(watch.clamps), has_products=claimed_products(workbench, official) > 1
        )
        self.candidates = impostors.count
        self._try_kinds(workbench, impostors)

    def _official_findings(
        self, workbench: Workbench, official: Sample, count: OfficialCount | None
    ) -> Iterator[Finding]:
        yield from check_finite(official)
        yield from check_domains(workbench, official)
        yield from check_layout(workbench, official)
        yield from check_oracle_precision(workbench, official)
        yield from check_rows(workbench, official)
        yield from check_bytes(workbench, official)
        yield from check_product_flops(workbench, official, count)
        yield from check_small_sizes(workbench, official)

    def _try_kinds(self, workbench: Workbench, impostors: Impostors) -> None:
        dependence = Dependence(workbench)
        for kind in workbench.bench.kinds:
            sample = workbench.sample(kind)
            if sample.errors is None:
                self.dropped.append(kind)
                continue
            self.used.append(kind)
            impostors.face(sample)
            dependence.face(sample)
        self.findings.extend(check_kinds(workbench, self.dropped))
        if self.used:
            self.findings.extend(impostors.findings())
            self.findings.extend(dependence.findings())
