"""A pattern finds every value of a JSON document, and not its one line."""

import json

import pytest

from ullage.core.values.effects import Output
from ullage.core.values.messages import ToolCall
from ullage.core.values.notices import Words
from ullage.core.values.toolset import SHORT
from ullage.session.drivers import run
from ullage.session.recall.dispatch import answer
from ullage.session.recall.json_lines import json_lines
from ullage.stores import MemoryStore

ROWS = [
    {"id": at, "sku": f"SKU-{at % 50:04}", "note": "the tide\ncame in"}
    for at in range(300)
]


def searched(text, pattern, **more):
    """What a search of an output gives."""
    arguments = {"tool_call_id": "r" * 16, "pattern": pattern, **more}
    call = ToolCall("c1", "get_continuation", json.dumps(arguments), 0)
    output = Output("r" * 16, text)
    steps = answer(
        call, Words(toolset=SHORT), lambda wanted, thoroughly: output
    )
    return run(steps, MemoryStore(), "").text


@pytest.mark.parametrize(
    "document",
    [
        json.dumps(ROWS),
        json.dumps({"type": "text", "text": json.dumps(ROWS, indent=2)}),
    ],
    ids=["one line", "a text block"],
)
def test_each_match_in_one_line_is_shown_with_its_path_and_what_is_beside_it(
    document,
):
    *shown, last = searched(document, "SKU-0007", context_lines=1).splitlines()
    paths = [
        line.partition(": ")[2] for line in shown if line.startswith(": ")
    ]
    prefix = "text" if document.startswith("{") else ""
    assert paths == [
        f'{prefix}[{at}].sku: "SKU-0007"' for at in range(7, 300, 50)
    ]
    assert f"- {prefix}[7].id: 7" in shown
    assert last.startswith("[6 of 6 matching values, each with its path;")


def test_a_pattern_that_only_the_writing_matches_is_found_as_it_is_written():
    assert "1 of 1 matching lines" in searched(
        json.dumps(ROWS), '"sku": "SKU-0007"'
    )


def test_a_document_of_short_lines_and_a_long_line_of_text_are_searched_as_they_are():
    assert "matching lines" in searched(json.dumps(ROWS, indent=1), "SKU-0007")
    assert "matching lines" in searched("the tide came in " * 900, "tide")


def test_each_value_is_a_line_with_its_path():
    value = {"a": [1, {"b": "x\ny"}], "empty": [], "inner": '{"c": null}'}
    assert json_lines(json.dumps(value)).splitlines() == [
        "a[0]: 1",
        'a[1].b: "x\\ny"',
        "empty: []",
        "inner.c: null",
    ]
    assert json_lines("no JSON") is None
