"""Every legal history of a small length: it finds nothing, it leaves nothing out, it notices."""

import json

import pytest
from click.testing import CliRunner

from lab.enumerate.__main__ import main
from lab.enumerate.families import MAKERS, families, rules_broken
from lab.enumerate.letters import BASIC, SHAPES, alphabet, history
from lab.enumerate.treatments import TREATMENTS
from lab.enumerate.walk import Tally, add, try_unit, units
from lab.fuzz.histories import FORMATS as WRITTEN
from lab.fuzz.mutants import MUTANTS, planted
from ullage.core.tokens.catalog import NAMES
from ullage.wires import FORMATS as EVERY
from ullage.wires.rules import problem as _problem

FORMATS = {name: EVERY[name] for name in WRITTEN if name in MAKERS}
"""The wires whose families of models are known here."""

every_format = pytest.mark.parametrize("format", FORMATS)
ENDS = [(format, at) for format in FORMATS for at in (0, -1)]
ENDS.remove(("openai-responses", -1))  # it has one, and so has the next
ENDS.remove(("ollama", -1))
"""The first and the last family of each wire; all of them are for ``make enumerate``."""


def tried(format, length, *, basic, number=None):
    """Everything of a wire, or of one of its families."""
    family = None if number is None else families(format)[number]
    total = Tally()
    for unit in units(length, basic=basic):
        if unit.format == format and family in (None, unit.family):
            add(total, try_unit(unit))
    return total


# ── nothing is found ─────────────────────────────────────────────────────────────────────


@every_format
def test_every_row_of_the_tables_alone(format):
    total = tried(format, 1, basic=False)
    assert total.found == []
    assert total.histories > 0.6 * len(alphabet(format)) * len(
        families(format)
    )


@pytest.mark.parametrize(("format", "number"), ENDS)
def test_every_history_of_two_letters(format, number):
    total = tried(format, 2, basic=True, number=number)
    assert total.found == []
    letters = len(alphabet(format, basic=True))
    assert total.histories + total.illegal == letters**2
    assert total.histories > letters
    for treatment in TREATMENTS:
        if families(format)[number].mends or not treatment.repair:
            assert total.edited[f"{format}, {treatment.name}"] >= letters // 2


# ── nothing is left out ──────────────────────────────────────────────────────────────────


@every_format
def test_every_row_of_the_tables_is_in_a_letter(format):
    written = json.dumps([letter.messages for letter in alphabet(format)])
    rows = {row for row in FORMATS[format].blocks if row not in NOT_WRITTEN}
    assert {row for row in rows if f'"{row}"' not in written} == set()


NOT_WRITTEN = {"message"}
"""It holds the others; and its own name is written by one wire alone."""


def test_every_basic_shape_is_one_and_each_wire_has_what_it_can_say():
    assert BASIC - {"user"} <= SHAPES.keys()
    named = {
        letter.name
        for format in FORMATS
        for letter in alphabet(format, basic=True)
    }
    assert named == BASIC


@every_format
def test_every_model_is_in_a_family_and_no_two_families_have_equal_rules(
    format,
):
    found = families(format)
    models = [
        model
        for family in found
        if not family.is_manual
        for model in family.models
    ]
    # on Bedrock a Claude has a name in front
    plain = [model.removeprefix("anthropic.") for model in models]
    assert sorted(name for name in plain if name in NAMES) == sorted(
        name for name in NAMES if MAKERS[format] in name
    )
    assert len(models) == len(set(models))
    assert (len(found) > 1) == ((format, -1) in ENDS)


def test_a_letter_that_comes_again_has_ids_of_its_own():
    (call,) = (each for each in alphabet("anthropic") if each.name == "call")
    messages = history((call, call, call))
    ids = [
        message["content"][0]["id"]
        for message in messages
        if message["role"] == "assistant"
    ]
    assert len(set(ids)) == 3


# ── what is wrong is noticed ─────────────────────────────────────────────────────────────


def test_a_reading_that_overlooks_a_rule_is_found(monkeypatch):
    right = _problem.Check.add

    def silenced(self, name, *more):
        if name != "A14":
            right(self, name, *more)

    assert families("anthropic")[1].is_manual
    monkeypatch.setattr(_problem.Check, "add", silenced)
    found = tried("anthropic", 1, basic=True, number=1).found
    assert any(
        "call: one reading says nothing, the other A14" in each
        for each in found
    )


CAUGHT = (
    ("openai-chat", "nothing is repaired"),
    ("anthropic", "summarised messages are visible"),
    ("gemini", "nothing is repaired"),
    ("openai-responses", "nothing is repaired"),
)


FIRST = {"summarised messages are visible": 105}
"""The unit that finds it, of what takes many; where it does not, the others are tried too."""


@pytest.mark.parametrize(("format", "name"), CAUGHT)
def test_a_guard_that_is_taken_out_is_found(format, name):
    (mutant,) = (each for each in MUTANTS if each.name == name)
    of_format = [
        unit for unit in units(2, basic=True) if unit.format == format
    ]
    first = FIRST.get(name, 0)
    with planted(mutant):
        assert any(
            try_unit(unit).found
            for unit in (*of_format[first:], *of_format[:first])
        )


def test_what_the_provider_reads_alone_is_judged_against_what_it_returned():
    family = families("openai-responses")[0]
    (letter,) = (
        each
        for each in alphabet("openai-responses")
        if each.name == "signed thinking, call"
    )
    items = history((letter,))
    sealed = [
        {**each, "encrypted_content": "other"} for each in items[:1]
    ] + items[1:]
    request = {
        **family.head,
        "input": [{"role": "user", "content": "go"}, *sealed],
    }
    returned = [{"role": "user", "content": "go"}, *items]
    assert "R8" in rules_broken("openai-responses", request, returned)[0]


# ── the command ──────────────────────────────────────────────────────────────────────────


def test_a_run_goes_on_where_it_stopped(tmp_path):
    file = tmp_path / "run.json"
    command = ["--length", "1", "--jobs", "1", "--resume", str(file)]
    first = CliRunner().invoke(main, [*command, "--seconds", "0"])
    assert "beginnings of them" in first.output
    second = CliRunner().invoke(main, command)
    whole = CliRunner().invoke(main, command[:-2])
    assert second.exit_code == whole.exit_code == 0
    assert "all of them" in whole.output
    told = [output.output.rpartition(", in ")[0] for output in (second, whole)]
    assert told[0] == told[1]


def test_letters_and_families_are_listed():
    told = CliRunner().invoke(main, ["--list"]).output
    assert all(format in told for format in FORMATS)
