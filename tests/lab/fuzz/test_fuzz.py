"""The fuzzer itself: it finds nothing now, it reaches everything, and it notices mutants."""

import copy
from collections import Counter

import pytest

from lab.fuzz.borders import bordered
from lab.fuzz.coverage import ABOUT_THE_HEAD, SUBJECTS, empty, reason
from lab.fuzz.coverage import every_row as rows
from lab.fuzz.histories import FORMATS, NUMBERED, case
from lab.fuzz.illegal_mutants import ILLEGAL_MUTANTS, LEGAL
from lab.fuzz.mutants import MUTANTS, caught
from lab.fuzz.tally import (
    Tally,
    add,
    drawn,
    is_trivial,
    seen_of,
    try_batch,
)
from lab.fuzz.trial import try_case
from lab.returned import problems
from ullage.wires.rules import problem as _problem

SEED = 1
FULL_SEED, TRIED, MOST = 5, 250, 2_600
"""A seed of which the fewest histories fill every cell: 2,500 of its first."""
RARE = (
    *(270, 304, 320, 384, 392, 412, 434, 499, 540, 749),
    *(895, 922, 969, 1007, 1016, 1388, 1428, 1554, 1702, 1818),
    *(1838, 1880, 1922, 1968, 1978, 2152, 2180, 2198, 2200, 2460),
)
"""Those that fill what the first 250 leave empty; where they do not, the others are tried too."""
LATER = 120
"""So many histories of each wire that is not among those are tried, and more if need be."""
LATER_RARE = {
    "bedrock-converse": (
        *(132, 133, 151, 156, 175, 186, 204, 257, 271, 340, 345, 349),
        *(397, 400, 488, 498, 515, 736, 745, 1646),
    ),
    "ollama": (123, 128, 144, 148, 180, 288, 300, 338),
}
"""Those that fill what these leave empty."""


@pytest.mark.timeout(900)  # for a machine that has little to give
def test_no_view_breaks_a_rule_and_no_cell_that_could_be_filled_is_empty():
    tally = try_batch(FULL_SEED, 0, TRIED, NUMBERED)
    for number in RARE:
        add(tally, try_batch(FULL_SEED, number, 1, NUMBERED))
    for start in range(TRIED, MOST, 200):
        if left(tally, NUMBERED):
            add(tally, try_batch(FULL_SEED, start, 200, NUMBERED))
    assert tally.found == []
    assert tally.held > tally.tried * 0.8
    assert left(tally, NUMBERED) == []


@pytest.mark.parametrize("format", FORMATS[len(NUMBERED) :])
def test_nor_on_a_wire_that_came_later(format):
    tally = try_batch(FULL_SEED, 0, LATER, (format,))
    for number in LATER_RARE.get(format, ()):
        add(tally, try_batch(FULL_SEED, number, 1, (format,)))
    for start in range(LATER, 5 * LATER, 40):
        if left(tally, (format,)):
            add(tally, try_batch(FULL_SEED, start, 40, (format,)))
    assert tally.found == []
    assert tally.held > tally.tried * 0.8
    assert left(tally, (format,)) == []


def left(tally, formats):
    """The cells of these wires that could be filled and are not."""
    return [row for row in empty(seen_of(tally)) if row[0] in formats]


def test_a_history_is_the_same_whenever_it_is_made():
    for number in range(16):
        assert case(SEED, number) == case(SEED, number)
        assert case(SEED, number).messages != case(SEED + 1, number).messages


def test_batches_add_up_whatever_their_size():
    parts = Tally(SEED)
    for start in (0, 20):
        add(parts, try_batch(SEED, start, 20))
    whole = try_batch(SEED, 0, 40)
    assert (parts.next, parts.tried, parts.held) == (
        whole.next,
        whole.tried,
        whole.held,
    )
    assert parts.seen == whole.seen


def test_many_histories_are_edited_by_few_policies():
    few = [
        drawn(SEED, number, borders=False, policies=3) for number in range(60)
    ]
    assert {one.policy for one in few} == {0, 1, 2, 3}
    for one in few:
        own = case(SEED, one.number)
        assert one.messages == own.messages
        assert bool(one.policy) == bool(own.policy)


def test_a_history_without_an_edit_is_trivial():
    one = case(SEED, 0)
    tried = try_case(one)
    assert tried.edits
    assert not is_trivial(one, tried)
    tried.edits.clear()
    assert is_trivial(one, tried)


# ── rules ────────────────────────────────────────────────────────────────────────────────


