"""F73 to F91: what was cut, set aside, and could or could not be read again."""

import json
import os
import random
import re
import signal
import unicodedata
from contextlib import contextmanager
from functools import partial

import pytest
from msgspec.structs import replace

from lab import reading
from tests import histories
from tests.failures.scenes import (
    LINES,
    WIRES,
    after_a_restart,
    history,
    new_session,
    requests,
    run,
    steps,
)
from tests.histories import CUTS_ALWAYS, Call, Turn
from tests.sessions import recall
from ullage import MemoryStore, RefNotFound, SqliteStore, StoreError, problems
from ullage.core.contract.kinds import LIMIT_CHARS
from ullage.core.redaction import common_keys
from ullage.core.values.notices import Words, pointers, ref_line
from ullage.policy.stages.default import DEFAULT
from ullage.policy.stages.shorten import safe_cut, shorten
from ullage.policy.stages.truncate import by_kind, truncate
from ullage.stores import Bounds, SpillStore

CHAT = "openai-chat"
REF = "0123456789abcdef"
ODD = "naïve 🙂👩‍👩‍👧 e\u0301 名前は「猫」\r\n"


def whole(turns, format=CHAT, **more):
    return list(requests(format, turns, **more))[-1]


def one(output, tool="bash", **more):
    return whole([Turn(calls=(Call(tool, "x", output, **more),))])


def known(session, view):
    found, texts = {}, list(reading.visible(view["messages"]))
    reading.reachable(session, texts, found)
    return [*texts, *found.values()]


def result(view):
    return view["messages"][-1]["content"]


@pytest.mark.parametrize("limit", range(300, 420, 7))
def test_f73_no_character_is_cut_in_half(limit):
    """Half a surrogate pair: strict parsers refused every later request."""
    shown = shorten(ODD * 90, limit, REF, Words())
    assert shown.encode("utf-8").decode() == shown
    at = safe_cut(ODD, limit % len(ODD))
    assert not unicodedata.combining(ODD[at : at + 1] or "x")


@pytest.mark.parametrize("limit", [400, 900, 2_000])
def test_f74_json_that_is_cut_is_json_still(limit):
    """JSON was cut in the middle, and nobody could read it."""
    text = json.dumps([{"id": n, "name": f"row {n}"} for n in range(900)])
    shown = shorten(text, limit, REF, Words())
    json.loads(shown[: shown.rindex("]") + 1].split("\n[ullage")[0])


def test_f75_a_progress_bar_takes_no_more_room_than_other_output():
    """Colour codes and progress bars filled the window, and nothing cleaned them."""
    bar = "".join(
        f"\x1b[32m{n / 100:.2f}%\x1b[0m {'#' * (n // 400)}\r"
        for n in range(10_000)
    )
    session = new_session(CHAT, 400_000)
    view = session.fit(one(f"{bar}\nInstalled.\n"))
    assert len(result(view)) < len(bar) // 10
    assert "Installed." in result(view)
    assert f"{bar}\nInstalled.\n" in known(session, view)


def test_f76_an_error_at_any_place_is_visible_or_one_call_away():
    """What was cut out was what was needed, and it was gone."""
    for at in range(0, 3_000, 250):
        lines = [LINES] * 3_000
        lines[at] = f"error: number {at} is None\n"
        session = new_session(CHAT, 200_000)
        view = session.fit(one("".join(lines)))
        assert f"number {at} is None" in result(view)
        assert "".join(lines) in known(session, view)


def test_f77_one_line_of_ten_megabytes_has_a_view_and_pages():
    """A single giant line: an empty preview, and paging by line could not move."""
    text = "x1 " * 3_400_000
    session = new_session(CHAT, 200_000)
    view = session.fit(one(text))
    ref = pointers(result(view))[0].ref
    assert len(result(view)) > 1_000
    page = recall(
        session, "get_continuation", {"tool_call_id": ref, "offset": 5_000_000}
    )
    assert page.startswith(text[5_000_000:5_001_000])


