"""The score of a run, and its two plainest controls."""

import pytest
from msgspec.structs import replace

from lab.replay.past import PageLibrary
from tests.replay.evidence.conversation import call, errand, run_of, told, user
from ullage.replay.compare.summary import summary_of
from ullage.replay.compare.table import kept_table, rows_of
from ullage.replay.cost.prices import PROFILES
from ullage.replay.evidence.score import Tally, Watch, evidence_of
from ullage.replay.run import replay_run
from ullage.wires import FORMATS

REF = "0123456789abcdef"
WAIT = [call("bash", "ok", command="make") for _ in range(3)]
RUN = run_of(
    user("Pay what is due."),
    call("list_due", "due: invoice_4711 of 12 March", month="March"),
    *WAIT,
    call("pay", "paid", number="invoice_4711"),
)


def verdict(view, pages=None):
    story, lengths, demands = told(RUN)
    library = PageLibrary()
    library.pages = pages or {}
    watch = Watch(story, demands, library)
    (found,) = watch.see(len(lengths) - 1, lengths[-1], view)
    return found


def note(text):
    return [{"role": "user", "content": text}]


def test_what_stands_in_the_view_is_visible():
    found = verdict(RUN.messages[:-2])
    assert (found.seen, found.rank, found.lost) == ("line", 0, False)


def test_what_a_ref_in_view_returns_is_recoverable():
    found = verdict(note(f"set aside: ref={REF}"), {REF: "due: invoice_4711 of 12 March"})
    assert (found.seen, found.rank, found.lost) == ("nothing", 1, False)


@pytest.mark.parametrize("view", [[], note(f"ref={REF}")])
def test_what_nothing_leads_to_is_lost(view):
    found = verdict(view, {"f" * 16: "invoice_4711"})
    assert (found.seen, found.rank, found.lost) == ("nothing", 0, True)


def test_the_sums_are_by_age_and_by_weight():
    story, lengths, demands = told(RUN)
    watch = Watch(story, demands, PageLibrary())
    for number, length in enumerate(lengths):
        watch.see(number, length, RUN.messages[:length] if number < 3 else [])
    evidence = evidence_of(watch.verdicts, demands.classes)
    assert evidence.first == {"4-10": Tally(demanded=1, lost=1)}
    assert evidence.far == Tally(demanded=1, lost=1)
    assert evidence.far.er_line == 0
    assert Tally().er_line is None


def test_the_line_counts_at_every_age_and_the_headline_only_far_back():
    near = call("list_late", "late: invoice_0815 of 3 May", month="May")
    run = run_of(RUN.messages[:-2], near, call("pay", "paid", number="invoice_0815"), RUN_END)
    story, lengths, demands = told(run)
    watch = Watch(story, demands, PageLibrary())
    for number, length in enumerate(lengths):
        watch.see(number, length, run.messages[length - 2 : length])
    evidence = watch.evidence()
    assert evidence.line.er_line == 0.5
    assert evidence.far.er_line == 0
    assert summary_of([evidence]).line.mean == 0.5


RUN_END = RUN.messages[-2:]


def test_a_call_without_a_view_has_lost_all():
    story, lengths, demands = told(RUN)
    watch = Watch(story, demands, PageLibrary())
    watch.missed(len(lengths) - 1)
    assert [v.lost for v in watch.verdicts] == [True]


def scored(views, run):
    story, lengths, demands = told(run)
    watch = Watch(story, demands, PageLibrary())
    for number, length in enumerate(lengths):
        watch.see(number, length, views(run.messages[:length]))
    return evidence_of(watch.verdicts, demands.classes).far


def test_everything_kept_scores_one_and_nothing_kept_scores_nothing():
    run = errand(1)
    kept = scored(lambda messages: messages, run)
    assert kept.demanded > 10
    assert (kept.er_line, kept.lost) == (1, 0)
    none = scored(lambda messages: messages[:1], run)
    assert (none.er_line, none.lost) == (0, none.demanded)


@pytest.mark.parametrize("format", FORMATS)
def test_a_replay_tells_what_was_in_view_on_every_wire(format):
    run = errand(2, format=format)
    evidence = replay_run(run, 16_000, profiles=[PROFILES["none"]]).evidence
    assert evidence.far.demanded == scored(lambda messages: messages, errand(2)).demanded
    assert 0 < evidence.far.visible < evidence.far.demanded
    assert evidence.far.lost == 0
    assert evidence.far.recoverable_1 <= evidence.far.recoverable_3 <= evidence.far.recoverable


def test_a_window_that_holds_the_run_shows_all():
    evidence = replay_run(errand(2, turns=10), 200_000, profiles=[PROFILES["none"]]).evidence
    assert evidence.far.er_line == 1


def test_each_run_counts_once_in_a_summary():
    story, lengths, demands = told(RUN)
    watch = Watch(story, demands, PageLibrary())
    watch.see(len(lengths) - 1, lengths[-1], [])
    lost = evidence_of(watch.verdicts, demands.classes)
    full = evidence_of([], {})
    seen = evidence_of([watch.see(len(lengths) - 1, lengths[-1], RUN.messages)[0]] * 9, {})
    found = summary_of([lost, full, seen])
    assert (found.runs, found.needed, found.er_line, found.lost) == (2, 10, 0.5, 0.5)
    assert summary_of([]).er_line is None


def test_ages_stand_in_their_order_whichever_run_had_them_first():
    old, new = (
        replace(evidence_of([], {}), first=dict.fromkeys(ages, Tally(demanded=1)))
        for ages in (("1", "4-10", ">30"), ("2-3", "4-10", "11-30"))
    )
    assert [*summary_of([old, new]).first] == ["1", "2-3", "4-10", "11-30", ">30"]


def test_the_table_has_a_column_for_it():
    replayed = replay_run(errand(2), 16_000, profiles=[PROFILES["none"]])
    table = kept_table(rows_of([("one", replayed)]))
    columns = {str(c.header): [*c.cells] for c in table.columns}
    assert columns["lost"] == ["0%"]
    assert columns["needed"] == [str(summary_of([replayed.evidence]).needed)]
