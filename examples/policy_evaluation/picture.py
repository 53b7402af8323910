"""A picture of a comparison: one line a task, from its reward before to its reward after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gym_kernel.rewards import CORRECT_REWARD, SPEED_REWARD
from policy_evaluation.comparison import Comparison
from policy_evaluation.summary import ALL, View, groups

__all__ = ["draw"]

# Told apart by people who do not see red and green, and in grey.
_BETTER, _SAME, _WORSE = "#0072b2", "#8a8a8a", "#d55e00"
_MOST_TASKS = 60
# Rewards closer than this are drawn on top of each other.
_APART = 0.03
_INK = "#333333"


@dataclass(frozen=True)
class _Line:
    """One row of the picture.

    Attributes:
        label: What stands at its left.
        before: Reward before, for each view.
        after: Reward after, for each view.
        mean: Whether it is the mean of a group.
        y: Its height.
    """

    label: str
    before: dict[View, float]
    after: dict[View, float]
    mean: bool
    y: float


def draw(comparison: Comparison, path: Path) -> None:
    """Draw rewards before and after, first turn and best attempt side by side, tasks in their groups.

    Above 60 tasks only the means of the groups are drawn.

    Args:
        comparison: What to draw; at least one task.
        path: Where the PNG goes.

    Raises:
        ImportError: matplotlib is missing.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = _lines(comparison)
    depth = -lines[-1].y
    figure = Figure(figsize=(11, 2.1 + 0.3 * depth), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, view in zip(axes, View, strict=True):
        _draw_view(axis, view, lines, comparison.tolerance)
    axes[0].set_yticks([line.y for line in lines], [line.label for line in lines])
    for label, line in zip(axes[0].get_yticklabels(), lines, strict=True):
        label.set_fontweight("bold" if line.mean else "normal")
    _explain(figure, comparison)
    figure.savefig(path, dpi=150)


def _lines(comparison: Comparison) -> list[_Line]:
    """Means in front of their tasks, with a gap between groups."""
    lines: list[_Line] = []
    y = 0.0
    means = {(cell.group, cell.view): cell for cell in comparison.cells()}
    shown = list(comparison.pairs) if len(comparison.pairs) <= _MOST_TASKS else []
    for group in groups(comparison.before):
        if (group, View.FIRST) not in means:
            continue
        cells = {view: means[group, view] for view in View}
        tasks = cells[View.FIRST].before.tasks
        lines.append(
            _Line(
                label=f"mean of {'all' if group == ALL else group} ({tasks})",
                before={view: cell.before.mean_reward or 0.0 for view, cell in cells.items()},
                after={view: cell.after.mean_reward or 0.0 for view, cell in cells.items()},
                mean=True,
                y=y,
            )
        )
        y -= 1
        for one, other in shown:
            if one.group == group:
                before = {view: one.at(view).reward for view in View}
                after = {view: other.at(view).reward for view in View}
                lines.append(_Line(one.task, before, after, False, y))
                y -= 1
        y -= 0.6
    return lines


def _draw_view(axis: Any, view: View, lines: list[_Line], tolerance: float) -> None:
    for line in lines:
        before, after = line.before[view], line.after[view]
        colour = _colour(after - before, tolerance)
        shape = "D" if line.mean else "o"
        axis.plot([before, after], [line.y, line.y], color=colour, linewidth=2.4, zorder=2)
        style: dict[str, Any] = {
            "color": colour,
            "marker": shape,
            "markersize": 8,
            "markeredgewidth": 1.6,
            "linestyle": "",
        }
        axis.plot(before, line.y, markerfacecolor="white", zorder=3, **style)
        # A smaller mark leaves the ring visible where both stand in one place.
        axis.plot(
            after, line.y, zorder=4, **{**style, "markersize": 2.5 if abs(after - before) < _APART else 8}
        )
        if line.mean:
            axis.axhspan(line.y - 0.5, line.y + 0.5, color="#eef2f6", zorder=0)
    axis.set_title(view.value.capitalize(), loc="left", fontsize=11, color=_INK)
    axis.set_xlim(-0.1, CORRECT_REWARD + SPEED_REWARD + 0.1)
    axis.set_ylim(lines[-1].y - 0.8, lines[0].y + 0.8)
    axis.set_xlabel("reward of the submission (3 = the roofline)")
    axis.axvline(CORRECT_REWARD, color="#bbbbbb", linewidth=0.9, linestyle=":", zorder=1)
    axis.grid(axis="x", color="#e4e4e4", linewidth=0.7, zorder=0)
    axis.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def _colour(move: float, tolerance: float) -> str:
    if abs(move) <= tolerance:
        return _SAME
    return _BETTER if move > 0 else _WORSE


def _explain(figure: Any, comparison: Comparison) -> None:
    from matplotlib.lines import Line2D

    common: dict[str, Any] = {"marker": "o", "markersize": 8, "markeredgewidth": 1.6}
    entries = [
        Line2D([], [], color=_INK, linestyle="", markerfacecolor="white", label="before", **common),
        Line2D([], [], color=_INK, linestyle="", label="after", **common),
        Line2D([], [], color=_BETTER, linewidth=2.4, label="better"),
        Line2D([], [], color=_SAME, linewidth=2.4, label=f"same (within {comparison.tolerance:g})"),
        Line2D([], [], color=_WORSE, linewidth=2.4, label="worse"),
        Line2D([], [], color="#bbbbbb", linestyle=":", label="correct, however slow"),
    ]
    figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), frameon=False, fontsize=9)
    before, after = comparison.before.policy.label(), comparison.after.policy.label()
    device = comparison.before.protocol.device
    title = f"before: {before}\nafter: {after}\njudged on {device}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=10, color=_INK)
