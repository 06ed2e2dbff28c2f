"""The pattern for lines that speak of errors is written for speed; it means the plain one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.policy.stages.shorten import ERRORS

PLAIN = re.compile(
    r"\b(?i:error|exception|traceback|failed|failure|fatal|panic|exit (code|status)|assert)\w*\b"
    r"|(?<=[A-Za-z])(Error|Exception)(:|$)",
    re.MULTILINE,
)
WORDS = (
    *(
        "error",
        "Exception",
        "TRACEBACK",
        "failed",
        "failure",
        "fatal",
        "panic",
        "assert",
    ),
    *(
        "exit code",
        "exit status",
        "exit",
        "Exitcode",
        "as\u017f\u017fert",
        "err",
        "fail",
        "s",
    ),
    *("TypeError", "Error:", "Exception\n", "IO", ":"),
    *("é", "e\u0301", "\n", " ", "_", "1", ".", "x"),
)


@given(
    st.lists(st.sampled_from(WORDS), max_size=9),
    st.integers(0, 4),
    st.integers(0, 4),
)
def test_the_fast_pattern_finds_what_the_plain_one_finds(
    words, skipped, left_off
):
    text = "".join(words)
    stop = max(len(text) - left_off, 0)
    found = [match.span() for match in ERRORS.finditer(text, skipped, stop)]
    assert found == [
        match.span() for match in PLAIN.finditer(text, skipped, stop)
    ]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "TypeError: x is not a function",
            "ValueError: 'a'",
            "KeyError: 'x'",
            "OSError:",
            "E   KeyError",
        ),
        *(
            "java.lang.NullPointerException: at",
            "Caused by: a.b.SQLException",
            "panic: oh",
            "error[E0308]:",
        ),
        *(
            "FAILED tests/test_a.py",
            "fatal: not a git repository",
            "exit status 1",
            "npm ERROR! x",
        ),
    ],
)
def test_a_line_that_an_interpreter_or_a_tool_says_an_error_in_is_found(line):
    assert ERRORS.search(f"all is well\n{line}\nso it is")


@pytest.mark.parametrize(
    "line", ["raise ValueError(x)", "class MyError(Base)", "terror: none"]
)
def test_a_line_of_code_that_only_names_one_is_not(line):
    assert not ERRORS.search(f"all is well\n{line}\nso it is")