def test_f78_what_was_read_back_is_not_set_aside_again():
    """Reading the file that was spilled was spilled itself, and so on."""
    limits = dict.fromkeys(LIMIT_CHARS, 2_000)  # fewer than a page has
    shape = partial(by_kind, limit_chars=limits)
    policy = replace(DEFAULT, on_arrival=(partial(truncate, shape=shape),))
    session = new_session(CHAT, 200_000, policy=policy)
    first = session.fit(one(LINES * 3_000))
    ref, messages = (
        pointers(result(first))[0].ref,
        list(one(LINES * 3_000)["messages"]),
    )
    page = recall(
        session, "get_continuation", {"tool_call_id": ref, "offset": 0}
    )
    call = {
        "name": "get_continuation",
        "arguments": json.dumps({"tool_call_id": ref}),
    }
    asked = {"id": "r", "type": "function", "function": call}
    messages += [{"role": "assistant", "content": None, "tool_calls": [asked]}]
    messages += [{"role": "tool", "tool_call_id": "r", "content": page}]
    view = session.fit(histories.request(CHAT, messages))
    assert result(view) == page
    assert 2 * 2_000 < len(page) < 40_000


@contextmanager
def no_byte_more(folder):
    """A limit of the process on the size of a file, which its files have reached."""
    resource = pytest.importorskip("resource")
    before, signalled = (
        resource.getrlimit(resource.RLIMIT_FSIZE),
        signal.SIGXFSZ,
    )
    sizes = (
        file.stat().st_size for file in folder.rglob("*") if file.is_file()
    )
    handled = signal.signal(signalled, signal.SIG_IGN)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (max(sizes, default=40_000), before[1])
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signalled, handled)


@contextmanager
def no_page_more(store):
    """A disk that is full, as SQLite meets it."""

    def most(pages=None):
        with store._file.connection(store, "look") as db:
            pages = pages or db.execute("PRAGMA page_count").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {pages}")

    most()
    yield
    most(10**6)


class Full(MemoryStore):
    """A store whose disk is full."""

    def commit(self, tenant, outputs, records):
        if outputs:
            raise StoreError("memory", "commit", "the disk is full")
        return super().commit(tenant, outputs, records)


def test_f79_no_notice_is_shown_of_what_could_not_be_kept():
    """The marker named a file that had never been written."""
    with pytest.raises(StoreError):
        new_session(CHAT, store=Full()).fit(whole(steps(20)))


def test_f80_where_nothing_opens_a_ref_no_notice_names_a_tool():
    """The marker named a tool that was not there: twenty calls that failed."""
    session = new_session(CHAT, recall=False, policy=CUTS_ALWAYS)
    view = session.fit(whole(steps(20)))
    assert "get_continuation" not in json.dumps(view)


@pytest.mark.parametrize("chars", [0, 7, 10**9])
def test_f81_what_writes_a_ref_is_read_by_what_reads_one(chars):
    """Writer and reader of a marker disagreed."""
    assert [
        one.ref
        for one in pointers(Words().placeholder(REF, "x" * (chars % 99)))
    ] == [REF]
    assert [one.ref for one in pointers(ref_line(REF, chars))] == [REF]


@pytest.mark.parametrize("format", WIRES)
def test_f82_a_ref_outlives_pruning_and_compaction_after_it(format):
    """A later cut removed the pointer that the earlier one had left."""
    planted = f"the port is 40123\n{LINES * 60}"
    turns = [Turn(calls=(Call("bash", "x", planted),)), *steps(60)]
    session = new_session(format, 12_000)
    for request in requests(format, turns):
        view = session.fit(request)
    session.compact(request)
    view = session.fit(request)
    found, texts = {}, list(reading.visible(history(format, view)))
    reading.reachable(after_a_restart(session, format), texts, found)
    assert planted in [*texts, *found.values()]


