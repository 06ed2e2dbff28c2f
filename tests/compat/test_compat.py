"""What an earlier version left behind is read by this one: its store, its ledger, its refs."""

import json
import re
import shutil
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.compat import make
from tests.stores.conftest import server, url  # noqa: F401  (fixtures)
from ullage import Record
from ullage.integrations._entries import record_of
from ullage.presets import preset
from ullage.stages import DEFAULT, SUMMARISED
from ullage.stores import PostgresStore
from ullage.stores.conversations import ConversationStore
from ullage.stores.postgres import PostgresConversations
from ullage.turn.terms import what_decides

LEFT = sorted(path.parent for path in Path(__file__).parent.glob("*/kept.db"))
DECIDES = {
    "default-8": "nw3wmzdkgawrzzbx",
    "default-summarised-9": "d4prbryjqfwe2fae",
    "token_budget-1": "eytv5ahsb6fqfc03",
    "multi_stage-1": "xh0017jetya5w9wa",
    "continuation-1": "1znwysnkhc8r75yq",
    "three_layer-1": "nvsrv5te1ta6vgz7",
    "output_cache-1": "77jxcqjzds0z5nqd",
}
"""The fingerprint of what cuts at first sight under each name, as ledgers hold it."""
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
        page = session.open("get_continuation", {"tool_call_id": ref, "offset": offset}).text
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
    records = msgspec.json.decode((left / "ledger.json").read_bytes(), type=list[Record])
    session = opened(None)
    session.take(records)
    now = session.fit(make.request(read(left, "history")))["messages"]
    assert records_in(now) == records_in(read(left, "view"))


def test_every_ref_of_then_opens_what_it_opened(left, opened):
    history, view = read(left, "history"), read(left, "view")
    session = opened(left / "kept.db")
    session.fit(make.request(history[:1]))  # the refs are found in the store, not in the history
    refs = {ref for text in records_in(view) for ref in REF.findall(text)}
    texts = {whole(session, ref) for ref in refs}
    gone = {m["content"] for m in history if m["role"] == "tool"} - {m["content"] for m in view}
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
    records = msgspec.json.decode((left / "ledger.json").read_bytes(), type=list[Record])
    entries = read(left, "entries")
    assert [record_of(*entry) for entry in entries.items()] == records


def goes_on(chat, left):
    """A chat shows what it showed then, and every ref in it opens its text."""
    try:
        view = chat.fit({"model": make.MODEL, "tools": [make.TOOL]})["messages"]
        assert view == read(left, "chat_view")
        texts = {whole(chat.session, ref) for ref in REF.findall(str(view))}
        made = {make.step(number)[1]["content"] for number in range(make.FILES)}
        gone = made - {message["content"] for message in view}
        assert len(gone) > 5
        assert gone <= texts
    finally:
        chat.close()


def test_a_chat_goes_on_from_its_summary(left):
    kept = ConversationStore(left / "chat.db")
    goes_on(make.conversation(kept, left / "chat_kept.db"), left)
    assert len(kept.history(make.CHAT)) > len(read(left, "chat_view")), "all of it is there"


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
    assert all(whole(session, ref) for text in records_in(view) for ref in REF.findall(text))


def test_a_chat_on_a_server_goes_on(left, filled):
    with closing(PostgresConversations(filled)) as kept:
        goes_on(make.conversation(kept, PostgresStore(filled)), left)


def test_a_policy_of_the_same_name_has_the_fingerprint_that_ledgers_hold():
    """Else each conversation under way is told that another one decides, and its prefix breaks."""
    documents = ("token_budget", "multi_stage", "continuation", "three_layer", "output_cache")
    policies = [DEFAULT, SUMMARISED, *map(preset, documents)]
    assert {policy.name: what_decides(policy) for policy in policies} == DECIDES
