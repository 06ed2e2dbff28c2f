"""The tables that put policies beside each other: what they keep, then what they cost."""

from functools import partial

from lab.replay.compare.beside import cost_table, evidence_table
from lab.replay.compare.floors import FLOORS, Floor
from lab.replay.compare.rows import judged_row
from tests.lab.replay.compare.test_comparison import found_with
from ullage.tools.replay.rows import rows_of


def test_the_tables_tell_what_failed_and_mark_the_cheapest_that_passes():
    found = found_with(("default", "recency", "last_call"), (0.2,))
    rows = rows_of(
        found, partial(judged_row, floors=[Floor("far", 0.1, False, "", "")])
    )
    tables = (evidence_table(rows, FLOORS), cost_table(rows))
    columns = {
        str(c.header): [*c.cells] for table in tables for c in table.columns
    }
    of = {
        (policy, room): (cost, below)
        for policy, room, cost, below in zip(
            *(columns[name] for name in ("policy", "budget", "cost", "below")),
            strict=True,
        )
    }
    assert "(" in of["last_call", "20%"][0]
    assert of["last_call", "20%"][1] == "far"
    stars = [
        policy
        for (policy, room), (cost, _) in of.items()
        if "★" in cost and room == "20%"
    ]
    assert len(stars) == 1
    assert stars != ["last_call"]
