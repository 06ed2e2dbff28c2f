"""What the provider compacted itself: it reads nothing before, so nothing before counts."""

from lab.returned import problems
from tests.histories import CUTS_ALWAYS
from ullage import Limits, Session
from ullage.core.contract.policy import Policy
from ullage.policy.stages.condense import AccountRoom, Range, condense
from ullage.policy.stages.shrink import cut_to

MODEL = "claude-sonnet-4-5"
LONG = "one line of a long log\n" * 400
"""About 2,400 tokens."""


def step(number, text=LONG):
    """The agent reads a page."""
    use = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "read",
        "input": {"page": number},
    }
    result = {
        "type": "tool_result",
        "tool_use_id": f"toolu_{number}",
        "content": text,
    }
    return [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]


def compacted(content="Ten pages were read.", **more):
    """The provider puts a summary of its own before its answer."""
    block = {"type": "compaction", "content": content, **more}
    return {
        "role": "assistant",
        "content": [block, {"type": "text", "text": "I go on."}],
    }


ASKED = {"role": "user", "content": "Read them all."}
ON = {"role": "user", "content": "Go on."}
READ = [message for number in range(20) for message in step(number)]
ROOM = Limits(window_tokens=12_000, output_reserve_tokens=1_000)


def fit(session, messages):
    view = session.fit({"model": MODEL, "messages": messages})["messages"]
    assert problems("anthropic", {"model": MODEL, "messages": view}) == []
    return view


def test_a_history_far_over_the_window_counts_from_the_compaction_on():
    session = Session(MODEL, policy=CUTS_ALWAYS, limits=ROOM)
    view = fit(session, [ASKED, *READ, compacted(), ON])
    assert view[-2:] == [compacted(), ON]
    assert session.window.tokens < 200
    plain = Session(MODEL, policy=CUTS_ALWAYS, limits=ROOM)
    fit(
        plain, [ASKED, *READ, {"role": "assistant", "content": "I go on."}, ON]
    )
    assert plain.window.tokens > 2_000


def test_a_compaction_that_failed_stands_for_nothing():
    session = Session(MODEL, policy=CUTS_ALWAYS, limits=ROOM)
    fit(session, [ASKED, *READ, compacted(content=None), ON])
    assert session.window.tokens > 2_000


def test_what_we_condensed_before_stays_as_it_was_sent_and_what_comes_later_is_condensed_anew():
    session = Session(MODEL, policy=CUTS_ALWAYS, limits=ROOM)
    before = fit(session, [ASKED, *READ])
    history = [ASKED, *READ, compacted(), ON]
    view = fit(session, history)
    assert view[: len(before)] == before
    small = session.window.tokens
    assert small < 200
    later = [message for number in range(30, 40) for message in step(number)]
    shown = fit(session, [*history, *later])
    assert session.window.tokens < 12_000
    assert (
        shown.index(history[-2]) < len(shown) - 4
    )  # the compaction itself stays
    cold = Session(
        MODEL, limits=ROOM, state=session.state, store=session.store
    )
    assert fit(cold, [*history, *later]) == shown


def test_what_the_provider_still_reads_is_counted():
    session = Session(MODEL, policy=CUTS_ALWAYS, limits=ROOM)
    fit(session, [ASKED, compacted(), ON, *step(1)])
    counted = session.window.tokens
    alone = Session(MODEL, policy=CUTS_ALWAYS, limits=ROOM)
    fit(alone, [ASKED, ON, *step(1)])
    assert counted > alone.window.tokens


def test_a_summary_before_the_providers_compaction_stays_as_it_is_when_the_next_begins_behind_it():
    """Also where what was thought about had been cut while the thinking was behind the summary."""
    model, room = (
        "claude-opus-5-5",
        AccountRoom(2_000, 0, 1_000, "by the test"),
    )

    def thinks(number, messages):
        thought = {
            "type": "thinking",
            "thinking": "Hm.",
            "signature": f"s{number}",
        }
        reply, *more = messages
        return [{**reply, "content": [thought, *reply["content"]]}, *more]

    def accounts(window):
        runs = {5: (3, 5), 11: (9, 11)}
        chosen = Range(*runs[window.size]) if window.size in runs else None
        made = condense(window, chosen, room) if chosen else None
        ends = [placed.stop for placed in window.summaries[-1:]]
        return () if made is None or ends == [window.size] else made.cuts

    def cuts_page_1(window):
        spot = (2, 0, 0)
        if window.size != 5 or window.shown(2):
            return ()
        return (cut_to(window, spot, window.leaf_tokens(spot), 200),)

    policy = Policy(name="test", under_pressure=(accounts, cuts_page_1))
    session = Session(
        model, policy=policy, limits=Limits(window_tokens=200_000)
    )
    history, sent = [ASKED], []
    for more in (
        thinks(1, step(1)),
        thinks(2, step(2)),
        [compacted(), ON],
        step(3),
        step(4),
        [],
    ):
        history += more
        sent.append(
            session.fit({"model": model, "messages": history})["messages"]
        )
        assert (
            problems("anthropic", {"model": model, "messages": sent[-1]}) == []
        )
    assert "condensed here" in str(sent[2])
    assert "condensed here" in str(sent[-1])
    assert len(session.window.summaries) == 2
    assert sent[-1][3] == sent[2][3], "the older one"
    assert "s2" not in str(sent[-1])
