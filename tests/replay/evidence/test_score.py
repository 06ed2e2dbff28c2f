"""The score of a run, and its two plainest controls."""

import pytest

from lab.replay.past import PageLibrary
from tests.replay.evidence.conversation import call, errand, run_of, told, user
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.evidence.score import EvidenceMeter
from ullage.tools.replay.rows import needed_of, row_of
from ullage.tools.replay.run import replay_run
from ullage.tools.replay.tables import tables_of
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
    watch = EvidenceMeter(story, demands, library)
    (found,) = watch.see(len(lengths) - 1, lengths[-1], view)
    return found


def note(text):
    return [{"role": "user", "content": text}]


def test_what_stands_in_the_view_is_visible():
    found = verdict(RUN.messages[:-2])
    assert (found.visible, found.lost) == (True, False)


def test_what_a_ref_in_view_returns_is_recallable():
    found = verdict(
        note(f"set aside: ref={REF}"), {REF: "due: invoice_4711 of 12 March"}
    )
    assert (found.visible, found.lost) == (False, False)


@pytest.mark.parametrize("view", [[], note(f"ref={REF}")])
def test_what_nothing_leads_to_is_lost(view):
    found = verdict(view, {"f" * 16: "invoice_4711"})
    assert (found.visible, found.lost) == (False, True)


def test_a_call_without_a_view_has_lost_all():
    story, lengths, demands = told(RUN)
    watch = EvidenceMeter(story, demands, PageLibrary())
    watch.missed(len(lengths) - 1)
    assert [v.lost for v in watch.verdicts] == [True]


def scored(views, run):
    story, lengths, demands = told(run)
    watch = EvidenceMeter(story, demands, PageLibrary())
    for number, length in enumerate(lengths):
        watch.see(number, length, views(run.messages[:length]))
    return watch.evidence().far


def test_everything_kept_scores_one_and_nothing_kept_scores_nothing():
    run = errand(1)
    kept = scored(lambda messages: messages, run)
    assert kept.demanded > 10
    assert (kept.visible, kept.lost) == (kept.demanded, 0)
    none = scored(lambda messages: messages[:1], run)
    assert (none.visible, none.lost) == (0, none.demanded)


@pytest.mark.parametrize("format", FORMATS)
def test_a_replay_tells_what_was_in_view_on_every_wire(format):
    run = errand(2, format=format)
    evidence = replay_run(run, 16_000, profiles=[PROFILES["none"]]).evidence
    assert (
        evidence.far.demanded
        == scored(lambda messages: messages, errand(2)).demanded
    )
    assert 0 < evidence.far.visible < evidence.far.demanded
    assert evidence.far.lost == 0


def test_a_window_that_holds_the_run_shows_all():
    evidence = replay_run(
        errand(2, turns=10), 200_000, profiles=[PROFILES["none"]]
    ).evidence
    assert evidence.far.visible == evidence.far.demanded > 0


def test_the_table_has_a_column_for_it():
    replayed = replay_run(errand(2), 16_000, profiles=[PROFILES["none"]])
    row = row_of("one", [replayed])
    _, kept, _ = tables_of([row], [row])
    columns = {str(c.header): [*c.cells] for c in kept.columns}
    assert columns["lost"] == ["0%"]
    assert columns["needed"] == [str(needed_of([replayed.evidence]).needed)]


def test_each_run_counts_once_and_what_is_neither_visible_nor_lost_is_recallable():
    story, lengths, demands = told(RUN)
    ref = note(f"set aside: ref={REF}")
    found = []
    for views, pages in (
        (RUN.messages, {}),
        (ref, {REF: "invoice_4711"}),
        ([], {}),
    ):
        library = PageLibrary()
        library.pages = pages
        watch = EvidenceMeter(story, demands, library)
        watch.see(len(lengths) - 1, lengths[-1], views)
        found.append(watch.evidence())
    kept = needed_of(found)
    assert kept.needed == 3
    assert [kept.visible, kept.recallable, kept.lost] == pytest.approx(
        [1 / 3] * 3
    )
    assert [*kept.first] == ["4-10"]
    assert needed_of([]).visible is needed_of([]).recallable is None
