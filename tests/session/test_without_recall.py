"""Where no recall tool is offered, the default cuts nothing until the window is nearly full."""

from functools import partial

import pytest
from msgspec.structs import replace

from tests.histories import CUTS_ALWAYS
from ullage import Limits, MemoryStore, Session
from ullage.core.contract.kinds import LIMIT_CHARS
from ullage.core.errors import ConfigError
from ullage.core.values.effects import Reply
from ullage.core.values.usage import Usage
from ullage.documents import NAMES
from ullage.policy.stages.default import DEFAULT, SUMMARISED
from ullage.policy.stages.truncate import by_kind, truncate

MODEL = "claude-opus-5-5"
LOOKUP = {"name": "lookup", "input_schema": {"type": "object"}}
LARGE = "\n".join(
    f"row {n}: the lamp of harbour {n} burns" for n in range(400)
)
"""Over what is shown of such a tool's result at first sight."""
SMALL = "\n".join(
    f"row {n}: the lamp of harbour {n} burns" for n in range(100)
)


def steps(count, output=SMALL, start=0):
    """What an agent does after the first message: so many calls, each with its result."""
    messages = []
    for number in range(start, start + count):
        call = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "lookup",
            "input": {"n": number},
        }
        result = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": output,
        }
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [result]})
    return messages


ASKED = [{"role": "user", "content": "Which lamps burn?"}]


def request(messages, tools=(LOOKUP,), **more):
    asked = {"model": MODEL, "max_tokens": 1_000, "messages": messages, **more}
    return {**asked, "tools": list(tools)} if tools else asked


def walked(session, messages, tools=(LOOKUP,), **more):
    """The last view of a session that sees every request on the way, and its usage."""
    for length in range(1, len(messages) + 1, 2):
        view = session.fit(request(messages[:length], tools, **more))
        session.observe(Usage(fresh_tokens=session.window.estimate))
    return view


def kinds(session):
    return {event.kind for event in session.events} - {"observed"}


def tools_of(view):
    return [tool["name"] for tool in view.get("tools", ())]


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({"recall": False}, {}),
        ({}, {"tools": ()}),
        ({}, {"tool_choice": {"type": "none"}}),
    ],
)
def test_nothing_is_cut_where_the_model_could_not_open_it(settings, more):
    messages = [*ASKED, *steps(1, LARGE), *steps(90, start=1)]
    session = Session(MODEL, **settings)
    view = walked(session, messages, **more)
    assert all(
        sent is own
        for sent, own in zip(view["messages"], messages, strict=True)
    )
    assert not kinds(session)
    offered = Session(MODEL)
    walked(offered, messages)
    assert {"truncated", "pruned"} <= kinds(offered), (
        "with the tools this is cut"
    )


def test_the_guard_alone_makes_it_fit_when_the_window_is_nearly_full():
    session = Session(MODEL, limits=Limits(window_tokens=32_000), recall=False)
    messages = [*ASKED, *steps(60)]
    for length in range(1, len(messages) + 1, 2):
        session.fit(request(messages[:length]))
        assert session.window.within(session.window.limit_tokens, surely=True)
    assert "condensed" in kinds(session)
    assert not {"truncated", "pruned"} & kinds(session)
    condensed = next(
        event for event in session.events if event.kind == "condensed"
    )
    assert "near its limit" in condensed.why


def test_a_host_that_offers_the_tools_itself_counts_as_offering_them():
    session = Session(MODEL, recall="host")
    walked(session, [*ASKED, *steps(1, LARGE)])
    assert kinds(session) == {"truncated"}


def test_a_policy_may_cut_with_the_tools_or_without():
    session = Session(MODEL, policy=CUTS_ALWAYS, recall=False)
    view = walked(session, [*ASKED, *steps(1, LARGE), *steps(90, start=1)])
    assert {"truncated", "pruned"} <= kinds(session)
    assert tools_of(view) == ["lookup"]


