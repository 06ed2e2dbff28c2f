"""What an earlier version left behind is read by this one: its store, its ledger, its refs."""

import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests import rewording
from tests.compat import make
from tests.stores.conftest import server, url  # noqa: F401  (fixtures)
from ullage import Record
from ullage.core.history.ledger import arrival_part
from ullage.documents import preset
from ullage.documents.conversation import (
    ConversationStore,
    PostgresConversations,
)
from ullage.integrations._entries import record_of
from ullage.policy import DEFAULT, SUMMARISED, fingerprint
from ullage.stores import PostgresStore
from ullage.wires.rules.checker import problems_of

LEFT = sorted(path.parent for path in Path(__file__).parent.glob("*/kept.db"))
DECIDES = {
    "default-11": "tq6r8bxs4xr9qzap.752y4n7npwt366tg",
    "default-summarised-12": "tq6r8bxs4xr9qzap.5zpk3bgqp2dyks9a",
    "token_budget-1": "g56yphfs35bcg5va.m0qwh69tck0cw0kj",
    "multi_stage-1": "6tc0nr6nsd1qyx7t.s6ynzxyv7xnp3rsb",
    "continuation-1": "j4q9hvdcmdf47tze.bt1ysshjq5aq7bvs",
    "three_layer-1": "x3ecwwscmxxmg1s9.g6662fgj0kdkd2z7",
    "output_cache-1": "09fazcq7jme67fe2.g3xr52bjd36h1pvt",
}
"""The fingerprint of each policy, as ledgers hold it.

Where the first half changes, what was sent to a conversation under way is shown otherwise, once.
Where the second does, an event says so, and that is all."""
REF = re.compile(r'(?:ref=|tool_call_id=")([0-9a-z]{16})')


@pytest.fixture(params=LEFT, ids=lambda folder: folder.name)
def left(request, tmp_path):
    """A copy of what a version left: its folder."""
    return shutil.copytree(request.param, tmp_path / request.param.name)


@pytest.fixture
def opened():
    """Opens sessions, and closes them."""
    sessions = []

    def open_session(store, **more):
        sessions.append(make.session(store, **more))
        return sessions[-1]

    yield open_session
    for each in sessions:
        each.close()


def read(folder, name):
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def records_in(messages):
    """What stands in place of old messages."""
    said = [m["content"] for m in messages if m["role"] == "user"]
    return [text for text in said if text.startswith("[ullage:")]


def whole(session, ref):
    """All that a ref opens, page by page."""
    text, offset = "", 0
    while offset is not None:
        page = session.answer(
            "get_continuation", {"tool_call_id": ref, "offset": offset}
        ).text
        more = re.search(r"\n\[[^\n]*offset=(\d+)[^\n]*\]\Z", page)
        text += page[: more.start()] if more else page
        offset = int(more[1]) if more else None
    return text


def test_there_is_something_left_by_an_earlier_version():
    assert LEFT


def test_what_was_decided_then_is_shown_now(left, opened):
    history, view = read(left, "history"), read(left, "view")
    now = opened(left / "kept.db").fit(make.request(history))["messages"]
    assert len(records_in(view)) == 3
    assert records_in(now) == records_in(view)
    assert now[: len(records_in(view))] == view[: len(records_in(view))]


def test_a_ledger_that_a_host_kept_is_taken_without_the_store(left, opened):
    records = msgspec.json.decode(
        (left / "ledger.json").read_bytes(), type=list[Record]
    )
    session = opened(None)
    session.take(records)
    now = session.fit(make.request(read(left, "history")))["messages"]
    assert records_in(now) == records_in(read(left, "view"))


def test_every_ref_of_then_opens_what_it_opened(left, opened):
    history, view = read(left, "history"), read(left, "view")
    session = opened(left / "kept.db")
    session.fit(
        make.request(history[:1])
    )  # the refs are found in the store, not in the history
    refs = {ref for text in records_in(view) for ref in REF.findall(text)}
    texts = {whole(session, ref) for ref in refs}
    gone = {m["content"] for m in history if m["role"] == "tool"} - {
        m["content"] for m in view
    }
    assert len(gone) > 10
    assert gone <= texts


def test_the_conversation_goes_on_and_is_kept_in_the_same_store(left, opened):
    history = read(left, "history")
    first = opened(left / "kept.db")
    for number in range(make.FILES, make.FILES + 12):
        view = first.fit(make.request(history))
        said, result = make.step(number)
        first.observe(make.reply(number, said, view.sent.estimate))
        history += [said, result]
    view = first.fit(make.request(history))["messages"]
    assert records_in(view)[:3] == records_in(read(left, "view"))
    assert len(records_in(view)) > 3
    again = opened(left / "kept.db").fit(make.request(history))["messages"]
    assert again == view


def test_a_ledger_in_the_state_of_a_framework_is_the_same(left):
    records = msgspec.json.decode(
        (left / "ledger.json").read_bytes(), type=list[Record]
    )
    entries = read(left, "entries")
    assert [record_of(*entry) for entry in entries.items()] == records


def goes_on(chat, left):
    """A chat shows what it showed then, and every ref in it opens its text."""
    try:
        view = chat.fit({"model": make.MODEL, "tools": [make.TOOL]})[
            "messages"
        ]
        assert view == read(left, "chat_view")
        texts = {whole(chat.session, ref) for ref in REF.findall(str(view))}
        made = {
            make.step(number)[1]["content"] for number in range(make.FILES)
        }
        gone = made - {message["content"] for message in view}
        assert len(gone) > 5
        assert gone <= texts
    finally:
        chat.close()


