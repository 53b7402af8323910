"""The task linter: sound tasks pass, and every rule finds the task that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from gym_kernel.errors import ConfigurationError
from gym_kernel.evaluator.input_kinds import InputKind
from gym_kernel.linter import Finding, LintProcess, Rule, Severity, lint_task
from gym_kernel.linter.null_candidates import null_candidates
from gym_kernel.linter.rounding import rounded
from gym_kernel.linter.workbench import Workbench, lint_device
from gym_kernel.tasks import Domain, Task, TaskScale, Tolerance, load
from gym_kernel.tasks.task_file import parse_task

SIZES = {"official": {"rows": 4096, "dim": 2048}, "small": {"rows": 12, "dim": 250}}


def make_task(
    forward: str = "return torch.tanh(x)",
    *,
    arguments: str = "x",
    inputs: str = "torch.randn(rows, dim)",
    init: str = "pass",
    **entries: Any,
) -> Task:
    """A task of one shape whose reference is made of these pieces."""
    declared = {"shapes": {"wide": SIZES}, **entries}
    text = f"""
import torch
from torch import nn

TASK = {declared!r}
rows = 4
dim = 4

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
    return parse_task(text, "mine")


def found(task: Task, rule: Rule, severity: Severity = Severity.ERROR) -> list[Finding]:
    """Findings of one rule and severity; each must be a sentence with a remedy."""
    findings = [f for f in lint_task(task).findings if (f.rule, f.severity) == (rule, severity)]
    assert all(f.message.endswith(".") and f.message.count(". ") >= 1 for f in findings)
    return findings


def message(task: Task, rule: Rule, severity: Severity = Severity.ERROR) -> str:
    findings = found(task, rule, severity)
    assert findings, f"No finding of {rule.value} among {lint_task(task).findings}"
    return " ".join(finding.message for finding in findings)


# --- sound tasks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "task",
    [
        make_task(),
        make_task("return x @ y", arguments="x, y", inputs="torch.randn(rows, dim), torch.randn(dim, 32)",
                  domains=["any", "any"], tolerance={"reduction_length": 2048}, flops_per_element=0),
        make_task("return x.clamp(-1, 1)", rows_independent=True),
        make_task("return x[i]", arguments="x, i", inputs="torch.randn(rows, dim), torch.randint(0, rows, (rows,))",
                  domains=["any", "fixed"], flops_per_element=0),
        make_task("return self.layer(x)", init="self.layer = nn.Linear(dim, 64)", flops_per_element=1,
                  tolerance={"reduction_length": 2048}),
    ],
    ids=["tanh", "matmul", "clamp", "gather", "linear"],
)  # fmt: skip
def test_sound_task_has_no_findings(task: Task) -> None:
    report = lint_task(task)
    assert report.sound
    assert report.findings == ()
    (shape,) = report.shapes
    assert set(shape.kinds_used) | set(shape.kinds_dropped) == {kind.value for kind in InputKind}
    assert shape.candidates > 5
    assert shape.memory_gib > 0


def test_every_shape_is_linted_and_named_in_its_findings() -> None:
    shapes = {"wide": SIZES, "huge": {**SIZES, "official": {"rows": 65536, "dim": 65536}}}
    report = lint_task(make_task(shapes=shapes))
    assert [shape.shape for shape in report.shapes] == ["wide", "huge"]
    assert [(f.rule, f.shape) for f in report.errors] == [(Rule.MEMORY, "huge")]
    assert not report.sound


def test_one_named_shape_is_linted_alone() -> None:
    report = lint_task(make_task(shapes={"a": SIZES, "b": SIZES}).at("b"))
    assert (report.task_id, [shape.shape for shape in report.shapes]) == ("mine@b", ["b"])


def test_task_without_shapes_is_linted_as_it_stands() -> None:
    (task,) = load("relu")
    assert [shape.shape for shape in lint_task(task).shapes] == [""]


def test_linting_twice_says_the_same_and_leaves_torch_as_it_was() -> None:
    task = make_task("return x * self.w", init="self.w = nn.Parameter(torch.zeros(dim))")
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    first = lint_task(task)
    assert lint_task(task) == first
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)