@pytest.mark.parametrize("policy", sorted(set(NAMES) - {"default"}))
def test_a_preset_does_what_its_document_says_with_the_tools_or_without(
    policy,
):
    messages = [*ASKED, *steps(30, LARGE * 2)]
    limits = Limits(window_tokens=400_000)
    with_tools, without = (
        Session(MODEL, policy=policy, limits=limits, recall=recall)
        for recall in (True, False)
    )
    walked(with_tools, messages)
    walked(without, messages)
    assert kinds(without) == kinds(with_tools)
    assert {"truncated", "pruned", "compacted"} & kinds(without)


def test_with_a_model_for_summaries_the_compaction_is_made_all_the_same():
    def summariser(question):
        return Reply(text="<summary>Lamp 7 is next.</summary>", model=MODEL)

    limits = Limits(window_tokens=32_000)
    session = Session(
        MODEL, limits=limits, summariser=summariser, recall=False
    )
    walked(session, [*ASKED, *steps(24)])
    assert "compacted" in kinds(session)
    assert "pruned" not in kinds(session)


def test_one_request_without_tools_is_shown_as_those_around_it():
    """A title, an account of the whole: in the middle of a conversation whose model can open."""
    messages = [*ASKED, *steps(1, LARGE), *steps(2, LARGE, start=1)]
    plain, session = Session(MODEL), Session(MODEL)
    views = [plain.fit(request(messages[:length])) for length in (1, 3, 5, 7)]
    assert session.fit(request(messages[:1])) == views[0]
    assert session.fit(request(messages[:3])) == views[1]
    assert (
        session.fit(request(messages[:5], tools=()))["messages"]
        == views[2]["messages"]
    )
    assert session.fit(request(messages[:5])) == views[2]
    assert session.fit(request(messages)) == views[3]
    again = Session(MODEL, store=session.store)
    assert again.fit(request(messages)) == views[3], (
        "and a cold start comes to the same"
    )


CHOSEN = [{"type": "none"}, {"type": "tool", "name": "lookup"}]


@pytest.mark.parametrize("choice", CHOSEN)
def test_what_arrives_where_recall_may_not_be_called_is_shown_whole_and_stays(
    choice,
):
    messages = [*ASKED, *steps(3, LARGE)]
    session = Session(MODEL)
    session.fit(request(messages[:1]))
    before = session.fit(request(messages[:3]))["messages"]
    assert "get_continuation" in str(before[-1])
    view = session.fit(request(messages[:5], tool_choice=choice))
    assert tools_of(view) == ["lookup", "get_continuation"], "the head stays"
    assert view["messages"][:3] == before, "so does what was shown"
    assert view["messages"][4] == messages[4], "what is new is whole"
    after = session.fit(request(messages))
    assert after["messages"][:5] == view["messages"], (
        "and nothing is taken back"
    )
    assert "get_continuation" in str(after["messages"][-1]), (
        "the next result is cut as ever"
    )
    other = Session(MODEL, store=session.store)
    assert other.fit(request(messages)) == after, (
        "another worker comes to the same"
    )


@pytest.mark.parametrize("choice", CHOSEN)
def test_a_place_that_was_shown_before_is_shown_as_it_was(choice):
    """The same history once more, with no tool to be called: a title that is made by the way."""
    messages = [*ASKED, *steps(1, LARGE)]
    session = Session(MODEL)
    session.fit(request(messages[:1]))
    view = session.fit(request(messages))
    assert "get_continuation" in str(view["messages"])
    title = session.fit(request(messages, tool_choice=choice))
    assert title["messages"] == view["messages"]
    session.observe(Usage(fresh_tokens=session.window.estimate))
    other = Session(MODEL, store=session.store)
    assert (
        other.fit(request(messages, tool_choice=choice))["messages"]
        == view["messages"]
    )


def test_a_conversation_in_which_every_tool_is_chosen_for_the_model_is_never_cut():
    choice = {"type": "tool", "name": "lookup"}
    messages = [*ASKED, *steps(6, LARGE)]
    session = Session(MODEL)
    view = walked(session, messages, tool_choice=choice)
    assert view["messages"] == messages
    assert kinds(session) <= {"observed"}


