"""A document of a dozen lines: what is missing, wrong or stale in it is found."""

import pytest

from tests.documents.inventory import (
    Aside,
    Inventory,
    classed,
    open_units,
    wrong_quotes,
)
from tests.documents.marks import BadMarkError, Mark, marks_of
from tests.documents.pages import entries, page, place_in, place_on
from tests.documents.reading import read

TINY = read(
    """\
# Tiny

Histories grow (e.g. by logs). They are cut.

## Rule

1. Old results are cut. The newest
   stays.
   - Skips what is short

| Setting | Default |
|---------|:-------:|
| `Limit` | `5 * 2` |

```python
if tokens > budget:
    cut(
        old,
    )
else:
```

---
## Flow

```
┌──────────┐
│ over?    │
└──────────┘
    ▼ yes
```
""",
    "tiny",
)


def mark(section, quote, **more):
    return Mark("tiny", section, quote, "tests/test_it.py::test_it", **more)


EVERYTHING = [
    mark("Tiny", "Histories grow (e.g. by logs)."),
    mark("Tiny", "They are cut."),
    mark("Rule", "Old results are cut."),
    mark("Rule", "The newest stays."),
    mark("Rule", "Skips what is short"),
    mark("Rule", "| `Limit` | `5 * 2` |"),
    mark("Rule", "if tokens > budget:"),
    mark("Rule", "cut(old,)"),
    mark("Flow", "over?"),
    mark("Flow", "yes"),
]
NOTHING = Inventory("Tiny", "tiny", "tiny", "About.")


def texts(units):
    return [unit.text for unit in units]


# Reading


def test_a_document_is_taken_apart_into_sentences_items_rows_lines_and_statements():
    assert [
        (unit.section, unit.text, unit.line)
        for unit in TINY.units
        if unit.worth
    ] == [
        ("Tiny", "Histories grow (e.g. by logs).", 3),
        ("Tiny", "They are cut.", 3),
        ("Rule", "Old results are cut.", 7),
        ("Rule", "The newest stays.", 7),
        ("Rule", "Skips what is short", 9),
        ("Rule", "`Limit` | `5 * 2`", 13),
        ("Rule", "if tokens > budget:", 16),
        ("Rule", "cut( old, )", 17),
        ("Flow", "over?", 28),
        ("Flow", "yes", 30),
    ]


def test_the_head_of_a_table_and_a_lone_else_ask_for_no_proof():
    unproved = texts(unit for unit in TINY.units if not unit.worth)
    assert {"Setting | Default", "else:"} <= set(unproved)


# What is open, what is wrong


def test_with_a_test_for_each_sentence_nothing_is_open():
    assert open_units(TINY, NOTHING, EVERYTHING) == []
    assert list(wrong_quotes(TINY, EVERYTHING)) == []


@pytest.mark.parametrize("number", range(len(EVERYTHING)))
def test_a_sentence_without_a_test_is_found(number):
    rest = EVERYTHING[:number] + EVERYTHING[number + 1 :]
    missing = open_units(TINY, NOTHING, [])[number]
    assert open_units(TINY, NOTHING, rest) == [missing]


def test_a_part_proves_nothing_alone_and_all_of_it_with_the_other_part():
    parts = [mark("Rule", "Skips what"), mark("Rule", "is short")]
    assert "Skips what is short" in texts(open_units(TINY, NOTHING, parts[:1]))
    assert "Skips what is short" not in texts(open_units(TINY, NOTHING, parts))


def test_a_quote_may_be_wrapped_differently_and_run_over_several_units():
    long = mark("Rule", "if tokens > budget:\n    cut(old,)\nelse:")
    listed = mark(
        "Rule",
        "1. Old results are cut.\n   The newest stays.\n   - Skips what is short",
    )
    assert texts(open_units(TINY, NOTHING, [long, listed])) == [
        "Histories grow (e.g. by logs).",
        "They are cut.",
        "`Limit` | `5 * 2`",
        "over?",
        "yes",
    ]


@pytest.mark.parametrize(
    ("section", "quote", "says"),
    [
        (
            "Rule",
            "Old results are cut!",
            "the section 'Rule' has no such words",
        ),
        ("Rule", "They are cut.", "it stands in 'Tiny'"),
        (
            "Rules",
            "Old results are dropped.",
            "the document has no section 'Rules'",
        ),
        ("Rule", "...", "the section 'Rule' has no such words"),
    ],
)
def test_a_quote_that_is_not_there_is_found_and_said_where_it_is(
    section, quote, says
):
    (told,) = wrong_quotes(TINY, [mark(section, quote)])
    assert told.startswith("tests/test_it.py::test_it quotes ")
    assert told.endswith(says)


# What is no behaviour


def test_what_is_classed_is_not_open_and_part_two_is_open_later():
    aside = (
        Aside(
            "context",
            "Tiny",
            texts=("Histories grow (e.g. by logs). They are cut.",),
        ),
        Aside("part two", "Rule", first="`Limit` | `5 * 2`", last="yes"),
        Aside("host", "Flow", texts=("yes",)),
    )
    inventory = Inventory("Tiny", "tiny", "tiny", "About.", aside=aside)
    assert texts(open_units(TINY, inventory, [])) == [
        "Old results are cut.",
        "The newest stays.",
        "Skips what is short",
    ]
    later = texts(open_units(TINY, inventory, [], part_two=True))
    assert later == [
        "`Limit` | `5 * 2`",
        "if tokens > budget:",
        "cut( old, )",
        "over?",
    ]


