"""The task linter: prove that a task can be judged soundly before a policy is trained on it. Importing it needs torch.

from gym_kernel.linter import lint_task

report = lint_task(load("my_task.py")[0])
for finding in report.findings:
    print(finding.severity.value, finding.rule.value, finding.message)
"""

from gym_kernel.linter.apart import LintProcess
from gym_kernel.linter.lint import lint_task
from gym_kernel.linter.report import Finding, Rule, Severity, ShapeReport, TaskReport

__all__ = ["Finding", "LintProcess", "Rule", "Severity", "ShapeReport", "TaskReport", "lint_task"]
