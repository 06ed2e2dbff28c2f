"""Tables for a terminal: no wider than 120 characters, with what their headings mean below."""

from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from tests.replay.cost.test_money import small_replay
from ullage.tools.replay import tables
from ullage.tools.replay.rows import row_of
from ullage.tools.replay.tables import WIDTH, table_with


def printed(table):
    console = Console(width=WIDTH, file=StringIO())
    console.print(table)
    return console.file.getvalue().rstrip().splitlines()


def test_a_long_name_is_folded_and_the_headings_are_explained():
    table = table_with(
        "By policy", ["policy"], ["cost"], notes=["cost: of what raw costs"]
    )
    table.add_row("a policy with a name " * 9, "40 %")
    lines = printed(table)
    assert max(map(len, lines)) <= WIDTH
    assert sum("a policy" in line for line in lines) > 1
    assert lines[-1].strip() == "cost: of what raw costs"
    assert any(line.rstrip().endswith("40 %") for line in lines)


def test_without_anything_to_explain_there_is_no_line_below():
    table = table_with("By run", ["run"], ["calls"])
    table.add_row("a", "7")
    assert printed(table)[-1].split() == ["a", "7"]


@pytest.mark.parametrize("exact", [True, False])
def test_estimated_tokens_are_called_so_with_what_counts_them(
    monkeypatch, exact
):
    counter = SimpleNamespace(exact=exact)
    monkeypatch.setattr(tables, "counter_for", lambda model: counter)
    row = row_of("all", [small_replay()])
    sent = next(iter(tables.tables_of([row], [row])))
    text = "\n".join(printed(sent))
    assert ("tokens are estimated" in text) is not exact
    assert ("[exact]" in text) is not exact
