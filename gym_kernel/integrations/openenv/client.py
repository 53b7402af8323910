"""The typed client of a kernel environment's server."""

from __future__ import annotations

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient

from gym_kernel.integrations.openenv.models import KernelAction, KernelObservation, KernelState

__all__ = ["KernelClient"]


class KernelClient(EnvClient[KernelAction, KernelObservation, KernelState]):
    """A session with a server that ``gym-kernel serve`` runs: one connection, one environment.

    Asynchronous as it is; ``.sync()`` makes it synchronous. ``reset`` takes ``task``, ``seed`` and
    ``episode_id``; ``step`` a :class:`KernelAction` or its text. What the server refuses raises ``RuntimeError`` with
    its sentence, ``Server error: ... (code: EXECUTION_ERROR)``, and the session goes on.

    Args:
        base_url: Where the server is, for instance ``"http://127.0.0.1:8000"``.
        message_timeout_s: Seconds to wait for an answer. OpenEnv's own 60 are too few: a submission may take
            what the server grants it, 300 by default, and stands in a queue before that.
        options: Further arguments of :class:`openenv.core.env_client.EnvClient`.

    Example:
        A server must be running::

            with KernelClient("http://127.0.0.1:8000").sync() as client:
                prompt = client.reset(task="relu").observation.text
                result = client.step(KernelAction(code=reply))
                print(result.observation.text, result.reward, result.done)
    """

    def __init__(self, base_url: str, message_timeout_s: float = 1_800.0, **options: Any) -> None:
        super().__init__(base_url=base_url, message_timeout_s=message_timeout_s, **options)

    def _step_payload(self, action: KernelAction | str) -> dict[str, Any]:
        return {"code": action if isinstance(action, str) else action.code}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        observation = KernelObservation(
            **payload["observation"], reward=payload["reward"], done=payload["done"]
        )
        return StepResult(observation=observation, reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> KernelState:
        return KernelState(**payload)
