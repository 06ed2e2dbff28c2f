"""What stands around the texts is counted, and arguments as the model is shown them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.tokens.models import counter_for
from ullage.tokens.overhead import argument_text, overhead_for

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=8,
)


@pytest.mark.parametrize("model", ["gpt-5", "claude-opus-4-5", "gemini-2.5-pro", "unknown"])
def test_every_family_has_its_overhead(model):
    overhead = overhead_for(model)
    assert min(overhead.request, overhead.message, overhead.call, overhead.result) > 0


def test_code_in_an_argument_counts_as_code_for_claude():
    code = 'if name == "x":\n\tprint("y")\n' * 50
    arguments = json.dumps({"content": code})
    shown = argument_text(arguments)
    assert code in shown
    counter = counter_for("claude-opus-4-5")
    assert counter.count(shown) < 0.9 * counter.count(arguments)


def test_unicode_escapes_are_written_out():
    assert "中文" in argument_text(json.dumps({"q": "中文\n"}))


@given(value=st.dictionaries(st.text(), JSON), junk=st.text())
def test_any_text_has_an_argument_text(value, junk):
    assert argument_text(json.dumps(value)) is not None
    assert isinstance(argument_text(junk + "\\u"), str)
