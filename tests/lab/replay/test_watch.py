"""The score with all that a yardstick asks: ranks of refs, every age, re-uses, summaries."""

from msgspec.structs import replace

from lab.replay.compare.summary import summary_of
from lab.replay.past import PageLibrary
from lab.replay.watch import Tally, Watch, evidence_of, watch_pages
from tests.replay.evidence.conversation import call, errand, run_of, told
from tests.replay.evidence.test_score import REF, RUN, note
from ullage.tools.replay.cost.prices import PROFILES
from ullage.tools.replay.run import replay_run


def verdict(view, pages=None):
    story, lengths, demands = told(RUN)
    library = PageLibrary()
    library.pages = pages or {}
    watch = Watch(story, demands, library)
    (found,) = watch.see(len(lengths) - 1, lengths[-1], view)
    return found


def test_what_a_ref_in_view_returns_is_recoverable():
    found = verdict(
        note(f"set aside: ref={REF}"), {REF: "due: invoice_4711 of 12 March"}
    )
    assert (found.visible, found.rank, found.lost) == (False, 1, False)


def test_a_page_with_the_bare_value_brings_back_no_line():
    found = verdict(
        note(f"set aside: ref={REF}"), {REF: "4711 invoice_4711 march 80.00"}
    )
    assert (found.visible, found.rank, found.lost) == (False, 0, False)


class Searching(PageLibrary):
    """Searches by words; what it is asked is kept."""

    def __init__(self, *found):
        super().__init__()
        self.found, self.asked = found, []

    def find(self, words, page=1):
        self.asked.append(words)
        return self.found[page - 1]


def test_a_search_by_words_is_asked_with_the_value_masked():
    story, lengths, demands = told(RUN)
    library = Searching("nothing", "4:due: invoice_4711 of 12 March")
    watch = Watch(story, demands, library)
    (found,) = watch.see(len(lengths) - 1, lengths[-1], [])
    assert (found.rank, found.by_words) == (0, 2)
    assert library.asked
    assert not any("invoice_4711" in words for words in library.asked)
    evidence = watch.evidence()
    assert (evidence.far.found_1, evidence.far.found_2) == (0, 1)
    assert (
        summary_of([evidence]).words_1,
        summary_of([evidence]).words_2,
    ) == (0, 1)


def test_the_sums_are_by_age_and_by_weight():
    story, lengths, demands = told(RUN)
    watch = Watch(story, demands, PageLibrary())
    for number, length in enumerate(lengths):
        watch.see(number, length, RUN.messages[:length] if number < 3 else [])
    evidence = evidence_of(watch.verdicts)
    assert evidence.first == {"4-10": Tally(demanded=1, lost=1)}
    assert evidence.far == Tally(demanded=1, lost=1)
    assert evidence.far.er_line == 0
    assert Tally().er_line is None


def test_the_line_counts_at_every_age_and_the_headline_only_far_back():
    near = call("list_late", "late: invoice_0815 of 3 May", month="May")
    run = run_of(
        RUN.messages[:-2],
        near,
        call("pay", "paid", number="invoice_0815"),
        RUN_END,
    )
    story, lengths, demands = told(run)
    watch = Watch(story, demands, PageLibrary())
    for number, length in enumerate(lengths):
        watch.see(number, length, run.messages[length - 2 : length])
    evidence = watch.evidence()
    assert evidence.line.er_line == 0.5
    assert evidence.far.er_line == 0
    assert summary_of([evidence]).line.mean == 0.5


RUN_END = RUN.messages[-2:]


def test_a_reader_finds_more_the_more_refs_it_opens():
    asked = {"profiles": [PROFILES["none"]], "watch_of": watch_pages}
    evidence = replay_run(errand(2), 16_000, **asked).evidence
    assert evidence.far.recoverable_1 <= evidence.far.recoverable_3
    assert evidence.far.recoverable_3 <= evidence.far.recoverable > 0
    assert (
        evidence.far.recoverable
        <= evidence.far.demanded - evidence.far.visible
    )


def test_each_run_counts_once_in_a_summary():
    story, lengths, demands = told(RUN)
    watch = Watch(story, demands, PageLibrary())
    watch.see(len(lengths) - 1, lengths[-1], [])
    lost = evidence_of(watch.verdicts)
    full = evidence_of([])
    seen = evidence_of(
        [watch.see(len(lengths) - 1, lengths[-1], RUN.messages)[0]] * 9
    )
    found = summary_of([lost, full, seen])
    assert (found.runs, found.needed, found.visible, found.lost) == (
        2,
        10,
        0.5,
        0.5,
    )
    assert summary_of([]).visible is None


def test_ages_stand_in_their_order_whichever_run_had_them_first():
    old, new = (
        replace(evidence_of([]), first=dict.fromkeys(ages, Tally(demanded=1)))
        for ages in (("1", "4-10", ">30"), ("2-3", "4-10", "11-30"))
    )
    assert [*summary_of([old, new]).first] == [
        "1",
        "2-3",
        "4-10",
        "11-30",
        ">30",
    ]