def test_f84_a_store_keeps_no_more_than_it_is_told_to():
    """63 GB of spilled output."""
    store = MemoryStore()
    run(new_session(CHAT, store=store), CHAT, steps(30))
    done = store.collect(None, Bounds(max_bytes=4_000, even_needed=True))
    assert done.removed
    assert done.left_bytes <= 4_000


def test_f85_what_a_living_conversation_names_stays_and_what_went_is_answered():
    """The clean-up deleted files that were still named."""
    store, now = MemoryStore(), 10**10
    session = new_session(CHAT, store=store)
    run(session, CHAT, steps(30))
    named = {event.ref for event in session.events if event.kind == "pruned"}
    store.collect(None, Bounds(max_bytes=0))
    assert named <= set(store.refs("", limit=now))
    with pytest.raises(RefNotFound):
        store.get("", REF)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_f86_what_is_kept_is_private_whatever_the_umask_and_links_are_not_followed(
    tmp_path,
):
    """Spilled output that everybody could read, under a name that could be guessed."""
    before = os.umask(0)
    try:
        session = new_session(CHAT, store=tmp_path / "deep" / "kept.db")
        session.fit(one(LINES * 3_000))
        spill = SpillStore(session.store, tmp_path / "spill")
    finally:
        os.umask(before)
    assert (tmp_path / "deep" / "kept.db").stat().st_mode & 0o777 == 0o600
    assert spill.folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "spill")
    with pytest.raises(StoreError):
        SpillStore(MemoryStore(), tmp_path / "link")


@pytest.mark.parametrize(
    "id", ["../../x", "/etc/passwd", "a\0b", "x" * 300, "ｃall"]
)
def test_f87_an_id_is_a_name_and_never_a_path(tmp_path, id):
    """An id with ".." in it was made a path."""
    messages = one(LINES * 3_000)["messages"]
    messages[1]["tool_calls"][0]["id"] = messages[2]["tool_call_id"] = id
    policy = replace(DEFAULT, spill_directory=f"{tmp_path}/spill")
    store = tmp_path / "kept.db"
    session = new_session(CHAT, 200_000, store=store, tenant=id, policy=policy)
    session.fit(histories.request(CHAT, messages))
    files = [
        file.relative_to(tmp_path / "spill")
        for file in tmp_path.rglob("*.txt")
    ]
    assert [re.sub(r"[0-9a-z]{16}", "x", str(file)) for file in files] == [
        "x/x.txt"
    ]
    assert {file.name.split(".")[0] for file in tmp_path.iterdir()} == {
        "kept",
        "spill",
    }
    assert "nothing is kept" in recall(
        session, "get_continuation", {"tool_call_id": "../kept.db"}
    )


def test_f88_keys_are_taken_out_of_what_is_kept_and_compaction_goes_on():
    """Secrets stayed in spill files and summaries, or a scanner for them blocked compaction."""
    key, store = "sk-ant-" + "a1B2" * 9, MemoryStore()
    session = new_session(CHAT, 12_000, store=store, redact=common_keys)
    turns = [
        Turn(calls=(Call("bash", f"echo {key}", f"{key}\n{LINES * 60}"),))
        for _ in range(20)
    ]
    request = whole(turns)
    session.fit(request)
    assert session.compact(request)
    assert key not in "".join(
        store.get("", ref).text for ref in store.refs("")
    )
    assert key not in str(session.news())


def test_f89_a_page_says_how_much_of_the_whole_it_is():
    """A part of a file was handed out as the file."""
    text = LINES * 3_000
    session = new_session(CHAT, 200_000)
    ref = pointers(result(session.fit(one(text))))[0].ref
    page = recall(
        session, "get_continuation", {"tool_call_id": ref, "offset": 0}
    )
    assert f"{len(text):,}" in page.rsplit("\n", 1)[1]


