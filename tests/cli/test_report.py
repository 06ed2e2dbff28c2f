"""``ullage report``: words, tables, and what a program reads."""

import csv
import io

import pytest
from msgspec.structs import replace

from tests.cli.terminal import told, ullage
from ullage.core.values.receipts import (
    Receipt,
    ReceiptKey,
    ReceiptTotals,
    TokenCounts,
)
from ullage.core.values.spending import SpendingKey, SpendingRow
from ullage.stores import SqliteStore
from ullage.tools.cli.report import report_of, sentences

DAY = "2026-11-27"


def receipt(
    client="agent",
    day=DAY,
    *,
    is_held_out=False,
    is_open=False,
    writer="a" * 16,
    **sums,
):
    given = {
        "requests": 4,
        "conversations": 2,
        "sent": TokenCounts(fresh=100, read=900, output=50),
        "raw": TokenCounts(fresh=200, read=2_000, output=50),
        "sent_usd": 3.0,
        "raw_usd": 4.0,
        **sums,
    }
    place = ReceiptKey(day, "team", "gpt-4.1", client, is_held_out)
    return Receipt(
        key=place, writer=writer, sums=ReceiptTotals(**given), is_open=is_open
    )


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "kept.db"
    with_recall = receipt(recalls=2, recall_tokens=300, recall_usd=0.25)
    hostile = receipt('=cmd|"<script>alert(1)</script>', "2026-11-26")
    SqliteStore(path).keep_receipts(
        [with_recall, hostile, receipt("old", "2020-01-01")]
    )
    return path


def test_it_says_what_was_measured_and_what_is_reckoned(store):
    ran = ullage("report", "--store", store, "--since", "2026-11-01")
    assert ran.status == 0
    text = " ".join(ran.text.split())
    assert "8 requests, 4 new conversations, $6.00 at list price." in text
    assert "they would have come to $8.00 (reckoned): $2.00 less, 25%." in text
    assert (
        "Models opened what was set aside 2 times, for $0.25 of what was sent."
        in text
    )
    assert "measured" in text
    assert "2020-01-01" not in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_table_is_as_wide_as_the_terminal_and_no_figure_is_cut(store, width):
    words = ("--by", "day", "--by", "model", "--by", "client")
    ran = ullage(
        *("report", "--store", store, "--since", "2026-11-01", *words),
        env={"COLUMNS": str(width)},
    )
    lines = ran.text.splitlines()
    assert max(map(len, lines)) <= width
    row = next(line for line in lines if line.startswith("2026-11-27 ·"))
    assert {"1,050", "3.00", "4.00", "25%"} <= {*row.split()}
    assert ("not shown at this width: $ opened" in ran.text) == (width < 120)


@pytest.mark.parametrize("width", [80, 120])
def test_no_name_of_a_budget_is_torn(budgeted, width):
    words = ("report", "--store", budgeted, "--since", "2026-11-10")
    text = ullage(*words, env={"COLUMNS": str(width)}).text
    (line,) = (line for line in text.splitlines() if "research" in line)
    assert {"team", "2026-11", "24,690", "71%"} <= {*line.split()}


def test_a_pipe_gets_every_column_and_no_line_is_wrapped(budgeted):
    words = ("report", "--store", budgeted, "--since", "2026-11-01")
    piped = ullage(*words, "--by", "client", env={"COLUMNS": None}).text
    assert "not shown" not in piped
    assert "$ opened" in piped
    (budget,) = (line for line in piped.splitlines() if "research" in line)
    assert "12,345" not in budget  # of both processes: 24,690
    assert "24,690" in budget
    assert "2026-12-01 00:00" in budget
    (client,) = (line for line in piped.splitlines() if "=cmd" in line)
    assert '=cmd|"<script>alert(1)</script>' in client


def test_it_is_summed_up_by_what_is_asked_for(store):
    words = ("report", "--store", store, "--since", "2020-01-01", "--json")
    by_client = ullage(*words, "--by", "client").json
    assert [line["client"] for line in by_client["lines"]][1:] == [
        "agent",
        "old",
    ]
    both = ullage(*words, "--by", "model", "--by", "tenant").json
    (line,) = both["lines"]
    assert (line["model"], line["tenant"], line["sums"]["requests"]) == (
        "gpt-4.1",
        "team",
        12,
    )
    assert both["total"]["sent_usd"] == 9.0
    assert "raw_usd" in both["reckoned"]


