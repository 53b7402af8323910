"""What the evidence of a call must show, and the outcome where it does not."""

from __future__ import annotations

from gym_kernel.evaluator.canary import was_canary_seen, was_spin_seen, without_canary
from gym_kernel.evaluator.outcome import Outcome, OutcomeError
from gym_kernel.evaluator.own_work import refuse_cpu_work, refuse_thin_work, refuse_work
from gym_kernel.evaluator.status import Status
from gym_kernel.evaluator.worker_messages import Call, Evidence
from gym_kernel.tasks.task import WorkPolicy

__all__ = ["EvidenceRules"]


class EvidenceRules:
    """Applies a task's work policy to one submission's evidence, call after call.

    Args:
        policy: Whether library calls are allowed.
        on_gpu: Whether kernels run on a GPU.
        output_elements: Elements of all outputs of a call together.
    """

    def __init__(self, policy: WorkPolicy, *, on_gpu: bool, output_elements: int) -> None:
        self._policy = policy
        self._on_gpu = on_gpu
        self._output_elements = output_elements
        self._libraries = 0

    def apply(self, order: Call, evidence: Evidence) -> None:
        """Refuse what a call's evidence speaks against.

        Args:
            order: What the worker was told to do.
            evidence: What its witnesses noted.

        Raises:
            OutcomeError: The witnesses are blind, work is borrowed, or kernels outlast the call.
        """
        self._refuse_blind_witness(order, evidence)
        work = without_canary(order.canary, evidence.work)
        self.refuse_borrowed(refuse_work(work))
        self._libraries = max(self._libraries, evidence.libraries)
        if not self._on_gpu:
            self.refuse_borrowed(refuse_cpu_work(work, self._libraries))
        if work.profile.unjoined:
            reason = (
                f"Kernels still ran when the current stream had finished forward: {', '.join(work.profile.unjoined)}. "
                "Have the current stream wait for every stream that you use."
            )
            raise OutcomeError(Outcome(Status.CHEATING, reason=reason, cheat="unjoined_stream"))

    def thin_work(self, evidence: Evidence) -> str:
        """Why a call's own kernels can have made only a part of the output; empty where they can have made it."""
        if self._on_gpu:
            return ""
        return refuse_thin_work(evidence.work, self._libraries, self._output_elements)

    def refuse_borrowed(self, why: str) -> None:
        """Refuse work that is not the submission's own, where the task wants it to be.

        Args:
            why: What was seen; empty for nothing.

        Raises:
            OutcomeError: There is something, and the policy forbids it.
        """
        if why and self._policy is WorkPolicy.OWN_KERNELS_ONLY:
            reason = f"{why} Every value must come from the kernels you submit."
            raise OutcomeError(Outcome(Status.CHEATING, reason=reason, cheat="borrowed_work"))

    def _refuse_blind_witness(self, order: Call, evidence: Evidence) -> None:
        seen = was_canary_seen(order.canary, evidence.work)
        if order.profiled and self._on_gpu:
            seen = seen and was_spin_seen(evidence.work.profile)
        if not seen:
            raise OutcomeError(
                Outcome.tampering("the record of a call lacks what the harness itself did in it")
            )
