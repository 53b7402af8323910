# ruff: noqa: RUF001 (g++ writes typographic quotes)
"""What a policy is told when Python, Triton or a C++ compiler refuses its code."""

import importlib.util

import pytest

from gym_kernel.evaluator.diagnostics import bounded, compiler_output, python_traceback

MODULE = '''import torch
from torch.utils.cpp_extension import load_inline

cpp_source = """
#include <vector>

torch::Tensor relu_forward(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) {
        out[i] = in[i] > 0 ? in[i] : 0
    }
    undeclared(y);
    return x.no_such_method();
}
"""

relu = load_inline(name="relu_ext", cpp_sources=cpp_source, functions=["relu_forward"])
'''

# What g++ 12 and ninja said about MODULE, with shorter directories and flags.
GCC = """Error building extension 'relu_ext': [1/2] c++ -MMD -MF main.o.d -DTORCH_EXTENSION_NAME=relu_ext \
-isystem /opt/venv/lib/python3.11/site-packages/torch/include -fPIC -c /tmp/ext/relu_ext/main.cpp -o main.o
FAILED: [code=1] main.o
c++ -MMD -MF main.o.d -DTORCH_EXTENSION_NAME=relu_ext -fPIC -O3 -c /tmp/ext/relu_ext/main.cpp -o main.o
/tmp/ext/relu_ext/main.cpp: In function ‘at::Tensor relu_forward(at::Tensor)’:
/tmp/ext/relu_ext/main.cpp:10:39: error: expected ‘;’ before ‘}’ token
   10 |         out[i] = in[i] > 0 ? in[i] : 0
      |                                       ^
      |                                       ;
   11 |     }
      |     ~
/tmp/ext/relu_ext/main.cpp:12:5: error: ‘undeclared’ was not declared in this scope
   12 |     undeclared(y);
      |     ^~~~~~~~~~
/tmp/ext/relu_ext/main.cpp:13:14: error: ‘class at::Tensor’ has no member named ‘no_such_method’
   13 |     return x.no_such_method();
      |              ^~~~~~~~~~~~~~
ninja: build stopped: subcommand failed.
"""

CUDA_MODULE = '''cuda_source = """
__global__ void relu(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] = undefined_function(x[i]);
    }
}
torch::Tensor forward(torch::Tensor x) {
    auto y = torch::empty_like(x)
    return y;
}
"""
'''

# The form of nvcc's front end: the line in brackets, then the line's text and a caret.
NVCC = """Error building extension 'e': [1/3] /usr/local/cuda/bin/nvcc -c /tmp/ext/e/cuda.cu -o cuda.cuda.o
FAILED: cuda.cuda.o
/usr/local/cuda/bin/nvcc -c /tmp/ext/e/cuda.cu -o cuda.cuda.o
/opt/venv/lib/python3.11/site-packages/torch/include/c10/Half.h(12): warning #177-D: variable "a" was declared
      int a;
          ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

/tmp/ext/e/cuda.cu(8): error: identifier "undefined_function" is undefined
          y[i] = undefined_function(x[i]);
                 ^

/tmp/ext/e/cuda.cu(13): error: expected a ";"
      return y;
      ^

2 errors detected in the compilation of "/tmp/ext/e/cuda.cu".
ninja: build stopped: subcommand failed.
"""


def test_gcc_errors_are_given_the_modules_line_numbers():
    assert compiler_output(GCC, MODULE).splitlines() == [
        "line 12: error: expected ';' before '}' token",
        "   12 |         out[i] = in[i] > 0 ? in[i] : 0",
        "      |                                       ^",
        "      |                                       ;",
        "   13 |     }",
        "      |     ~",
        "line 14: error: 'undeclared' was not declared in this scope",
        "   14 |     undeclared(y);",
        "      |     ^~~~~~~~~~",
        "line 15: error: 'class at::Tensor' has no member named 'no_such_method'",
        "   15 |     return x.no_such_method();",
        "      |              ^~~~~~~~~~~~~~",
    ]