def test_unknown_device_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not known"):
        lint_task(make_task(), device="tpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["mingpt_gelu", "rms_norm_bf16", "causal_attention_fp16", "matmul_fp16"])
def test_task_is_sound_at_official_sizes(name: str) -> None:
    (task,) = load(name)
    report = lint_task(task, device="cuda")
    assert report.device == "cuda:0"
    assert report.errors == ()


# --- the reference -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (make_task("raise ValueError('no')"), "ValueError: no"),
        (make_task(init="raise ValueError('never')"), "ValueError: never"),
        (make_task(inputs="torch.randn(rows, nowhere)"), "nowhere"),
        (make_task(domains=["any", "any"]), "2 domains"),
        (make_task("return x[x > 0]"), "depend on the data"),
        (replace(make_task(), sizes={TaskScale.SMALL: {"columns": 3}}, shapes=()), "columns"),
    ],
)
def test_reference_that_does_not_run_is_found(task: Task, says: str) -> None:
    assert says in message(task, Rule.REFERENCE_RUNS)


_LIST = "get_inputs must return a list of tensors, one for each argument of forward"
_INIT_LIST = "get_init_inputs must return a list, one entry for each argument of Model after self"
_INPUTS, _INIT_INPUTS = "return [torch.randn(rows, dim)]", "return []"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (_INPUTS, "return torch.randn(rows, dim)", f"{_LIST}, not a Tensor. Write `return [x]`."),
        (_INPUTS, "return torch.randn(1, dim)", f"{_LIST}, not a Tensor"),
        (_INPUTS, "pass", f"{_LIST}, not None"),
        (
            _INPUTS,
            f"{_INPUTS} * 2",
            f"{_LIST}: it returns 2 entries, and what takes them has the arguments (x)",
        ),
        (_INIT_INPUTS, "pass", f"{_INIT_LIST}, not None. Write `return []`"),
        (
            _INIT_INPUTS,
            "return [3]",
            f"{_INIT_LIST}: it returns 1 entry, and what takes them has the arguments ()",
        ),
    ],
)
def test_functions_that_return_something_else_than_the_contract_says_are_found(
    old: str, new: str, says: str
) -> None:
    task = make_task()
    assert old in task.source
    assert says in message(replace(task, source=task.source.replace(old, new)), Rule.REFERENCE_RUNS)


@pytest.mark.parametrize("what", ["raise SystemExit", "raise SystemExit(0)", "raise GeneratorExit", "exit()"])
def test_reference_that_would_end_the_process_is_found(what: str) -> None:
    assert found(make_task(what), Rule.REFERENCE_RUNS)
    assert found(make_task(init=what), Rule.REFERENCE_RUNS)
    assert found(replace(make_task(), source=make_task().source + "\n" + what + "\n"), Rule.REFERENCE_RUNS)


def test_inputs_without_elements_are_found() -> None:
    findings = lint_task(make_task(inputs="torch.randn(0, dim)")).errors
    assert findings
    assert all(f.message.endswith(".") and f.message.count(". ") >= 1 for f in findings)
    assert "no elements" in message(make_task(inputs="torch.randn(0, dim)"), Rule.SIZES)


class TestProcess:
    """Tasks that take the process along, and those after them."""

    def test_task_is_named_and_the_next_ones_are_linted(self) -> None:
        endings = {
            "import os; os._exit(0)": "exit status 0",
            "import os; os.kill(os.getpid(), 9)": "signal 9",
            "while True: pass": "more than 5 s",
        }
        good = make_task()
        sound = lint_task(good)
        with LintProcess("cpu", limit_s=5.0) as process:
            assert process.lint(good) == sound
            for what, says in endings.items():
                report = process.lint(make_task(what))
                (finding,) = report.findings
                assert report.task_id == "mine"
                assert (finding.rule, finding.severity) == (Rule.REFERENCE_RUNS, Severity.ERROR)
                assert says in finding.message
                assert process.lint(good) == sound

    def test_interrupt_of_a_task_is_its_own(self) -> None:
        with LintProcess("cpu", limit_s=60.0) as process:
            assert not process.lint(make_task("raise KeyboardInterrupt")).sound
            assert process.lint(make_task()).sound

    def test_unknown_device_is_refused_before_it_starts(self) -> None:
        with pytest.raises(ConfigurationError, match="'tpu'"):
            LintProcess("tpu", limit_s=1.0)


@pytest.mark.parametrize(
    ("forward", "init", "says"),
    [
        ("return x.add_(1).tanh()", "pass", "changes input 0"),
        ("return x.view(dim, rows)", "pass", "view of input 0"),
        ("self.calls += 1; return x.tanh() + self.calls * 1e-9", "self.register_buffer('calls', torch.zeros(1))",
         "buffer 'calls'"),
    ],
)  # fmt: skip
def test_impure_reference_is_found(forward: str, init: str, says: str) -> None:
    assert says in message(make_task(forward, init=init), Rule.REFERENCE_PURE)