def test_a_chat_goes_on_from_its_summary(left):
    kept = ConversationStore(left / "chat.db")
    goes_on(make.conversation(kept, left / "chat_kept.db"), left)
    assert len(kept.history(make.CHAT)) > len(read(left, "chat_view")), (
        "all of it is there"
    )


@pytest.fixture
def filled(left, server, url):  # noqa: F811
    """The address of a server with what a version left on one."""
    with server.connect() as db:
        db.execute((left / "server.sql").read_bytes())
    return url


def test_a_server_shows_what_was_decided_on_it_then(left, filled, opened):
    session = opened(PostgresStore(filled))
    view = read(left, "view")
    now = session.fit(make.request(read(left, "history")))["messages"]
    assert now[: len(records_in(view))] == view[: len(records_in(view))]
    assert all(
        whole(session, ref)
        for text in records_in(view)
        for ref in REF.findall(text)
    )


def test_a_chat_on_a_server_goes_on(left, filled):
    with closing(PostgresConversations(filled)) as kept:
        goes_on(make.conversation(kept, PostgresStore(filled)), left)


# ── words that changed since ─────────────────────────────────────────────────────────────


def thinking_at(messages):
    """Where thoughts are shown."""
    places = []
    for place, message in enumerate(messages):
        content = message["content"]
        if not isinstance(content, str) and any(
            part["type"] == "thinking" for part in content
        ):
            places.append(place)
    return places


def goes_on_legally(then, view):
    """A view of the same history is legal, and no thought stands behind a word that changed.

    Returns:
        Whether it is the view of then.
    """
    now = view["messages"]
    assert problems_of("anthropic", now) == []
    same = next(
        (
            at
            for at, pair in enumerate(zip(then, now, strict=False))
            if pair[0] != pair[1]
        ),
        -1,
    )
    if same < 0:
        assert now == then
    else:
        assert [place for place in thinking_at(now) if place >= same] == []
    return same < 0


@pytest.fixture
def thinks(left):
    """Opens the thoughtful conversation: each time a session of its own."""
    sessions = []

    def open_session():
        sessions.append(make.thinking_session(left / "worded_kept.db"))
        return sessions[-1]

    yield open_session
    for each in sessions:
        each.close()


def test_everything_in_our_words_is_in_what_was_left(left):
    then = str(read(left, "worded")["view"])
    for words in (
        "are condensed here",
        "in short, a record",
        "characters shown. Read on",
    ):
        assert words in then
    assert "'thinking'" in then


def test_a_conversation_in_our_words_goes_on_and_what_changed_is_told(
    left, thinks
):
    told, view = read(left, "worded"), None
    session = thinks()
    view = session.fit(make.thinking_request(told["history"]))
    shows_same = goes_on_legally(told["view"], view)
    found = session.state.ledger.entries.values()
    known = [
        opened.policy_fingerprint
        for entry in found
        for opened in entry.policies
    ]
    kinds = [event.kind for event in session.events]
    assert kinds.count("changed") == (
        session.settings.policy_fingerprint != known[0]
    )
    assert shows_same == (
        arrival_part(session.settings.policy_fingerprint)
        == arrival_part(known[0])
    )


@pytest.fixture(scope="module")
def worded(tmp_path_factory):
    """The thoughtful conversation as this version leaves it: its store, history and last view."""
    store = tmp_path_factory.mktemp("worded") / "worded_kept.db"
    return store, *make.worded(store)


@pytest.fixture
def thinks_now(worded, tmp_path):
    """Opens the conversation that this version left: each time a session of its own."""
    store = shutil.copy(worded[0], tmp_path / "worded_kept.db")
    sessions = []

    def open_session():
        sessions.append(make.thinking_session(store))
        return sessions[-1]

    yield open_session
    for each in sessions:
        each.close()


@pytest.mark.parametrize(("place", "old", "new", "part"), rewording.WORDS)
def test_one_word_that_changes_is_told_once(
    monkeypatch, worded, thinks_now, place, old, new, part
):
    _, history, then = worded
    rewording.forget()
    request = make.thinking_request(history)
    try:
        rewording.reword(monkeypatch, place, old, new)
        session = thinks_now()
        shows_same = goes_on_legally(then, session.fit(request))
        assert [event.kind for event in session.events].count("changed") == 1
        (told,) = (
            event for event in session.events if event.kind == "changed"
        )
        assert ("stays as it is" in told.why) == (
            part == rewording.UNDER_PRESSURE
        )
        assert shows_same == (part == rewording.UNDER_PRESSURE)
        again = thinks_now()
        again.fit(request)
        assert "changed" not in {event.kind for event in again.events}
    finally:
        rewording.forget()


def test_a_policy_of_the_same_name_has_the_fingerprint_that_ledgers_hold():
    """Else each conversation under way is told that another one decides."""
    documents = (
        "token_budget",
        "multi_stage",
        "continuation",
        "three_layer",
        "output_cache",
    )
    policies = [DEFAULT, SUMMARISED, *map(preset, documents)]
    assert {policy.name: fingerprint(policy) for policy in policies} == DECIDES
