"""How a reader brings back what a view does not show, and how many pages that takes."""

import pytest

from lab.replay.carried.carry import Carrier
from lab.replay.carried.policies import POLICIES
from lab.replay.carried.recalling import Recaller
from lab.replay.carried.sight import Reader
from lab.replay.carried.wants import wants_of
from lab.replay.story import Story
from tests.replay.evidence.conversation import call, errand, run_of, user
from ullage.core.history.canon import ref_of
from ullage.core.values.notices import Words
from ullage.tools.replay.calls import boundaries
from ullage.tools.replay.evidence.demands import HeadText
from ullage.tools.replay.reading import leads_to, refs_in
from ullage.wires import FORMATS

ROW = "and nothing else of note in this row\n"
LISTED = ROW * 600 + "due is invoice_4711 of 12 March\n" + ROW * 600
"""45 kB: six pages of 8,000 characters, the line in the third."""
REF, INDEX = ref_of(LISTED), "c" * 16
PAGE_CHARS = 8_000


class Scripted:
    """Tools over texts, as a session has them; what they are asked is kept.

    Args:
        texts: what is kept, by ref.
        greps: what a search of an output for a pattern returns; None: no tool takes one.
        finds: the pages of a search by words; None: no tool takes words.
        within: what such a search of one output returns.
    """

    def __init__(self, texts, greps=None, finds=None, within="[no line]"):
        self.texts = dict(texts)
        self.greps, self.finds, self.asked = greps, finds, []
        self.within = within

    def whole(self, ref):
        return self.texts.get(ref, "")

    def named(self, text):
        return refs_in(text)

    def leads(self, ref):
        return leads_to(self.whole(ref))

    def page(self, pointer):
        return next(iter(self.pages(pointer)))

    def pages(self, pointer):
        text, start = self.whole(pointer.ref), pointer.offset
        while True:
            stop = min(start + PAGE_CHARS, len(text))
            more = "\n" + Words().more(pointer.ref, start, stop, len(text))
            yield text[start:stop] + (more if stop < len(text) else "")
            start = stop
            if stop == len(text):
                return

    def grep(self, ref, pattern):
        self.asked.append(pattern)
        return self.greps

    def find(self, words, page=1, ref=""):
        self.asked.append(words)
        if self.finds is None:
            return None
        return self.within if ref else self.finds[page - 1]


def fetched(tools, notice):
    """How the reply that pays an invoice gets its number, where its view is this notice."""
    pay = call(
        "pay",
        "",
        said="I pay what the list says is due.",
        number="invoice_4711",
    )
    run = run_of(user("Go."), call("list", LISTED), pay)
    wire, lengths = FORMATS[run.format], boundaries(run)
    story = Story(wire, run.messages)
    (value,) = wants_of(story, lengths, HeadText.of(wire, run.request))[
        1
    ].values
    view = Reader(story).view(user(notice))
    (how,) = Recaller(story, tools).recall(lengths[1], [value], view)
    return how


def notice(ref, offset=0):
    return f"[ullage: set aside. Read it: {Words().read_on(ref, offset)}]"


def index_of(*refs):
    lines = "\n".join(
        f"output ref={ref} (9 characters) of list {{}}" for ref in refs
    )
    return f"Index of messages 2 to 9 of this conversation.\n{lines}"


def test_an_output_is_read_page_by_page_until_its_line_is_there():
    how = fetched(Scripted({REF: LISTED}), notice(REF))
    assert len(how.page_tokens) == 3
    assert not how.is_lost
    assert not how.by_ref, "the first page does not hold it"


def test_a_notice_behind_the_line_costs_the_pages_read_in_vain():
    how = fetched(Scripted({REF: LISTED}), notice(REF, 40_000))
    assert len(how.page_tokens) == 1 + 3


def test_a_search_for_the_names_of_the_question_takes_one_page():
    tools = Scripted(
        {REF: LISTED}, greps="601:due is invoice_4711 of 12 March"
    )
    assert len(fetched(tools, notice(REF)).page_tokens) == 1
    assert "invoice_4711" not in "".join(tools.asked), "the value is masked"