@pytest.mark.parametrize(
    "forward", ["return x.tanh() + 0.1 * torch.rand_like(x)", "return nn.functional.dropout(x)"]
)
def test_random_reference_is_found(forward: str) -> None:
    assert "Two runs" in message(make_task(forward), Rule.DETERMINISTIC)


def test_outputs_that_are_not_finite_are_found() -> None:
    assert "NaN or Inf" in message(make_task("return torch.log(x)"), Rule.FINITE)
    assert not found(
        make_task("return torch.log(x)", inputs="torch.rand(rows, dim) + 0.1", domains=[[1e-3, None]]),
        Rule.FINITE,
    )


def test_reference_that_disagrees_with_float64_is_found() -> None:
    assert "official inputs" in message(make_task("return (x + 1e6) - 1e6"), Rule.WELL_POSED)


def test_kinds_that_cannot_be_judged_are_listed() -> None:
    # Cancels wherever |x| is small beside the constant, so large values alone are left.
    task = make_task("return (x + 3e3) - 3e3", inputs="1e4 * torch.randn(rows, dim)")
    report = lint_task(task)
    (shape,) = report.shapes
    assert "official" in shape.kinds_used
    assert "small_scale" in shape.kinds_dropped
    assert "small_scale" in message(task, Rule.WELL_POSED, Severity.WARNING)


def test_function_that_few_kinds_can_judge_is_found() -> None:
    task = make_task("return torch.sin(1e9 * x)", inputs="1e-11 * torch.randn(rows, dim)")
    assert "of 9 kinds of inputs can be judged" in message(task, Rule.WELL_POSED)


def test_alternative_that_disagrees_with_float64_is_found() -> None:
    other = make_task("return torch.tanh((x + 1e6) - 1e6)").source
    assert "alternative 1" in message(replace(make_task(), alternatives=(other,)), Rule.WELL_POSED)


@pytest.mark.parametrize(
    ("forward", "says"),
    [
        ("return torch.tanh(x.float()).to(x.dtype)", "converts"),
        ("return torch.tanh(x).float()", "returns output 0"),
        ("y = torch.zeros(x.shape); y.copy_(x); return y.tanh().to(x.dtype)", "converts"),
    ],
)
def test_oracle_that_is_not_float64_is_found(forward: str, says: str) -> None:
    assert says in message(make_task(forward), Rule.ORACLE_PRECISION)


def test_upcast_to_float32_of_half_inputs_is_in_order() -> None:
    forward = "return torch.tanh(x if x.dtype == torch.float64 else x.float()).to(x.dtype)"
    assert lint_task(make_task(forward, inputs="torch.randn(rows, dim).half()")).findings == ()


@pytest.mark.parametrize(
    ("forward", "says"),
    [("return x - x.mean(0)", "change with the last rows"), ("return x.tanh().sum()", "sizes")],
)
def test_rows_that_are_not_independent_are_found(forward: str, says: str) -> None:
    assert says in message(make_task(forward, rows_independent=True), Rule.ROWS_INDEPENDENT)


# --- inputs and parameters -----------------------------------------------------------------------------


def test_official_inputs_outside_their_domain_are_found() -> None:
    assert "[0, 1]" in message(make_task(domains=[[0.0, 1.0]]), Rule.DOMAIN)
    assert "may vary" in message(make_task(domains=["fixed"]), Rule.DOMAIN)
    varied = make_task(
        "return x[i]",
        arguments="x, i",
        inputs="torch.randn(rows, dim), torch.randint(0, rows, (rows,))",
        domains=["any", "any"],
    )
    assert "'fixed'" in message(varied, Rule.DOMAIN, Severity.WARNING)


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (make_task(inputs="torch.randn(dim, rows).t()"), "Input 0"),
        (make_task("return torch.tanh(x).t()"), "Output 0"),
        (make_task("return torch.tanh(x @ self.w)", init="self.w = nn.Parameter(torch.randn(8, dim).t())"),
         "Parameter 'w'"),
    ],
)  # fmt: skip
def test_tensors_that_are_not_contiguous_are_found(task: Task, says: str) -> None:
    assert says in message(task, Rule.LAYOUT)


def test_input_that_is_not_used_is_found() -> None:
    two = "torch.randn(rows, dim), torch.randn(rows, dim)"
    assert "input 1" in message(
        make_task(arguments="x, y", inputs=two, domains=["any", "any"]), Rule.INPUT_USED
    )
    index = "torch.randn(rows, dim), torch.randint(0, rows, (rows,))"
    assert "input 1" in message(
        make_task(arguments="x, i", inputs=index, domains=["any", "fixed"]), Rule.INPUT_USED
    )
    assert "input 0" in message(make_task("return torch.ones_like(x)"), Rule.INPUT_USED)