def test_a_spreadsheet_gets_rows_and_no_formula(store):
    ran = ullage(
        "report",
        "--store",
        store,
        "--since",
        "2026-11-01",
        "--by",
        "client",
        "--csv",
    )
    rows = list(csv.DictReader(io.StringIO(ran.text)))
    assert [row["client"][:5] for row in rows] == ["'=cmd", "agent"]
    assert (rows[1]["sent_prompt_tokens"], rows[1]["raw_usd"]) == (
        "1000",
        "4.000000",
    )


def test_the_page_holds_names_as_text(store, tmp_path):
    page = tmp_path / "report.html"
    ran = ullage(
        "report",
        "--store",
        store,
        "--since",
        "2026-11-01",
        "--by",
        "client",
        "--html",
        page,
    )
    assert ran.status == 0
    text = page.read_text()
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert "$2.00 less, 25%" in text
    assert page.stat().st_mode & 0o077 == 0


def test_a_terminal_is_told_no_control_characters(tmp_path):
    path = tmp_path / "kept.db"
    SqliteStore(path).keep_receipts([receipt("\x1b[2J[red]", DAY)])
    ran = ullage("report", "--store", path, "--since", DAY, "--by", "client")
    assert "\x1b[2J" not in ran.text
    assert "[red]" in ran.text


def test_nothing_is_reported_of_nothing(tmp_path):
    path = tmp_path / "kept.db"
    SqliteStore(path).close()
    ran = ullage("report", "--store", path)
    assert (ran.status, "0 requests" in ran.text) == (0, True)
    assert "Without ullage" not in ran.text


def test_a_time_that_is_none_and_a_store_that_is_not_there_are_told(tmp_path):
    assert "'tomorrow' is not a time: write 7d, 2w or 2026-11-01." in told(
        ullage("report", "--since", "tomorrow")
    )
    assert ullage("report", "--store", tmp_path / "none.db").status == 1


def said(*receipts):
    return " ".join(sentences(report_of(receipts, DAY, DAY, ("day",))))


def held_out(**sums):
    given = {"conversations": 1, "sent_usd": 2.0, "raw_usd": 2.0, **sums}
    return receipt(is_held_out=True, **given)


def test_conversations_that_were_held_out_are_in_the_sum_and_in_no_saving():
    text = said(receipt(), held_out())
    assert "8 requests, 3 new conversations, $5.00 at list price." in text
    assert (
        "Of them 4 requests, $2.00, are of conversations that were held out"
        in text
    )
    assert "The other 4 requests came to $3.00." in text
    assert "Without ullage the others would have come to $4.00" in text
    assert "$1.00 less, 25%" in text
    assert "held out" not in said(receipt())


def test_a_conversation_that_was_held_out_is_compared_with_the_others():
    assert (
        "On average a new conversation cost $1.50 fitted, and $2.00 held out: 25% less "
        "(measured, of 2 and 1 conversations; few of them say little)."
    ) in said(receipt(), held_out())


@pytest.fixture
def compared(tmp_path):
    """A store with fitted and held-out requests of one client, and held-out ones of another."""
    path = tmp_path / "kept.db"
    other = replace(
        held_out(sent_usd=5.0),
        key=ReceiptKey(DAY, "team", "gpt-4.1", "cron", is_held_out=True),
    )
    SqliteStore(path).keep_receipts([receipt(), held_out(), other])
    return path


def test_each_line_says_what_was_held_out_and_what_a_budget_counts(compared):
    words = ("report", "--store", compared, "--since", DAY, "--by", "client")
    lines = [line.split() for line in ullage(*words).text.splitlines()]
    rows = {line[0]: line[-3:] for line in lines if line}
    assert rows["agent"] == ["4", "2.00", "5.00"]
    assert rows["cron"] == ["4", "5.00", "5.00"]
    assert rows["all"] == ["8", "7.00", "10.00"]
    page = compared.with_name("report.html")
    ullage(*words, "--html", page)
    text = page.read_text()
    assert '<th scope="col">$ in all</th>' in text
    assert '<th scope="row">all</th>' in text
    assert "<td>10.00</td>" in text


