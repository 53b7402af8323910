"""The environment, its text space, and the wording of prompts and feedback."""

from gym_kernel.envs.feedback import feedback
from gym_kernel.envs.info import KernelInfo
from gym_kernel.envs.kernel_env import KernelEnv
from gym_kernel.envs.prompt import task_prompt
from gym_kernel.envs.text_space import KernelText, clean_text
from gym_kernel.envs.vector_env import KernelVectorEnv

__all__ = [
    "KernelEnv",
    "KernelInfo",
    "KernelText",
    "KernelVectorEnv",
    "clean_text",
    "feedback",
    "task_prompt",
]
