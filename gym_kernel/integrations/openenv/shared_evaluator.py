"""What the sessions of one server share: a warm evaluator, and the count of what it is busy with."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from gym_kernel.evaluator.client import Evaluator
from gym_kernel.integrations.openenv.settings import ServerSettings

__all__ = ["SharedEvaluator"]


class SharedEvaluator:
    """Keeps the evaluator's host alive while sessions come and go, and counts requests in progress.

    Environments of one process share a host by themselves; without a holder it would end with the last session
    and be started again, seconds later, for the next one.

    Args:
        settings: Which evaluator.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._evaluator = Evaluator(settings.evaluator_config())
        self._busy = 0
        self._mutex = threading.Lock()

    @property
    def busy(self) -> int:
        """Requests that sessions wait for."""
        return self._busy

    def start(self) -> None:
        """Start the host; a second call does nothing.

        Raises:
            ConfigurationError: The record folder cannot be written.
            DeviceUnavailable: The device is not on this machine.
            IsolationUnavailable: The isolation tier cannot be had.
            EvaluatorError: The host did not come up.
        """
        self._evaluator.start()

    def close(self) -> None:
        """Let go of the host, which ends when no session holds it. A second call does nothing."""
        self._evaluator.close()

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Count the block as a request in progress."""
        with self._mutex:
            self._busy += 1
        try:
            yield
        finally:
            with self._mutex:
                self._busy -= 1
