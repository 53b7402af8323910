"""The courtesy check of a submission's source: what it refuses, and all that it must let through."""

import pytest

from gym_kernel.evaluator.source_check import check_source

HONEST = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, tl.maximum(tl.load(x + offsets, mask=mask), 0.0), mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
"""


def test_honest_kernel_has_no_findings():
    assert check_source(HONEST) == ()


@pytest.mark.parametrize(
    "code",
    [
        "class ModelNew:\n def forward(self, x):\n  try:\n   return x\n  except Exception:\n   pass",
        "# import gym_kernel\n'gym_kernel'\n" + HONEST,
        "from base import Base\nclass ModelNew(Base):\n    pass",
        "class Base:\n    def forward(self, x): return x\nclass ModelNew(Base): pass",
        "class Model:\n    def forward(self, x): return x\nModelNew = Model",
        "ModelNew: type = type('ModelNew', (), {})",
        "if True:\n    class ModelNew:\n        forward = staticmethod(lambda x: x)\nelse:\n    pass",
        "try:\n    import a\nexcept ImportError:\n    from b import c as ModelNew",
        "from kernels import *",
        "import torch\nclass ModelNew(torch.nn.Module):\n    pass\nModelNew.forward = lambda self, x: x",
        "@decorated\nclass ModelNew:\n    pass",
        "class ModelNew(metaclass=Meta):\n    pass",
        "match 1:\n    case _:\n        class ModelNew:\n            def __call__(self, x): return x",
        "import gym_kernels_of_mine\nModelNew = gym_kernels_of_mine.M",
        "from .gym_kernel import x as ModelNew",
        "s = '\\d'\n" + HONEST,
    ],
)
def test_innocent_code_is_let_through(code):
    assert check_source(code) == ()


def test_syntax_error_names_the_line_and_quotes_it():
    (finding,) = check_source("import torch\n\nclass ModelNew(:\n    pass\n")
    assert finding.line == 3
    assert "SyntaxError" in finding.message
    assert "class ModelNew(:" in finding.message


@pytest.mark.parametrize("code", ["return 1\n", "class ModelNew:\n  def forward(self):\n    nonlocal x\n"])
def test_errors_of_the_compiler_proper_are_found(code):
    assert "SyntaxError" in check_source(code)[0].message


def test_indentation_error_is_named():
    (finding,) = check_source("class ModelNew:\ndef forward(self): pass\n")
    assert finding.line == 2
    assert "IndentationError" in finding.message


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("x = 1\ny = '\0'\n", "null byte"),
        ("(" * 5000 + ")" * 5000, ""),
        ("x = " + "-" * 200_000 + "1", ""),
        ("x = " + "+".join(["1"] * 100_000), ""),
        ("x = '\ud800'", ""),
        ("", "ModelNew"),
        ("```python\nprint(1)\n```", "SyntaxError"),
    ],
)
def test_hostile_text_becomes_a_finding_and_never_raises(code, word):
    findings = check_source(code)
    assert findings
    assert word in findings[0].message
    assert findings[0].line >= 1


def test_null_byte_is_located():
    assert check_source("a = 1\nb = '\0'\n")[0].line == 2


def test_missing_class_says_what_to_define():
    (finding,) = check_source("class Other:\n    def forward(self, x): return x\n")
    assert "class ModelNew(torch.nn.Module)" in finding.message
    (finding,) = check_source("import torch\n\nclass Model:\n    def forward(self, x): return x\n")
    assert (finding.line, finding.message) == (3, "There is no class ModelNew; name this one ModelNew.")


def test_prose_is_told_where_the_module_goes():
    (finding,) = check_source("I am sorry, but I cannot write\nsuch a kernel.")
    assert "give the whole of it in one ```python block" in finding.message
    (finding,) = check_source("import torch\nx = (\n")
    assert "block" not in finding.message


def test_class_inside_a_function_does_not_count():
    assert "no class ModelNew" in check_source("def f():\n    class ModelNew: pass\n")[0].message


@pytest.mark.parametrize("base", ["nn.Module", "torch.nn.Module", "Module", "Local"])
def test_missing_forward_is_found_where_every_base_is_in_sight(base):
    code = f"class Local:\n    pass\n\nclass ModelNew({base}):\n    def __init__(self): pass\n"
    (finding,) = check_source(code)
    assert finding.line == 4
    assert "forward" in finding.message


def test_classes_that_inherit_from_themselves_do_not_hang():
    assert check_source("class ModelNew(ModelNew):\n    pass\n")[0].line == 1


@pytest.mark.parametrize(
    "line",
    [
        "import gym_kernel",
        "import os, gym_kernel.evaluator.verdict as v",
        "from gym_kernel import rewards",
        "from gym_kernel.evaluator import numerics",
        "m = __import__('gym_kernel')",
        "import importlib; m = importlib.import_module('gym_kernel.rewards')",
    ],
)
def test_reaching_for_the_evaluator_is_refused(line):
    findings = check_source(HONEST + line + "\n")
    assert len(findings) == 1
    assert findings[0].line == HONEST.count("\n") + 1
    assert "gym_kernel" in findings[0].message


def test_findings_come_in_the_order_of_lines():
    findings = check_source("x = 1\nimport gym_kernel\n")
    assert [finding.line for finding in findings] == [1, 2]
