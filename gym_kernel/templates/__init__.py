"""Kernel templates: source texts with a few open choices, for agents that choose numbers instead of writing text."""

from gym_kernel.templates.catalogue import load_template, template_names
from gym_kernel.templates.template import KernelTemplate

__all__ = ["KernelTemplate", "load_template", "template_names"]
