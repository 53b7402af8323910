"""How a server of kernel environments is set up."""

from __future__ import annotations

from dataclasses import dataclass

from gym_kernel.errors import ConfigurationError
from gym_kernel.evaluator.client import EvaluatorConfig

__all__ = ["ServerSettings"]


@dataclass(frozen=True)
class ServerSettings:
    """What every session of a server has in common.

    Attributes:
        tasks: Suites and task ids that a session may be given.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        isolation: Tier that submissions must run under, or ``"auto"``.
        timeout_s: Seconds that one submission may spend on loading, compiling and running.
        turns: Submissions in an episode.
        discount: Weight of each submission's reward relative to the one before it.
        max_sessions: Sessions that may be open at once; further ones are told so and closed.
        record_dir: Folder for one line of JSON per evaluation, or ``None``.
        kernelbench: Path of a KernelBench checkout, for suites ``kernelbench/...``.

    Raises:
        ConfigurationError: A value is out of its domain.
    """

    tasks: tuple[str, ...] = ("pilot",)
    device: str = "auto"
    isolation: str = "auto"
    timeout_s: float = 300.0
    turns: int = 2
    discount: float = 0.4
    max_sessions: int = 64
    record_dir: str | None = None
    kernelbench: str | None = None

    def __post_init__(self) -> None:
        if (
            isinstance(self.max_sessions, bool)
            or not isinstance(self.max_sessions, int)
            or self.max_sessions < 1
        ):
            raise ConfigurationError(
                f"max_sessions must be a whole number of sessions, at least 1, not {self.max_sessions!r}."
            )
        self.evaluator_config()

    def evaluator_config(self) -> EvaluatorConfig:
        """The part that concerns the evaluator.

        Raises:
            ConfigurationError: A value is out of its domain.
        """
        return EvaluatorConfig(
            device=self.device,
            isolation=self.isolation,
            timeout_s=self.timeout_s,
            record_dir=self.record_dir,
        )
