"""Floors first, price second: who may win on cost, and who never may."""

import pytest

from lab.replay.compare.beside import cost_table, evidence_table
from lab.replay.compare.cheapest import cheapest_of
from lab.replay.compare.floors import FLOORS, floors_with, judged_by, passes
from lab.replay.compare.rows import judged_row
from lab.replay.framed import FRAME_NAMES, replay_frame
from lab.replay.watch import watch_pages
from tests.replay.evidence.conversation import call, errand, run_of, user
from ullage.core.errors import ConfigError
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.rows import rows_of
from ullage.tools.replay.run import replay_run

ROOMY = 64_000
"""A window that holds the whole errand: who leaves something out there does so of free will."""


def replayed(policy, run=None, window=ROOMY):
    asked = {"profiles": [PROFILES["anthropic-5m"]], "policy": policy}
    if policy in FRAME_NAMES:
        return replay_frame(run or errand(1), window, **asked)
    return replay_run(run or errand(1), window, watch_of=watch_pages, **asked)


@pytest.fixture(scope="module")
def rows():
    policies = ("default", "last_call", "names_only")
    found = rows_of(
        (("errand", replayed(policy)) for policy in policies), judged_row
    )
    return {row.policy: row for row in found}


def measured(**values):
    good = {
        "far": 1,
        "line": 1,
        "reuse": 1,
        "anchors": 1,
        "breaks": 0,
        "unsaid": 0,
        "invalid": 0,
    }
    return good | values


def failed(**values):
    return [
        each.floor
        for each in judged_by(FLOORS, measured(**values))
        if each.passes is False
    ]


def test_the_last_call_alone_is_the_cheapest_and_never_wins(rows):
    assert {"far", "line", "breaks"} <= set(rows["last_call"].below)
    costs = {name: row.charges[0].usd_share for name, row in rows.items()}
    assert costs["last_call"] < costs["default"]
    assert rows["default"].passes
    assert {each.policy for each in cheapest_of(rows.values())} == {"default"}


def test_a_list_of_names_is_below_the_floors_in_a_window_that_is_too_small():
    (row,) = rows_of(
        [("errand", replayed("names_only", window=8_000))], judged_row
    )
    assert "far" in row.below
    assert not row.passes


def test_nobody_wins_where_nobody_passes():
    found = [
        ("errand", replayed(policy, window=8_000))
        for policy in ("last_call", "names_only")
    ]
    assert {
        (each.policy, each.passing)
        for each in cheapest_of(rows_of(found, judged_row))
    } == {(None, 0)}


def test_the_cost_of_what_is_below_a_floor_stands_in_brackets_beside_the_floor(
    rows,
):
    tables = (
        cost_table([*rows.values()]),
        evidence_table([*rows.values()], FLOORS),
    )
    columns = {
        str(c.header): [*c.cells] for table in tables for c in table.columns
    }
    shown = dict(zip(columns["policy"], columns["cost"], strict=True))
    below = dict(zip(columns["policy"], columns["below"], strict=True))
    assert "(" not in shown["default"]
    assert "(" in shown["last_call"]
    assert below["default"] == ""
    assert "far" in below["last_call"]


@pytest.mark.parametrize(
    ("values", "below"),
    [
        ({}, []),
        ({"far": 0.84, "breaks": 2.0}, []),
        ({"far": 0.83}, ["far"]),
        ({"line": 0.69, "anchors": 0.88}, ["line", "anchors"]),
        ({"breaks": 2.1}, ["breaks"]),
        ({"unsaid": 0.001}, ["unsaid"]),
        ({"invalid": 1}, ["invalid"]),
    ],
)
def test_a_floor_is_reached_at_its_limit_and_not_below(values, below):
    assert failed(**values) == below


def test_what_the_runs_hold_nothing_of_is_not_judged_and_nothing_at_all_is_no_pass():
    none = dict.fromkeys(("far", "line", "reuse", "anchors"))
    assert failed(**none) == []
    assert not passes(judged_by(FLOORS, measured(**none)))
    assert passes(judged_by(FLOORS, measured(**(none | {"anchors": 1}))))


def test_a_limit_can_be_given_and_says_so():
    floors = {floor.name: floor for floor in floors_with({"far": 0.5})}
    assert (floors["far"].limit, floors["far"].source) == (0.5, "given")
    assert floors["line"] == FLOORS[1]
    with pytest.raises(ConfigError, match="there is no floor 'near'"):
        floors_with({"near": 0.5})


EDIT = run_of(
    user("Mend it."),
    call("read_file", "def tide():\n    return 7\n", path="tide.py"),
    *(call("bash", f"{n} built", command="make") for n in range(5)),
    call(
        "edit",
        "done",
        path="tide.py",
        old_string="def tide():\n    return 7",
        new_string="x",
    ),
)


def test_the_old_text_of_an_edit_is_an_anchor_and_must_be_whole_in_view():
    (kept, lost) = (
        replayed(policy, EDIT).evidence.anchors
        for policy in ("default", "last_call")
    )
    assert (kept.demanded, kept.visible) == (1, 1)
    assert (lost.demanded, lost.visible) == (1, 0)


def test_a_view_without_a_word_of_the_user_is_counted():
    said = (
        "Keep every answer under ten lines, and never touch the harbour. " * 40
    )
    run = run_of(
        user("Begin."),
        call("bash", "ok", command="a"),
        user(said),
        *EDIT_AGAIN,
    )
    evidence = replayed("recency", run, window=600).evidence
    assert evidence.views == 7
    assert evidence.unsaid > 0
    assert replayed("default", run).evidence.unsaid == 0


EDIT_AGAIN = [call("bash", f"{n} built", command="make") for n in range(6)]
