"""Registration of the environments with Gymnasium."""

from __future__ import annotations

import gymnasium

__all__ = ["ENV_ID", "register_environments"]

ENV_ID = "KernelEnv-v0"


def register_environments() -> None:
    """Register ``KernelEnv-v0`` once; a second call changes nothing.

    Registered as nondeterministic, because a verdict carries a measured time, and without a step limit,
    because an episode ends by itself.
    """
    if ENV_ID in gymnasium.registry:
        return
    gymnasium.register(
        id=ENV_ID,
        entry_point="gym_kernel.envs.kernel_env:KernelEnv",
        vector_entry_point="gym_kernel.envs.vector_env:KernelVectorEnv",
        nondeterministic=True,
        # Gymnasium's checker remembers a reset that failed, after which every step fails in it. What it would say of
        # arguments the environment says itself, and `check_env` can be called by hand.
        disable_env_checker=True,
    )