def test_a_conversation_that_is_given_tools_later_has_ours_then_and_is_cut():
    """The caller's own tools break the cached prefix, so to cut what was sent costs no more."""
    store = MemoryStore()
    session = Session(MODEL, store=store)
    before = [*ASKED, *steps(2, LARGE)]
    walked(session, before, tools=())
    after = [*before, *steps(1, LARGE, start=2)]
    view = session.fit(request(after))
    assert tools_of(view) == ["lookup", "get_continuation"]
    assert view["messages"][0] is after[0]
    for shown in view["messages"][2::2]:
        assert "get_continuation" in str(shown), (
            "what is cut says how it is read on"
        )
    other = Session(MODEL, store=store)
    assert other.fit(request(after)) == view, (
        "another worker comes to the same"
    )
    title = session.fit(request(after, tools=()))
    assert title["messages"] == view["messages"], (
        "and a request without tools breaks nothing"
    )
    longer = [*after, *steps(1, LARGE, start=3)]
    assert other.fit(request(longer)) == session.fit(request(longer))
    assert (
        session.fit(request(longer))["messages"][: len(after)]
        == view["messages"]
    )


def test_a_batch_that_pays_is_made_once_the_tools_are_there():
    session = Session(MODEL)
    walked(session, [*ASKED, *steps(2, LARGE)], tools=())
    messages = [*ASKED, *steps(2, LARGE), *steps(90, start=2)]
    for length in range(7, len(messages) + 1, 2):
        view = session.fit(request(messages[:length]))
    assert "pruned" in kinds(session)
    assert len(view["messages"]) < len(messages)
    assert Session(MODEL, store=session.store).fit(request(messages)) == view


def test_a_history_under_way_that_no_ledger_knows_waits_until_it_pays_or_is_asked_for():
    messages = [*ASKED, *steps(2, LARGE)]
    view = Session(MODEL).fit(request(messages))
    assert tools_of(view) == ["lookup"]
    assert view["messages"] == messages
    asked = Session(MODEL, recall=True).fit(request(messages))
    assert tools_of(asked) == ["lookup", "get_continuation"]
    assert asked["messages"] != messages


def own(window, /):
    """A stage of the caller's own; it is asked, and wants nothing."""
    ASKED_OWN.append(window.size)
    return ()


ASKED_OWN = []
PLACES = {
    "before": {"under_pressure": (own, *DEFAULT.under_pressure)},
    "behind": {"under_pressure": (*DEFAULT.under_pressure, own)},
    "at first sight": {"on_arrival": (own, *DEFAULT.on_arrival)},
}


@pytest.mark.parametrize("base", [DEFAULT, SUMMARISED])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", [{"tools": ()}, {"recall": False}, {}])
def test_a_stage_that_is_put_into_the_default_runs_with_tools_and_without(
    base, place, how
):
    policy = replace(base, name="mine-1", **PLACES[place])
    session = Session(MODEL, policy=policy, recall=how.get("recall", "auto"))
    ASKED_OWN.clear()  # at first sight it is asked of samples too, when the session is made
    session.fit(request(ASKED, tools=how.get("tools", (LOOKUP,))))
    assert set(ASKED_OWN) == {1}, "what is weighed asks it too"


def test_a_stage_of_ours_that_is_put_in_with_settings_of_its_own_runs_too():
    cut = partial(
        truncate,
        shape=partial(by_kind, limit_chars=dict.fromkeys(LIMIT_CHARS, 500)),
    )
    policy = replace(DEFAULT, name="mine-2", on_arrival=(cut,))
    session = Session(MODEL, policy=policy, recall=False)
    view = session.fit(request([*ASKED, *steps(1, LARGE)]))
    assert len(str(view["messages"][-1])) < 1_500
    assert "get_continuation" not in str(view), (
        "no tool is named that is not there"
    )


def test_stages_in_the_place_of_a_rule_are_refused():
    with pytest.raises(ConfigError, match="leaving_out"):
        replace(DEFAULT, without_recall=(own,))