def test_a_search_in_vain_is_paid_for():
    tools = Scripted({REF: LISTED}, greps="[0 of 0 matching lines]")
    assert len(fetched(tools, notice(REF)).page_tokens) == 1 + 3


def test_an_index_is_read_up_to_the_ref_it_names():
    others = [f"{number:016d}" for number in range(300)]
    index = index_of(*others, REF)
    assert 2 * PAGE_CHARS < len(index) < 3 * PAGE_CHARS
    how = fetched(Scripted({REF: LISTED, INDEX: index}), notice(INDEX))
    assert len(how.page_tokens) == 3 + 3


def test_the_shortest_way_is_taken():
    tools = Scripted({REF: LISTED, INDEX: index_of(REF)})
    assert (
        len(fetched(tools, f"{notice(INDEX)}\n{notice(REF)}").page_tokens) == 3
    )


def test_indexes_that_name_each_other_come_to_an_end():
    other = "d" * 16
    tools = Scripted({INDEX: index_of(other), other: index_of(INDEX)})
    assert fetched(tools, notice(INDEX)).is_lost


def test_where_nothing_leads_there_the_tool_is_run_again():
    how = fetched(Scripted({}), "nothing is named here")
    assert how.is_lost
    assert how.page_tokens == (len(LISTED) // 4,)


@pytest.mark.parametrize(("at", "pages"), [(1, 1), (2, 2), (0, 2 + 1 + 3)])
def test_words_are_asked_first_and_refs_where_two_pages_do_not_show_it(
    at, pages
):
    finds = ["nothing", "nothing"]
    if at:
        finds[at - 1] = "601:due is invoice_4711 of 12 March"
    tools = Scripted({REF: LISTED}, finds=finds)
    how = fetched(tools, notice(REF))
    assert how.by_words == at
    assert len(how.page_tokens) == pages
    assert not any("invoice_4711" in words for words in tools.asked), (
        "the value is masked"
    )


def test_a_ref_that_a_page_of_words_names_is_asked_by_the_same_words():
    tools = Scripted(
        {REF: LISTED, INDEX: index_of(REF)},
        finds=[f"ref={REF} offset=70 of list\n3: nothing", "nothing"],
        within="601: due is invoice_4711 of 12 March",
    )
    how = fetched(tools, notice(INDEX))
    assert how.by_words == 0
    assert len(how.page_tokens) == 2 + 1, "no page of the index is read"


def test_the_bare_value_brings_back_no_line():
    how = fetched(
        Scripted({REF: LISTED}, finds=["invoice_4711", "invoice_4711"]),
        notice(REF),
    )
    assert how.by_words == 0


def test_what_a_page_of_the_same_reply_shows_costs_no_other():
    first, second = "alpha_one of the list\n", "beta_two of the list\n"
    listed = first + second
    run = run_of(
        user("Go."),
        call("list", listed),
        call("pay", "", a="alpha_one", b="beta_two"),
    )
    wire, lengths = FORMATS[run.format], boundaries(run)
    story = Story(wire, run.messages)
    values = wants_of(story, lengths, HeadText.of(wire, run.request))[1].values
    view = Reader(story).view(user(notice(ref_of(listed))))
    how = Recaller(story, Scripted({ref_of(listed): listed})).recall(
        lengths[1], values, view
    )
    assert sorted(len(each.page_tokens) for each in how) == [0, 1]


def test_a_session_brings_it_back_by_the_tools_it_offers():
    found = (
        Carrier(errand(1, turns=60)).under(POLICIES["default"](), 8_000).shown
    )
    assert found.missed >= found.faults > found.lost == 0
    assert found.pages >= found.faults
    assert 0 < found.by_ref < found.missed
    assert found.searched in (0, found.missed)
    assert (
        found.cost(0.1) >= found.cost(0.1, "bound") > found.cost(0.1, "none")
    )
