"""Which programs could mean something else with fewer headers: those that mention a name which only some declare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from compilers import CXX, needs_compiler, run

from gym_kernel.evaluator.declared_names import Kind, declarations
from gym_kernel.evaluator.hidden_names import hidden_names, mentions_of

LIGHT = """
namespace lib {
struct Box { int chosen = 3; };
inline int kept(int) { return 5; }
inline int pick(long) { return 1; }
template <class T> int operator<<(T, int) { return 1; }
}
"""
MORE = """
#define LIB_SWITCH 1
namespace lib {
inline int chosen(Box) { return 2; }
inline int pick(int) { return 2; }
inline int operator<<(Box, int) { return 2; }
struct Unseen {};
inline int operator-(Unseen, int) { return 9; }
}
"""


@needs_compiler
def test_declarations_are_found_at_namespace_scope_and_nowhere_else(tmp_path: Path) -> None:
    """What lookup finds is listed, overload by overload; parameters, members and locals are not."""
    header = tmp_path / "names.h"
    header.write_text(
        """
namespace outer { inline namespace v1 { struct Tensor { int member(int parameter); friend int held(Tensor); }; } }
namespace outer {
using std_like = int;
enum Plain { red, green }; enum class Scoped { hidden_enumerator };
template <class T = Tensor> T twice(T first) { int local = 0; return first; }
int twice(int a = 3, int b = (4)); inline bool operator<<(Tensor const& left, int right) { return left.member(right); }
extern int (*callback)(int given); int array[3], plain = 5, *pointer = nullptr;
template <> inline double twice<double>(double x) { return x; }
constexpr bool is_it = false;
}
using outer::twice;
extern "C" { __attribute__((visibility("default"))) int c_function(void); }
"""
    )
    text = run(str(CXX), "-std=c++20", "-E", "-x", "c++", str(header)).stdout
    found = list(declarations(text))
    names = {d.name for d in found}
    assert {
        "outer", "Tensor", "std_like", "Plain", "red", "green", "Scoped", "twice", "<<", "callback", "array", "plain",
        "pointer", "is_it", "c_function",
    } <= names  # fmt: skip
    assert not names & {
        "member", "parameter", "local", "hidden_enumerator", "given", "first", "left", "false", "nullptr", "T",
        "visibility",
    }  # fmt: skip
    assert len({d.line for d in found if d.name == "twice" and d.kind is Kind.FUNCTION}) == 2
    assert next(d for d in found if d.kind is Kind.DEFINITION and d.name == "Tensor").scope == ("outer",)
    assert all(d.file == str(header) for d in found)


@needs_compiler
@pytest.mark.parametrize(
    ("program", "differs"),
    [
        # The overload that only the full header has is the better one: compiles both ways, means something else.
        ("template <class T> int chosen(T) { return 1; }\nint answer() { return chosen(lib::Box()); }", True),
        ("int answer() { return lib::pick(1); }", True),
        ("int answer() { return lib::Box() << 1; }", True),
        ("int answer() {\n#ifdef LIB_SWITCH\n  return 1;\n#endif\n  return 2; }", True),
        ("int answer() { return lib::kept(1); }", False),
        ("int answer() { lib::Box box; return box.chosen; }", False),
        ("int answer() { /* chosen by pick */ return 4 - 1; }", False),
    ],
)
def test_programs_that_would_mean_something_else_mention_a_hidden_name(
    program: str, differs: bool, tmp_path: Path
) -> None:
    """Each program compiles with both headers; where its answer differs, it is found out."""
    (tmp_path / "light.h").write_text(LIGHT)
    (tmp_path / "full.h").write_text(f'#include "light.h"\n{MORE}')
    answers, read, macros = [], [], []
    for name in ("full", "light"):
        unit = tmp_path / f"{name}.cpp"
        unit.write_text(f'#include "{name}.h"\n{program}\nint main() {{ return answer(); }}\n')
        built = run(str(CXX), "-std=c++20", str(unit), "-o", str(tmp_path / name))
        assert built.returncode == 0, built.stderr
        answers.append(run(str(tmp_path / name)).returncode)
        text = run(str(CXX), "-std=c++20", "-E", "-dD", "-x", "c++", str(tmp_path / f"{name}.h")).stdout
        read.append(list(declarations(text)))
        macros.append(set(re.findall(r"^#define (\w+)", text, re.MULTILINE)))
    assert (answers[0] != answers[1]) is differs
    hidden = hidden_names(read[0], read[1], macros[0] - macros[1])
    mentions = mentions_of(program)
    assert mentions is not None
    assert any(mentions.find(name) for name in hidden) is differs


@pytest.mark.parametrize(
    "code",
    [
        '#include "own.h"',
        "#define JOIN(a, b) a##b",
        "int x = __COUNTER__;",
        "#include FILE\n",
        "int \\u00e9;",
    ],
)
def test_text_that_does_not_tell_what_it_mentions_is_not_judged(code: str) -> None:
    """Pasted names, files of its own and the like leave nothing to be sure of."""
    assert mentions_of(f"#include <torch/extension.h>\n{code}\n") is None
