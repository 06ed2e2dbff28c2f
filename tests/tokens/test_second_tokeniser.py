"""Our counts beside a second tokeniser's; it has no wheel for Python 3.14 yet."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.bench.token_corpus import generated
from ullage.core.tokens.exact import exact, repaired

quicktok = pytest.importorskip("quicktok")

KINDS = generated(6_000)
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=300)
ENCODINGS = ("o200k_base", "cl100k_base")


def second_opinion(text, encoding):
    return len(quicktok.get_encoding(encoding).encode_ordinary(text))


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=ANY_TEXT)
def test_two_tokenisers_agree_on_any_text(encoding, text):
    assert exact(encoding).count(text) == second_opinion(
        repaired(text), encoding
    )


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_two_tokenisers_agree_on_what_agents_read(encoding, kind):
    assert exact(encoding).count(KINDS[kind]) == second_opinion(
        KINDS[kind], encoding
    )


@pytest.mark.parametrize("module", [threading, subprocess, Path, pytest])
def test_two_tokenisers_agree_on_the_standard_library(module):
    source = Path(
        sys.modules[
            module.__module__ if module is Path else module.__name__
        ].__file__
    )
    text = source.read_text(encoding="utf-8")
    assert exact("o200k_base").count(text) == second_opinion(
        text, "o200k_base"
    )