@pytest.mark.parametrize(
    "tool", ["bash", "read_file", "mcp__x__y", "", "get_weather"]
)
def test_f90_no_tool_goes_past_the_limit(tool):
    """Some tools were never cut."""
    view = new_session(CHAT, 200_000).fit(one(LINES * 9_000, tool or "x"))
    assert len(result(view)) < 100_000


def test_f91_a_full_disk_ends_no_session_and_nothing_is_shown_that_is_not_kept():
    """The agent crashed when the disk was full."""
    store = Full()
    session, request = new_session(CHAT, store=store), whole(steps(20))
    with pytest.raises(StoreError):
        session.fit(request)
    store.commit = MemoryStore().commit
    assert session.fit(request) == new_session(CHAT).fit(request)


def test_f91_on_a_full_disk_what_is_new_is_shown_whole_or_opens_out_of_the_history(
    tmp_path,
):
    """Flagged, and cut as ever once there is room again."""
    store = SqliteStore(tmp_path / "u.db")
    session = new_session(CHAT, 200_000, store=store)
    texts = [random.Random(n).randbytes(20_000).hex() for n in range(3)]
    turns = [Turn(calls=(Call("bash", text[:9], text),)) for text in texts]
    session.fit(whole(turns[:2]))
    request = whole(turns)
    with no_page_more(store):
        view = session.fit(request)
        assert view["messages"] == request["messages"]
        assert session.events[-1].kind == "unkept"
        assert "is full" in session.events[-1].why
        small = new_session(CHAT, 9_000, store=store)
        bounded = small.fit(request)
        assert small.window.estimate <= small.window.limit_tokens
        assert small.events[-1].kind == "unkept"
        assert all(
            text in known(small, bounded) for text in texts
        )  # out of the history
    assert session.fit(request) == new_session(CHAT, 200_000).fit(request)
    assert result(session.fit(request)) != texts[-1]


def test_f91_on_a_full_disk_what_repair_takes_out_opens_out_of_the_history(
    tmp_path,
):
    """And is kept once there is room again."""
    text = random.Random(0).randbytes(20_000).hex()
    stray = {"role": "tool", "tool_call_id": "nobody", "content": text}
    request = whole([])
    request["messages"] = [{"role": "user", "content": "Go."}, stray]
    store = SqliteStore(tmp_path / "u.db")
    session = new_session(CHAT, 200_000, store=store, repair=True)
    with no_page_more(store):
        for _ in range(2):
            view = session.fit(request)
            assert problems(view, CHAT) == []
            assert session.events[-1].kind == "unkept"
            assert text in known(session, view)
    assert list(store.refs("")) == []
    assert session.fit(request) == view
    (ref,) = store.refs("")
    assert store.get("", ref).text == text


@pytest.mark.skipif(os.name != "posix", reason="the limit is POSIX")
@pytest.mark.parametrize("kind", ["sqlite", "spill", "both"])
def test_f91_the_same_where_a_limit_or_a_quota_is_what_is_full(tmp_path, kind):
    """Each store, at a real limit of the system: uncut where that fits, and a bounded view else."""
    store = (
        MemoryStore() if kind == "spill" else SqliteStore(tmp_path / "u.db")
    )
    if kind != "sqlite":
        store = SpillStore(store, tmp_path / "spill")
    text = random.Random(0).randbytes(40_000).hex()
    request = whole([Turn(calls=(Call("bash", "x", text),))])
    roomy = new_session(CHAT, 200_000, store=store)
    small = new_session(CHAT, 9_000, store=store)
    roomy.fit(one("ok"))
    with no_byte_more(tmp_path):
        assert roomy.fit(request)["messages"] == request["messages"]
        bounded = small.fit(request)
    assert roomy.events[-1].kind == small.events[-1].kind == "unkept"
    assert problems(bounded, CHAT) == []
    assert small.window.estimate <= small.window.limit_tokens
    assert text in known(small, bounded)
    assert result(roomy.fit(request)) != text
    store.close()
