"""The pattern for lines that speak of errors is written for speed; it means the plain one."""

import re

from hypothesis import given
from hypothesis import strategies as st

from ullage.stages.shorten import ERRORS

PLAIN = re.compile(
    r"\b(error|exception|traceback|failed|failure|fatal|panic|exit (code|status)|assert)\w*\b",
    re.IGNORECASE,
)
WORDS = (
    *("error", "Exception", "TRACEBACK", "failed", "failure", "fatal", "panic", "assert"),
    *("exit code", "exit status", "exit", "Exitcode", "as\u017f\u017fert", "err", "fail", "s"),
    *("é", "e\u0301", "\n", " ", "_", "1", ".", "x"),
)


@given(st.lists(st.sampled_from(WORDS), max_size=9), st.integers(0, 4), st.integers(0, 4))
def test_the_fast_pattern_finds_what_the_plain_one_finds(words, skipped, left_off):
    text = "".join(words)
    stop = max(len(text) - left_off, 0)
    found = [match.span() for match in ERRORS.finditer(text, skipped, stop)]
    assert found == [match.span() for match in PLAIN.finditer(text, skipped, stop)]