def test_nvcc_errors_are_given_the_modules_line_numbers():
    assert compiler_output(NVCC, CUDA_MODULE).splitlines() == [
        'line 5: error: identifier "undefined_function" is undefined',
        "          y[i] = undefined_function(x[i]);",
        "                 ^",
        'line 10: error: expected a ";"',
        "      return y;",
        "      ^",
    ]


def test_a_line_that_stands_twice_is_told_apart_by_its_neighbours():
    module = 'a = """\nbroken;\n"""\nb = """\nfirst bad;\nbroken;\n"""\n'
    output = (
        "/t/main.cpp:2:1: error: one\n    2 | first bad;\n      | ^\n"
        "/t/main.cpp:3:1: error: two\n    3 | broken;\n      | ^\n"
    )
    assert "line 6: error: two" in compiler_output(output, module)


def test_errors_come_before_warnings_and_header_noise_is_dropped():
    output = (
        "/opt/torch/include/x.h:9:1: warning: from a header\n    9 | x\n      | ^\n"
        "/t/main.cpp:3:1: warning: unused variable\n    3 | int a;\n      | ^\n"
        "/opt/torch/include/y.h:5:2: note: candidate is here\n    5 | y\n      | ^\n"
        "/opt/torch/include/y.h:7:2: error: static assertion failed\n    7 | y\n      | ^\n"
        "/t/main.cpp:4:1:   required from here\n    4 | call<int>();\n      | ^\n"
    )
    lines = compiler_output(output, "int a;\ncall<int>();\n").splitlines()
    assert lines[0] == "y.h:7: error: static assertion failed"
    assert lines[1] == "line 1: warning: unused variable"
    assert "line 2: required from here" in lines
    assert not any("candidate is here" in line or "from a header" in line for line in lines)


@pytest.mark.parametrize(
    "line",
    [
        "/usr/bin/ld: main.o: in function `f': main.cpp:(.text+0x5): undefined reference to `missing_kernel'",
        "ptxas error   : Entry function 'k' uses too much shared data (0x14000 bytes, 0xc000 max)",
        "collect2: error: ld returned 1 exit status",
        "nvcc fatal error : something",
    ],
)
def test_linker_and_assembler_errors_are_kept(line):
    text = (
        f"[2/2] c++ main.o -shared -o e.so\nFAILED: e.so\n{line}\nninja: build stopped: subcommand failed.\n"
    )
    shown = compiler_output(text, MODULE)
    assert line.split(": ")[-1] in shown
    assert "ninja" not in shown
    assert "/usr/bin" not in shown


def test_unrecognised_output_is_not_swallowed():
    assert compiler_output("Ninja is required to load C++ extensions\n", MODULE).startswith(
        "Ninja is required"
    )
    assert compiler_output("ninja: build stopped", MODULE) == "ninja: build stopped"
    assert compiler_output("", MODULE) == ""


def test_output_is_bounded():
    text = "".join(f"/t/main.cpp:{n}:1: error: number {n}\n" for n in range(5000))
    shown = compiler_output(text, MODULE, limit=500)
    assert len(shown) < 600
    assert "number 0" in shown
    assert "number 4999" in shown


@pytest.mark.parametrize("size", [0, 5, 6, 7, 1000])
def test_bounded_keeps_head_and_tail(size):
    text = "".join(chr(ord("a") + n % 26) for n in range(size))
    shown = bounded(text, 6)
    if size <= 6:
        assert shown == text
    else:
        assert shown == f"{text[:4]}\n... {size - 6} characters left out ...\n{text[-2:]}"


def raised_by(tmp_path, source):
    path = tmp_path / "submission.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("submission", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        return python_traceback(error, path, source)
    raise AssertionError("nothing was raised")


def test_frames_of_libraries_are_left_out(tmp_path):
    shown = raised_by(tmp_path, "import json\n\ndef f(text):\n    return json.loads(text)\n\nf('{')\n")
    assert shown.splitlines()[:4] == [
        "submission.py, line 6, in <module>",
        "    f('{')",
        "submission.py, line 4, in f",
        "    return json.loads(text)",
    ]
    assert shown.splitlines()[4].startswith("JSONDecodeError: Expecting")
    assert str(tmp_path) not in shown
    assert "decoder.py" not in shown


