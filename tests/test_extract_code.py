"""Taking the code out of a reply."""

import pytest

from gym_kernel.evaluator.submission import Submission, extract_code
from gym_kernel.tasks.task import Task

CODE = "import torch\n\nclass ModelNew(torch.nn.Module):\n    pass"


@pytest.mark.parametrize("language", ["", "python", "py", " python", 'python title="a.py"', "cuda"])
def test_one_fenced_block(language):
    assert extract_code(f"Here it is:\n\n```{language}\n{CODE}\n```\nDone.") == CODE


def test_text_without_fences_is_the_code():
    assert extract_code(CODE) == CODE
    assert extract_code("") == ""


def test_the_last_block_counts():
    assert extract_code(f"```\nfirst\n```\nBetter:\n```python\n{CODE}\n```\n") == CODE


@pytest.mark.parametrize("language", ["bash", "text", "JSON", "console title=x"])
def test_a_block_of_another_language_is_passed_over_where_there_is_one_that_may_be_the_module(language):
    assert (
        extract_code(f"```python\n{CODE}\n```\nInstall it:\n```{language}\npip install triton\n```") == CODE
    )
    assert extract_code(f"```\n{CODE}\n```\nThen:\n```{language}\nrun") == CODE
    assert extract_code(f"```{language}\n{CODE}\n```") == CODE


def test_a_last_block_that_is_cut_short_still_counts():
    assert extract_code(f"```\nfirst\n```\nBetter:\n```python\n{CODE}") == CODE


def test_a_fence_opened_at_the_very_end_is_no_block():
    assert extract_code(f"```\n{CODE}\n```\n```") == CODE
    assert extract_code(f"```\n{CODE}\n```\n```python\n   \n") == CODE


def test_tildes_and_longer_fences():
    inner = f"text = '''\n```\n'''\n{CODE}"
    assert extract_code(f"~~~python\n{inner}\n~~~") == inner
    assert extract_code(f"````python\n{inner}\n````") == inner
    assert extract_code(f"```python\n{CODE}\n`````") == CODE


def test_indented_fence_of_a_list_item():
    assert extract_code(f"   ```python\n{CODE}\n   ```") == CODE


def test_inline_code_is_no_fence():
    text = "Use ```x``` here"
    assert extract_code(text) == text


def test_windows_line_ends():
    assert extract_code("```python\r\nx = 1\r\ny = 2\r\n```\r\n") == "x = 1\ny = 2"


def test_blank_lines_inside_are_kept():
    assert extract_code("```\n\nx = 1\n\n\ny = 2\n\n```") == "\nx = 1\n\n\ny = 2\n"


def test_identifiers_of_submissions_differ():
    task = Task("relu", "suite", "ReLU", "")
    assert Submission(task, CODE).evaluation_id != Submission(task, CODE).evaluation_id
