import pytest

from demo.agenda import QUICK
from demo.report import evidence, prove
from demo.tally import Unlimited, set_aside
from tests.demo.standin import CONTINUATION, Event, Identity, Pruning


@pytest.mark.parametrize(
    ("session", "how"),
    [
        (Identity(), "verbatim"),
        (Pruning(keep=2), "by_notice"),
        (Pruning(keep=2, cut_chars=5_000, grep=False), "by_notice"),
        (Pruning(keep=12, index=True), "by_index"),
    ],
)
def test_every_result_comes_back_from_the_last_view(play, session, how):
    history, views = play(QUICK, session)
    proof = prove(session, views[-1][0]["messages"], history[:-1])
    assert proof.lost == ()
    assert proof.back == proof.total > 15
    assert getattr(proof, how) > proof.total / 3


@pytest.fixture
def small():
    """A session that has set one result aside, the view, and the history."""
    session = Pruning(keep=0, grep=False)
    history = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "function": {"name": "read_file", "arguments": "{}"},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "0123456789\n" * 2_000,
        },
    ]
    notice = session._notice(session._put(history[-1]["content"]), 0)
    return (
        session,
        [*history[:-1], {**history[-1], "content": notice}],
        history,
    )


def test_a_result_read_page_by_page_is_proved(small):
    proof = prove(*small)
    assert (proof.by_notice, proof.lost, proof.recall_calls) == (1, (), 3)
    assert str(proof).startswith(
        "1 of 1 tool results came back byte for byte (0 in the view"
    )


def test_one_changed_byte_is_a_lost_result(small):
    session, view, history = small
    ref = next(iter(session.kept))
    session.kept[ref] = session.kept[ref].replace("5", "6", 1)
    assert prove(session, view, history).lost == ("c1",)


def test_a_view_without_a_notice_proves_nothing(small):
    session, view, history = small
    view[-1]["content"] = "[gone]"
    proof = prove(session, view, history)
    assert (proof.back, proof.lost) == (0, ("c1",))


def test_a_cut_result_is_continued_from_where_its_notice_says(small):
    session, view, history = small
    text = history[-1]["content"]
    ref = next(iter(session.kept))
    on = f'[cut. {CONTINUATION}(tool_call_id="{ref}", offset=100)]'
    view[-1]["content"] = f"{text[:100]}\n…\n{on}"
    assert prove(session, view, history).recall_calls == 3
    assert prove(session, view, history).by_notice == 1


def test_results_of_recall_are_not_counted_as_originals(small):
    session, view, history = small
    call = {"id": "c2", "function": {"name": CONTINUATION, "arguments": "{}"}}
    more = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c2", "content": "a page"},
    ]
    assert prove(session, view, [*history, *more]).total == 1


def test_a_notice_inside_an_original_is_not_followed(small):
    session, view, history = small
    hidden = "hidden text"
    session._put(hidden)
    original = history[-1]["content"] = session._notice(
        session._put(hidden), 0
    )
    lost = {"role": "tool", "tool_call_id": "c9", "content": hidden}
    view[-1]["content"] = original
    assert prove(session, view, [*history, lost]).lost == ("c9",)


def test_evidence_counts_what_was_asked_and_what_was_found():
    answer = (
        "Answer 2.\n> a.py:1: x\nAll questions, with their evidence.\n"
        "> a.py:1: x\n> b.py:2: (not found again)"
    )
    assert evidence(answer) == (["> a.py:1: x"], 2)


def test_what_was_set_aside_is_counted_by_ref():
    events = [
        Event("truncated", "m1", "r1", 900, 300),
        Event("pruned", "m1", "r1", 300, 40),
        Event("observed", "reply", None, 0, 0),
        Event("recalled", "m9", "r1", 0, 100),
        Event("pruned", "m2", "r2", 500, 40),
    ]
    assert set_aside(events) == (2, 600 + 260 + 460)


def test_an_unlimited_session_changes_nothing_and_owns_nothing():
    request = {"model": "m", "messages": [], "tools": []}
    session = Unlimited()
    assert session.fit(request) == request
    assert not session.owns({"id": "c"})
    with pytest.raises(LookupError):
        session.recall({"id": "c"})