def known_rules():
    return {rule for subjects in SUBJECTS.values() for rule in subjects} | set(
        ABOUT_THE_HEAD
    )


def broken(format, mutant):
    request = LEGAL[format]()
    key = next(
        name for name in ("messages", "input", "contents") if name in request
    )
    history = copy.deepcopy(request[key])
    mutant(request)
    return {
        problem.rule for problem in problems(format, request, history=history)
    }


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_broken_was_legal(format):
    assert problems(format, LEGAL[format]()) == []


@pytest.mark.parametrize(
    ("format", "rule", "mutant"),
    ILLEGAL_MUTANTS,
    ids=[v[1] for v in ILLEGAL_MUTANTS],
)
def test_every_rule_is_broken_once_and_its_mutant_says_nothing(
    monkeypatch, format, rule, mutant
):
    assert rule in broken(format, mutant)
    right = _problem.Check.add

    def silenced(self, name, *more):
        if name != rule:
            right(self, name, *more)

    monkeypatch.setattr(_problem.Check, "add", silenced)
    assert rule not in broken(format, mutant)


def test_every_rule_has_an_illegal_mutant_and_a_subject():
    assert {rule for _, rule, _ in ILLEGAL_MUTANTS} == known_rules()


def test_every_reason_is_of_a_row():
    excused = Counter(reason(row) for row in rows())
    assert excused.pop("") > 5_000
    assert len(excused) == 6


# ── guards ───────────────────────────────────────────────────────────────────────────────


FIRST = {
    "late calls are as others": 434,
    "a reply is one message": 130,
    "Gemini's calls are not signed": 115,
    "a cut text keeps its signature": 359,
    "edits lose the signature": 104,
    "edits lose Gemini's signature": 151,
    "a manual turn may be parted": 680,
    "nothing in place of reasoning": 252,
    "what the provider reads no more is counted": 612,
    "what another model left stays": 668,
    "a cut may be anywhere": 554,
    "a placeholder is empty": 2340,
    "a run begins one message early": 1240,
}
"""The history that catches it, of what takes many; where it does not, the others are tried too."""


@pytest.mark.parametrize(
    "mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS]
)
def test_every_mutant_is_caught(mutant):
    assert caught(mutant, SEED, 600, FIRST.get(mutant.name, 0))


def test_what_is_tried_first_is_of_a_mutant():
    assert FIRST.keys() <= {mutant.name for mutant in MUTANTS}


WRONG_ONCE = {
    "a second call pruned what the first had protected": (1, 122_366),
    "older thinking without that of the newest reply": (1, 207_068),
    "the same, lost in an earlier batch": (1, 253_356),
    "thinking about what was cut came back with an account": (1, 771_824),
    "an open turn without its thinking": (1, 818_792),
    "a model that came back did not hear what another had opened": (
        777,
        4_824,
    ),
    "a second call left the new results out of the account": (
        203_720_149,
        7_992,
    ),
    "an account that wins nothing was owed to a turn without its head": (
        892_479_668,
        154_140,
    ),
    "excerpts of what was old stood where a new result had no room": (
        1_560_629_082,
        2_528,
    ),
    "the same, of the newest turn in an account": (1_560_629_082, 20_148),
    "the same, with thinking that is bound": (1_560_629_082, 43_924),
    "the same, of an interrupted turn with pictures": (1_560_629_082, 70_444),
    "the same, of many calls under one compaction": (1_560_629_082, 91_774),
    "the same, before a compaction trigger": (1_560_629_082, 120_030),
    "the same, with notes of the system between": (1_560_629_082, 180_288),
}


@pytest.mark.parametrize(
    ("seed", "number"), WRONG_ONCE.values(), ids=WRONG_ONCE
)
def test_what_was_wrong_once_is_right(seed, number):
    assert try_case(case(seed, number, NUMBERED)).wrong == []


WRONG_ONCE_OF_ALL_WIRES = {
    "a call that stayed stood behind another reply": 25_991,
    "the same, of parallel calls": 55_055,
    "a document was judged by a later window than cut it": 26_075,
    "the same, among large arguments": 65_501,
}


@pytest.mark.parametrize(
    "number", WRONG_ONCE_OF_ALL_WIRES.values(), ids=WRONG_ONCE_OF_ALL_WIRES
)
def test_what_was_wrong_once_on_a_later_wire_is_right(number):
    assert try_case(bordered(2_196_390_175, number, FORMATS)).wrong == []