def test_input_that_never_varies_is_a_warning() -> None:
    task = make_task(
        "return x.tanh() * y",
        arguments="x, y",
        inputs="torch.randn(rows, dim), torch.ones(dim)",
        domains=["any", "fixed"],
    )
    assert "Input 1" in message(task, Rule.INPUT_USED, Severity.WARNING)


@pytest.mark.parametrize(
    ("forward", "init", "says"),
    [
        ("return x.tanh()", "self.w = nn.Parameter(torch.randn(dim))", "when parameter 'w' changes"),
        ("return x.tanh()", "self.register_buffer('i', torch.arange(dim))", "when parameter 'i' changes"),
        ("return x.tanh() + self.b", "self.b = nn.Parameter(torch.zeros(dim))", "'b' is all zeros"),
        ("return x.tanh() * self.w", "self.w = nn.Parameter(torch.ones(dim))", "'w' is all ones"),
    ],
)
def test_parameter_that_does_not_matter_is_found(forward: str, init: str, says: str) -> None:
    assert says in message(make_task(forward, init=init), Rule.PARAMETER_USED)


# --- impostors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("forward", "name"),
    [
        ("return torch.zeros_like(x)", "zeros"),
        ("return torch.ones_like(x)", "ones"),
        ("return x.clone()", "input 0"),
        ("return -x", "minus input 0"),
        ("return x.abs()", "the absolute value of input 0"),
        ("return x + 2.5", "input 0 shifted by 2.5"),
        ("return 3 * x + 0.5", "the line 3 * x + 0.5"),
        ("return x.tanh().mean().expand_as(x).contiguous()", "the mean of the whole output"),
        ("return x.mean(-1, keepdim=True).expand_as(x).contiguous()", "the mean of each row"),
        ("return x.tanh()[:1].expand_as(x).contiguous()", "its first row for all rows"),
        ("y = x.tanh(); y[rows // 2:] = 0; return y", "its first half, then zeros"),
        ("y = x.tanh(); y[rows // 2:] = x[rows // 2:]; return y", "its first half, then input 0"),
        ("y = x.tanh(); y[:, -1] = 0; return y", "the last column zero"),
        ("y = x.tanh(); y[-1] = 0; return y", "the last row zero"),
        ("return torch.linspace(-1, 1, dim, dtype=x.dtype).expand_as(x).contiguous()", "for other inputs"),
    ],
)
def test_null_candidate_that_passes_is_found(forward: str, name: str) -> None:
    assert f"{name}" in message(make_task(forward), Rule.NULL_CANDIDATE)


def test_domain_that_hides_the_function_is_found() -> None:
    task = make_task("return torch.relu(x)", inputs="torch.rand(rows, dim)", domains=[[0.0, None]])
    assert "input 0" in message(task, Rule.NULL_CANDIDATE)
    assert "relu" in message(task, Rule.MISSING_CLAMP)


def test_each_output_is_held_against_the_impostors() -> None:
    assert "Output 1" in message(make_task("return x.tanh(), torch.zeros_like(x)"), Rule.NULL_CANDIDATE)


@pytest.mark.parametrize(
    "forward", ["return x.clamp(-9, 9).tanh()", "return nn.functional.relu6(x + 3).tanh()"]
)
def test_clamp_that_nothing_reaches_is_found(forward: str) -> None:
    task = make_task(forward, inputs="torch.rand(rows, dim)", domains=[[-1.0, 1.0]])
    assert "without its" in message(task, Rule.MISSING_CLAMP)


def test_clamp_against_division_by_zero_is_no_concern() -> None:
    assert lint_task(make_task("return x / x.norm(dim=-1, keepdim=True).clamp_min(1e-6)")).findings == ()


def test_tolerance_that_lets_lower_precision_pass_is_found() -> None:
    loose = Tolerance(absolute=100.0, reason="Nobody looked.")
    said = message(replace(make_task(), tolerance=loose), Rule.LOWER_PRECISION)
    assert "rounded to float16" in said
    assert "rounded to bfloat16" in said
    product = make_task("return x @ self.w", init="self.w = nn.Parameter(torch.randn(dim, 8) / 64)")
    assert "on inputs rounded" in message(replace(product, tolerance=loose), Rule.LOWER_PRECISION)