def test_a_program_reads_what_was_held_out(compared):
    words = ("report", "--store", compared, "--since", DAY, "--by", "client")
    read = ullage(*words, "--json").json
    assert [line["in_all"]["sent_usd"] for line in read["lines"]] == [5.0, 5.0]
    assert [line["held_out"]["requests"] for line in read["lines"]] == [4, 4]
    assert read["in_all"]["sent_usd"] == 10.0
    rows = list(csv.DictReader(io.StringIO(ullage(*words, "--csv").text)))
    assert [row["in_all_usd"] for row in rows] == ["5.000000", "5.000000"]
    assert [row["held_out_requests"] for row in rows] == ["4", "4"]
    assert [row["saved_usd"] for row in rows] == ["1.000000", "0.000000"]


def test_a_store_with_none_held_out_has_no_column_of_them(store):
    ran = ullage("report", "--store", store, "--since", "2026-11-01")
    assert "in all" not in ran.text


def test_each_table_of_the_page_has_a_heading(budgeted):
    page = budgeted.with_name("report.html")
    words = ("report", "--store", budgeted, "--since", "2026-11-01")
    ullage(*words, "--by", "tenant", "--html", page)
    text = page.read_text()
    assert "<h2>By tenant</h2>" in text
    assert "<h2>Budgets</h2>" in text
    assert '<th scope="col">tenant</th><th scope="col">requests</th>' in text
    assert '<th scope="col">$ saved</th>' in text


def test_what_is_not_known_is_said():
    running = receipt(is_open=True, unreported=1, unpriced=2, unbilled=3)
    text = said(running, receipt("other", is_open=True, writer="b" * 16))
    assert "Of 1 request nobody reported the usage: estimated." in text
    assert "2 requests without a known price: in no sum of $." in text
    assert "3 requests not billed by anybody" in text
    assert "2 processes still running, or ended without saying so" in text


def test_where_it_cost_more_that_is_said():
    assert "$1.00 more, 50%" in said(receipt(sent_usd=3.0, raw_usd=2.0))


@pytest.fixture
def budgeted(store):
    key = SpendingKey("research", "team", "2026-11")
    row = SpendingRow(
        key=key,
        writer="a",
        version=1,
        tokens=12_345,
        usd=355.5,
        calls=8,
        limit_usd=500.0,
        resets_s=1_796_083_200,
    )
    late = replace(row, writer="b", usd=0.5, calls=1)
    over = replace(
        row, key=replace(key, period="2026-10"), resets_s=1_793_491_200
    )
    opened = SqliteStore(store)
    opened.book_spending([row, late, over])
    opened.close()
    return store


def test_budgets_stand_beside_what_was_spent(budgeted):
    words = ("report", "--store", budgeted, "--since", "2026-11-10")
    text = ullage(*words, "--by", "tenant").text
    (line,) = (line for line in text.splitlines() if "research" in line)
    assert "team" in line
    assert "9 " in line
    assert "356.00 of 500.00" in line
    assert "71%" in line
    assert "2026-12-01 00:00" in line
    (budget,) = ullage(*words, "--json").json["budgets"]
    assert (budget["usd"], budget["share"]) == (356.0, 0.712)
    page = budgeted.with_name("page.html")
    ullage(*words, "--html", page)
    assert "356.00 of 500.00" in page.read_text()
    both = ullage("report", "--store", budgeted, "--since", "2026-10-10")
    assert both.text.count("research") == 2


def test_a_store_without_budgets_has_no_table_of_them(store):
    text = ullage("report", "--store", store, "--since", "2026-11-10").text
    assert "starts again" not in text


def test_what_providers_counted_stands_beside_what_is_reckoned():
    counts = {"counted": 2, "counted_tokens": 50_000}
    text = said(receipt(**counts, counted_raw_tokens=49_000))
    assert "Providers counted 2 requests as they came (" in text
    assert (
        "50,000 tokens, measured. For the same ones 49,000 are reckoned, 2.0% less."
        in text
    )
    assert "Providers counted" not in said(receipt())