def test_causes_are_shown_first(tmp_path):
    shown = raised_by(
        tmp_path,
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise RuntimeError('outer') from error\n",
    )
    assert shown.split("\n\n") == [
        "submission.py, line 2, in <module>\n    1 / 0\nZeroDivisionError: division by zero",
        "submission.py, line 4, in <module>\n    raise RuntimeError('outer') from error\nRuntimeError: outer",
    ]


def test_runaway_recursion_is_cut_short(tmp_path):
    shown = raised_by(tmp_path, "def f():\n    return f()\n\nf()\n")
    assert "frames left out" in shown
    assert shown.endswith("RecursionError: maximum recursion depth exceeded")
    assert len(shown) < 1000


def test_causes_that_go_in_a_circle_end():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert "first" in python_traceback(first, "submission.py", "")


def test_hostile_exceptions_are_formatted(tmp_path):
    shown = raised_by(tmp_path, "class E(Exception):\n    def __str__(self):\n        raise E\n\nraise E\n")
    assert "line 5" in shown
    assert "E" in shown.splitlines()[-1]


def test_system_exit_is_shown(tmp_path):
    assert raised_by(tmp_path, "raise SystemExit(0)\n").endswith("SystemExit: 0")


def test_directories_and_torch_stacks_are_left_out(tmp_path):
    shown = raised_by(
        tmp_path,
        "text = ('bad\\nException raised from f at /opt/pytorch/a.cpp:1 (most recent call first):\\n"
        "frame #0: c10::Error (0x1 in /opt/venv/lib/python3.11/site-packages/torch/lib/libc10.so)\\n"
        "see /opt/venv/lib/python3.11/site-packages/torch/x.py and /etc/app/conf.d/file.txt, 1/2.5')\n"
        "raise RuntimeError(text)\n",
    )
    assert "frame #0" not in shown
    assert "Exception raised" not in shown
    assert shown.splitlines()[-1] == "see torch/x.py and file.txt, 1/2.5"


KERNEL = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def helper(v):
    return tl.dot(v, v)


@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    v = tl.load(x + offsets)
    tl.store(y + offsets, BODY)


source = ASTSource(kernel, {"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr"}, {(2,): 1024})
triton.compile(source, target=GPUTarget("cuda", 90, 32))
"""


@pytest.mark.parametrize(
    ("body", "caret_line", "word"),
    [
        ("tl.no_such(v)", "    tl.store(y + offsets, tl.no_such(v))", "has no attribute 'no_such'"),
        ("helper(v)", "    return tl.dot(v, v)", "must have equal ranks"),
    ],
)
def test_triton_compile_errors_keep_their_own_source(tmp_path, body, caret_line, word):
    # Triton's front end needs no GPU, so these are its real messages.
    pytest.importorskip("triton")
    from triton import knobs

    if knobs.runtime.interpret:
        pytest.skip("the interpreter does not compile")
    shown = raised_by(tmp_path, KERNEL.replace("BODY", body))
    assert shown.count(word) == 1
    assert caret_line in shown
    assert "CompilationError: at " in shown
    assert "site-packages" not in shown
    assert "compiler.py" not in shown
    assert "submission.py, line 21, in <module>" in shown


def test_triton_interpreter_errors_point_into_the_kernel(tmp_path):
    # The interpreter runs a rewritten copy of the kernel that keeps the file's name and lines.
    shown = raised_by(
        tmp_path,
        "def kernel():\n    return missing\n\ndef launch():\n    try:\n        kernel()\n"
        "    except Exception as error:\n        raise RuntimeError(repr(error)) from error\n\nlaunch()\n",
    )
    first, second = shown.split("\n\n")
    assert "submission.py, line 2, in kernel\n    return missing\nNameError" in first
    assert second.endswith("""RuntimeError: NameError("name 'missing' is not defined")""")