def test_rounded_inputs_are_a_warning_without_products() -> None:
    task = replace(make_task("return x.mean(-1)"), tolerance=Tolerance(absolute=1.0, reason="Nobody looked."))
    assert "on inputs rounded" in message(task, Rule.LOWER_PRECISION, Severity.WARNING)


@pytest.mark.parametrize(
    ("bits", "dtype"), [(11, torch.float16), (8, torch.bfloat16), (4, torch.float8_e4m3fn)]
)
def test_rounding_is_that_of_the_narrower_dtype(bits: int, dtype: torch.dtype) -> None:
    x = torch.randn(10_000, generator=torch.Generator().manual_seed(0)).clamp(-8, 8)
    x = x[x.abs() > 0.1]
    assert torch.equal(rounded(x, bits), x.to(dtype).to(x.dtype))
    special = torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0])
    assert torch.equal(rounded(special, bits), special) is False
    torch.testing.assert_close(rounded(special, bits), special, rtol=0, atol=0, equal_nan=True)


def test_null_candidates_have_no_meaning_for_a_single_value() -> None:
    with Workbench.open(make_task("return x.tanh().sum()"), lint_device("cpu")) as workbench:
        sample = workbench.sample(InputKind.OFFICIAL)
        made = {each.name: each.make(sample) for each in null_candidates(sample)}
    assert made["zeros"] is not None
    assert made["the mean of the whole output"] is None
    assert made["its first half, then zeros"] is None


# --- roofline and sizes --------------------------------------------------------------------------------


def test_flops_beyond_what_the_reference_does_are_found() -> None:
    assert "flops_per_element=1000" in message(make_task(flops_per_element=1000), Rule.ROOFLINE_FLOPS)
    assert not found(make_task("return x.sum(-1)", flops_per_element=2048), Rule.ROOFLINE_FLOPS)


def test_reference_that_needs_values_is_not_counted_at_its_official_sizes() -> None:
    forward = "n = 2 if x.sum() > 1e9 else 1\n        return torch.cat([x @ self.w] * n)[:rows]"
    task = make_task(
        forward, init="self.w = nn.Parameter(torch.randn(dim, 8))", tolerance={"reduction_length": 2048}
    )
    assert "cannot be counted" in message(task, Rule.MEMORY, Severity.WARNING)


def test_product_with_a_mask_is_a_warning() -> None:
    task = make_task("return x.tril() @ self.w", init="self.w = nn.Parameter(torch.randn(dim, 8) / 16)")
    assert "exactly zero" in message(task, Rule.ROOFLINE_FLOPS, Severity.WARNING)


@pytest.mark.parametrize(
    ("forward", "init"),
    [
        ("return x.tanh().sum(-1, keepdim=True).expand_as(x)", "pass"),
        ("return x.tanh() * self.a + self.b", "self.a = self.b = nn.Parameter(torch.randn(dim))"),
        ("return x.tanh() * self.a", "self.register_buffer('a', torch.randn(dim), persistent=False)"),
    ],
)
def test_bytes_that_the_roofline_miscounts_are_found(forward: str, init: str) -> None:
    assert "bytes" in message(make_task(forward, init=init), Rule.ROOFLINE_BYTES)


def test_too_much_memory_is_found() -> None:
    assert "Declare 1," in message(make_task(memory_gib=0.05), Rule.MEMORY)


def test_memory_counts_what_the_reference_and_its_oracle_hold() -> None:
    tensor_gib = 4096 * 2048 * 4 / 2**30

    def memory(**entries: Any) -> float:
        return lint_task(make_task(**entries)).shapes[0].memory_gib / tensor_gib

    # Two inputs, the output and the reference's.
    assert memory(rows_independent=True) == pytest.approx(4)
    # A float64 input and its result beside them.
    assert memory() == pytest.approx(8)
    # x * sigmoid(x) holds one more while it runs.
    assert memory(forward="return x * torch.sigmoid(x)", rows_independent=True) == pytest.approx(5)


def test_sizes_that_do_not_suit_their_scale_are_warnings() -> None:
    small = {"official": SIZES["official"], "small": {"rows": 512, "dim": 600}}
    assert "interpreted" in message(make_task(shapes={"a": small}), Rule.SIZES, Severity.WARNING)
    tiny = {"official": {"rows": 8, "dim": 8}, "small": SIZES["small"]}
    assert "launch" in message(make_task(shapes={"a": tiny}), Rule.SIZES, Severity.WARNING)


def test_domains_of_code_are_checked_as_those_of_files() -> None:
    task = replace(make_task(), domains=(Domain(0.0, 1.0),))
    assert found(task, Rule.DOMAIN)