@pytest.mark.parametrize(
    "aside",
    [
        Aside("context", "Tiny", texts=("They are cut.", "Histories shrink.")),
        Aside("context", "Rule", first="Histories shrink.", last="yes"),
        Aside(
            "context",
            "Rule",
            first="Skips what is short",
            last="Histories shrink.",
        ),
        Aside(
            "context",
            "Rule",
            first="Skips what is short",
            last="Old results are cut.",
        ),
        Aside("context", "Nowhere", texts=("They are cut.",)),
    ],
)
def test_an_entry_that_is_not_in_the_document_is_found(aside):
    _, lost = classed(
        TINY, Inventory("Tiny", "tiny", "tiny", "About.", aside=(aside,))
    )
    assert len(lost) == 1


# Marks


MARKED = """
import pytest

pytestmark = [pytest.mark.says("d", "s", "of the file")]

@pytest.mark.says("d", "s", "first", lives="ullage.core.turn")
@pytest.mark.says(
    "d", "s", "two "
    "lines"
)
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.says("d", "s", "one row"))])
def test_a(n): ...

class TestB:
    @pytest.mark.says("d", "s", "in a class", see="make test")
    def test_c(self): ...
"""


def test_marks_are_read_from_files_functions_classes_and_rows():
    assert list(marks_of(MARKED, "t.py")) == [
        Mark("d", "s", "of the file", "t.py"),
        Mark("d", "s", "first", "t.py::test_a", lives="ullage.core.turn"),
        Mark("d", "s", "two lines", "t.py::test_a"),
        Mark("d", "s", "one row", "t.py::test_a"),
        Mark("d", "s", "in a class", "t.py::TestB::test_c", see="make test"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("@pytest.mark.says('d', 's')\ndef test_a(): ...", "t.py:1: says"),
        (
            "@pytest.mark.says('d', 's', '')\ndef test_a(): ...",
            "none of them empty",
        ),
        (
            "@pytest.mark.says('d', 's', QUOTE)\ndef test_a(): ...",
            "literal texts",
        ),
        (
            "@pytest.mark.says('d', 's', 'q', live='x')\ndef test_a(): ...",
            "literal texts",
        ),
        (
            "@pytest.mark.says('d', 's', 'q')\ndef given(): ...",
            "given is no test",
        ),
        (
            "@pytest.mark.xfail\n@pytest.mark.says('d', 's', 'q')\ndef test_a(): ...",
            "never has",
        ),
    ],
)
def test_a_mark_that_proves_nothing_or_cannot_be_read_is_refused(text, says):
    with pytest.raises(BadMarkError, match=says):
        list(marks_of(text, "t.py"))


# Pages


DEVIATIONS = """\
| sentence | …
| tiny 1: is cut | left | legal | `t` |
| tiny: all of it | most | legal | `t` |
| other 2 | … | … | … |
"""


def written(marks, order):
    return page(NOTHING, entries(marks), order, DEVIATIONS)


def test_a_page_goes_by_the_document_and_says_where_and_how():
    marks = [
        mark(
            "Rule",
            "if tokens > budget:\n    cut(old,)",
            lives="ullage.policy.stages.prune.prune",
        ),
        mark("Rule", "The newest stays.", see="make test"),
        Mark(
            "tiny", "Rule", "The newest  stays.", "tests/test_it.py::test_too"
        ),
    ]
    _, _, told = written(marks, place_in(TINY)).partition("\n\n")
    assert (
        told
        == """\
# Tiny

About.

Its letter yields here ([all of them](../deviations.md)):

| sentence | how we take it | why | test |
|---|---|---|---|
| tiny 1: is cut | left | legal | `t` |
| tiny: all of it | most | legal | `t` |

## Rule

> The newest stays.

Proved by [`tests/test_it.py::test_it`](../../tests/test_it.py), \
[`tests/test_it.py::test_too`](../../tests/test_it.py).
See `make test`.

```text
if tokens > budget:
    cut(old,)
```

Lives in [`ullage.policy.stages.prune.prune`](../../src/ullage/policy/stages/prune.py).
Proved by [`tests/test_it.py::test_it`](../../tests/test_it.py).
"""
    )


def test_without_the_document_a_page_keeps_its_order_and_is_found_stale():
    standing = written(EVERYTHING[:-1], place_in(TINY))
    shuffled = EVERYTHING[-2::-1]
    assert written(shuffled, place_on(standing)) == standing
    assert written(EVERYTHING, place_on(standing)) != standing
    assert written(shuffled[1:], place_on(standing)) != standing
    moved = [
        Mark("tiny", each.section, each.quote, "tests/test_new.py::test_it")
        for each in shuffled
    ]
    assert written(moved, place_on(standing)) != standing
