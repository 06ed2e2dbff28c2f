"""Every rule is judged by an example and a near miss, or docs/validator.md says why it is not."""

import re
from itertools import groupby
from pathlib import Path

import pytest

from lab.returned import problems
from tests.second_reading import broken
from tests.wires.more_examples import MORE
from tests.wires.rule_examples import EXAMPLES
from tests.wires.test_second_reading import SHAPE
from ullage.wires.rules.problem import RULES

ROWS = [
    pytest.param(
        format, rule, *row, *[None] * (3 - len(row)), id=f"{format} {rule}"
    )
    for format, table in EXAMPLES.items()
    for rule, row in table.items()
] + [
    pytest.param(
        format, rule, breaks, near, None, id=f"{format} {rule}: {what}"
    )
    for format, rule, what, breaks, near in MORE
]
rows = pytest.mark.parametrize(
    ("format", "rule", "breaks", "near", "history"), ROWS
)


@rows
def test_the_example_breaks_this_rule_and_no_other(
    format, rule, breaks, near, history
):
    found = problems(format, breaks, history=history)
    assert {problem.rule for problem in found} == {rule}
    assert [problem.remedy for problem in found] == [RULES[rule].remedy] * len(
        found
    )
    assert {problem.verified for problem in found} == {RULES[rule].verified}


@rows
def test_the_near_miss_breaks_nothing(format, rule, breaks, near, history):
    assert problems(format, near, history=history) == []


@rows
def test_the_second_reading_says_the_same(format, rule, breaks, near, history):
    assert broken(format, near) == set()
    if history is None and rule not in SHAPE:
        assert broken(format, breaks) == {rule}


def test_every_rule_has_its_examples_or_a_reason():
    shown = {rule for table in EXAMPLES.values() for rule in table}
    assert shown == RULES.keys()
    page = (Path(__file__).parents[2] / "docs/validator.md").read_text(
        encoding="utf-8"
    )
    rows = re.findall(
        r"^\| ([^|]+) \|",
        page.partition("## What is not judged")[2],
        re.MULTILINE,
    )
    left = re.findall(r"[A-Z]\d+", " ".join(rows))
    every = sorted([*RULES, *left])
    for wire, of_wire in groupby(every, key=lambda rule: rule[0]):
        numbers = sorted(int(rule[1:]) for rule in of_wire)
        assert numbers == list(
            range(wire == "P", len(numbers) + (wire == "P"))
        )


def test_only_what_was_read_or_seen_counts_as_verified():
    assert not any(
        rule.verified
        for rule in RULES.values()
        if set(rule.source) & set("MT")
    )
    assert not any(rule.verified for rule in RULES.values() if not rule.source)
    assert {"A3", "C1", "R1", "G7"} <= {
        name for name, rule in RULES.items() if rule.verified
    }
