"""Matched evaluation of policies: who answers, how it is judged, and how two runs compare.

    policy.py       what a policy is; the three kinds are in reply_folder.py, hugging_face.py and endpoint.py
    protocol.py     what must be equal for two runs to be comparable
    play.py         episodes, several at once, through gym_kernel.wrappers.RepairBudget
    journal.py      the rows of a run, kept as they are made, so that a run can be resumed
    summary.py      rates and means by group
    comparison.py   two runs, task by task; picture.py draws it

The command line is ``examples/evaluate_policy.py``.
"""
