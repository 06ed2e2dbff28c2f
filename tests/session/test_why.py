"""What left a window, and why: from the store alone, after a restart, by whoever looks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.session.provider import CLAUDE, SYSTEM, Agent, Provider, tool
from ullage import Limits, Session, SqliteStore
from ullage.core.history.outline import file_in
from ullage.core.values.cache_breaks import PARTIES, CacheBreak
from ullage.session.stored.conversation import conversation
from ullage.session.stored.why import causes_of, server_of, why_of
from ullage.tools.replay.report.why import batches_of


def talked(path, provider):
    """A conversation with a break of each kind, and the views of it."""
    session = Session(CLAUDE, limits=Limits(window_tokens=40_000), store=path)
    agent = Agent(session, provider)
    views = [agent.turn(lines=150) for _ in range(12)]
    views.append(agent.turn(lines=150, system=f"And: {SYSTEM}"))
    views.append(agent.turn(lines=150, wait_s=420))
    session.drop("t10", author="ann")
    views.append(agent.turn(lines=3))
    views += [agent.turn(lines=150) for _ in range(14)]
    views.append(agent.turn(tools=[tool("read"), tool("x")]))
    return session, views


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    path = tmp_path_factory.mktemp("why") / "kept.db"
    with pytest.MonkeyPatch.context() as patch:
        session, views = talked(path, Provider().watch(patch))
    record = why_of(conversation(session.store, ""))
    return session, views, record


def test_every_break_that_was_told_is_in_it_with_its_request(told):
    session, views, record = told
    events = [event for event in session.events if event.broken]
    assert [note.broken for note in record.breaks] == [
        event.broken for event in events
    ]
    for note in record.breaks:
        assert views[note.request - 1].sent.broken == note.broken
    causes = {note.broken.cause for note in record.breaks}
    assert causes == {"system", "expired", "decision", "batch", "tools"}


def test_its_sums_are_those_of_the_session(told):
    session, views, record = told
    assert record.requests == len(views)
    assert record.cost_usd == pytest.approx(session.cost_usd)
    assert sum(total.breaks for total in record.causes) == len(record.breaks)
    assert sum(total.tokens for total in record.causes) == sum(
        note.broken.tokens for note in record.breaks
    )


def test_each_batch_has_its_author_its_price_and_what_it_saves(told):
    _, views, record = told
    authors = [note.author for note in record.batches]
    assert authors[0] == "ann"
    assert set(authors[1:]) == {"ullage (record)"}
    assert any(note.broken for note in record.batches)
    for note in record.batches:
        if note.broken is not None:
            assert note.broken.cause in ("batch", "decision")
        assert note.tools == ("read",)
        assert note.fewer_tokens > 0
        assert note.requests == len(views) - note.request + 1
        price = 0.3e-6 * note.fewer_tokens * note.requests
        assert note.saved_usd == pytest.approx(price)


def test_a_batch_tells_what_it_cut_though_a_later_one_took_it_out(
    tmp_path, monkeypatch
):
    limits = Limits(window_tokens=32_000, output_reserve_tokens=1_000)
    session = Session(CLAUDE, limits=limits, store=tmp_path / "kept.db")
    agent = Agent(session, Provider().watch(monkeypatch))
    for turn in range(14):
        agent.turn(tools=[tool("count")])
        rows = [
            {"id": number, "name": f"barrel {number} of {turn}, a cask"}
            for number in range(600)
        ]
        agent.messages[-2]["content"][0]["name"] = "count"
        agent.messages[-1]["content"][0]["content"] = json.dumps(rows)
    notes = why_of(conversation(session.store, "")).batches
    shortened = [note for note in notes if note.author != "ullage (record)"]
    assert shortened
    assert len(shortened) < len(notes)
    for note in shortened:
        assert note.author == "ullage (large result)"
        assert (note.texts, note.tools) == (1, ("count",))
        assert note.fewer_tokens > 0


def test_the_texts_of_the_batches_add_up_to_what_left(tmp_path, monkeypatch):
    """A result that was cut first and set aside later left once."""
    limits = Limits(window_tokens=32_000, output_reserve_tokens=1_000)
    session = Session(CLAUDE, limits=limits, store=tmp_path / "kept.db")
    agent = Agent(session, Provider().watch(monkeypatch))
    for turn in range(14):
        agent.turn(tools=[tool("count")])
        rows = [
            {"id": number, "name": f"barrel {number} of {turn}, a cask"}
            for number in range(600)
        ]
        agent.messages[-2]["content"][0]["name"] = "count"
        agent.messages[-1]["content"][0]["content"] = json.dumps(rows)
    stored = conversation(session.store, "")
    notes = why_of(stored).batches
    assert sum(note.cut_before for note in notes) > 0
    gone = [leaf for leaf in stored.leaves() if leaf.batch]
    assert sum(note.texts for note in notes) == len(gone)
    lines = list(batches_of(why_of(stored), str))
    assert any("that had been cut before" in line for line in lines)


def test_what_left_is_told_by_tool_and_file_and_adds_up(told):
    session, _, record = told
    (read,) = record.tools
    assert read.name == "read"
    hidden = [
        leaf
        for leaf in conversation(session.store, "").leaves()
        if leaf.state != "whole"
    ]
    assert read.texts == len([leaf for leaf in hidden if leaf.tool])
    assert {left.name for left in record.files} == {
        leaf.file for leaf in hidden if leaf.file
    }
    assert "/src/10.log" in {left.name for left in record.files}
    assert sum(left.tokens for left in record.files) == read.tokens
    assert sum(left.unsent_tokens for left in record.files) == (
        read.unsent_tokens
    )
    assert record.servers == ()


def test_after_a_restart_it_is_the_same(told):
    session, _, record = told
    store = SqliteStore(session.store.path)
    assert why_of(conversation(store, "")) == record
    store.close()


def test_what_was_taken_back_saves_nothing(tmp_path, monkeypatch):
    session, _ = talked(tmp_path / "a.db", Provider().watch(monkeypatch))
    name = why_of(conversation(session.store, "")).batches[-1].name
    session.undo(name)
    record = why_of(conversation(session.store, ""))
    (note,) = [note for note in record.batches if note.name == name]
    assert note.is_undone
    assert (note.requests, note.saved_usd) == (0, 0)


@pytest.mark.parametrize(
    ("tool_name", "server"),
    [
        ("mcp__github__search_code", "github"),
        ("mcp__plugin_a_b__x__y", "plugin_a_b"),
        ("github__search", "github"),
        ("read_file", ""),
        ("__init__", ""),
        ("mcp__x", "mcp"),
        ("", ""),
    ],
)
def test_the_server_of_a_tool_is_told_by_its_name(tool_name, server):
    assert server_of(tool_name) == server


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        ('{"file_path": "/a/b.py", "limit": 3}', "/a/b.py"),
        ('{"limit": 3, "filePath":"c \\"d\\".py"}', 'c "d".py'),
        ('{"path": "/' + "x" * 300 + '.py"}', "x" * 97 + ".py"),
        ('{"command": "cat a.py"}', ""),
        ('{"path": 3}', ""),
        ('{"path": "\\ud800"}', ""),
        ('{"path": "cut off he', ""),
        ("no JSON", ""),
    ],
)
def test_the_file_of_a_call_is_the_end_of_the_path_that_it_names(
    arguments, file
):
    assert file_in(arguments) == file


@given(st.text())
def test_no_arguments_are_too_odd(text):
    assert len(file_in(text)) <= 100
    assert len(file_in(f'{{"path": "{text}"}}')) <= 100


BREAKS = st.builds(
    CacheBreak,
    st.sampled_from(sorted(PARTIES)),
    tokens=st.integers(0, 10**6),
    cost_usd=st.none() | st.floats(0, 9),
)


@given(st.lists(BREAKS))
def test_breaks_add_up_by_party_whatever_their_order(breaks):
    totals = causes_of(breaks)
    assert sum(total.breaks for total in totals) == len(breaks)
    assert sum(total.tokens for total in totals) == sum(
        broken.tokens for broken in breaks
    )
    assert len({total.party for total in totals}) == len(totals)
    unpriced = {one.party for one in breaks if one.cost_usd is None}
    assert {t.party for t in totals if t.cost_usd is None} == unpriced
