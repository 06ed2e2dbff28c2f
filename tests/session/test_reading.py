"""What is read of a session is a snapshot: reading changes nothing, no turn changes what was read.

A turn is interrupted where it calls something: its store, its stages, its counter. The readers run
there, in the middle, on the same thread; so these tests hang on no timing. One test has threads.
"""

import asyncio
import copy
import json
import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests import histories
from tests.histories import EAGER, Call, Turn
from ullage import (
    AsyncSession,
    Budget,
    Limits,
    MemoryStore,
    Policy,
    Session,
    SqliteStore,
    Usage,
)
from ullage.core.errors import StoreError
from ullage.core.history.frozen import FrozenTranscript
from ullage.core.history.layers import Layers
from ullage.core.history.window import Window
from ullage.core.tokens.meter import Meter
from ullage.session.host import HostMixin
from ullage.session.reading import ReadMixin
from ullage.stores.threaded import Threaded
from ullage.wires import FORMATS

LIMITS = Limits(window_tokens=9_000, output_reserve_tokens=500)
VAST = Limits(window_tokens=900_000)
formats = pytest.mark.parametrize("format", sorted(FORMATS))
PLACES = ["find", "commit", "stage", "counter"]


class Interruption:
    """Calls a function in the middle of a turn, wherever a test has put it; never within itself."""

    def __init__(self):
        self.run = None
        self.calls = 0

    def __call__(self):
        run, self.run = self.run, None
        if run is not None:
            self.calls += 1
            run()
            self.run = run


MIDDLE = Interruption()


def in_the_middle(window, /):
    """A stage that decides nothing."""
    MIDDLE()
    return ()


POLICY = replace(
    EAGER,
    name="interrupted-1",
    under_pressure=(in_the_middle, *EAGER.under_pressure),
)


def put(place, monkeypatch):
    """Have turns interrupted at a place. A stage of the policy is always there."""
    MIDDLE.run, MIDDLE.calls = None, 0
    owner = {"find": SqliteStore, "commit": SqliteStore, "counter": Meter}.get(
        place
    )
    name = "leaf" if place == "counter" else place
    if owner is None:
        return
    whole = getattr(owner, name)

    def interrupted(*given, **named):
        MIDDLE()
        return whole(*given, **named)

    monkeypatch.setattr(owner, name, interrupted)


def session_of(format, limits=LIMITS, **more):
    more = {"policy": POLICY, "recall": True, **more}
    return Session("claude-opus-4-8", format=format, limits=limits, **more)


def requests(format, count=9):
    """A history that grows; the message before the last is worded anew at each turn."""
    calls = [
        Call("bash", f"{n}.py", f"line {n} of it\n" * 150 * (1 + n % 3))
        for n in range(count)
    ]
    turns = [
        Turn(said="Look." if n % 4 == 0 else "", calls=(c,))
        for n, c in enumerate(calls)
    ]
    messages = histories.wire(format, turns)
    stops = [
        n for n, message in enumerate(messages) if n and is_reply(message)
    ]
    for stop in (*stops, len(messages)):
        yield histories.request(format, marked(format, messages[:stop]))


def is_reply(message):
    return (
        message.get("role") in ("assistant", "model")
        or message.get("type") == "function_call"
    )


def marked(format, messages):
    """As clients do that move their cache marker along: an earlier message differs by it."""
    messages = copy.deepcopy(messages)
    if format == "anthropic":
        for message in messages[-2:]:
            blocks = message["content"]
            if (
                isinstance(blocks, list)
                and blocks[-1]["type"] == "tool_result"
            ):
                blocks[-1]["cache_control"] = {"type": "ephemeral"}
    return messages


def reply(number):
    return Usage(fresh_tokens=900 + number, output_tokens=3)


def shown(window):
    """All that a window tells of itself."""
    return (
        (window.size, window.fresh, window.limit_tokens, window.head_tokens),
        (window.tokens, window.estimate, window.summaries_tokens),
        [window.message_tokens(index) for index in range(window.size)],
        {index: list(changes) for index, changes in window.changed.items()},
        [window.hidden(index) for index in range(window.size)],
        window.summaries,
        sorted(window.reasoning_dropped),
        dict(window.applied),
        [tuple(window.transcript.outputs(*at)) for at in parts(window)],
        [window.transcript.address((*at, 0)) for at in parts(window)],
        (
            len(window.transcript),
            [*window.transcript.chain],
            [*window.transcript.messages],
        ),
    )


def parts(window):
    messages = window.transcript.messages
    return [(index, number) for index in range(len(messages)) for number in range(2)
            if number < len(messages[index].parts)]  # fmt: skip


def read(session):
    """All that can be read of a session."""
    other = pickle.loads(pickle.dumps(session))
    twin = copy.copy(session)
    return {
        "repr": repr(session),
        "window": shown(session.window),
        "picture": session._repr_html_(),
        "state": session.state,
        "events": session.events,
        "usage": (session.usage, session.cost_usd, session.calls),
        "tools": session.tools,
        "owns": session.owns({"name": "get_continuation"}),
        "copy": (repr(twin), shown(twin.window), twin.state),
        "pickle": (other.state, other.events),
        "request": json.dumps(session.newest_request()),
        "messages": [*session.messages],
        "saved": session.saved,
        "learnt": session.learnt,
    }


def reads_as(session, before):
    """Whether a session reads as before; its budget may have told of the call before this one."""
    now = read(session)
    told = before["events"], before["usage"][2]
    now["events"] = now["events"][: len(told[0])]
    now["usage"] = (*now["usage"][:2], now["usage"][2][: len(told[1])])
    now["pickle"] = (now["pickle"][0], now["pickle"][1][: len(told[0])])
    assert now == before
    return True


def sums_are_true(session):
    """Whether the working window counts what is shown, neither more nor less."""
    window = session._state.newest.working
    visible = [
        index for index in range(window.size) if not window.hidden(index)
    ]
    anew = sum(map(window.count_message, visible)) + window.summaries_tokens
    return window.tokens == window.head_tokens + anew


@formats
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("limits", [LIMITS, VAST], ids=["tight", "uncounted"])
def test_in_the_middle_of_a_turn_a_session_reads_as_before_it(
    format, place, limits, tmp_path, monkeypatch
):
    put(place, monkeypatch)
    alone = session_of(format, limits, store=tmp_path / "alone.db")
    session = session_of(format, limits, store=tmp_path / "read.db")
    before = None

    def compare():
        assert reads_as(session, before)

    for number, request in enumerate(requests(format)):
        expected = json.dumps(alone.fit(request))
        MIDDLE.run = compare if number else None
        view = session.fit(request)
        MIDDLE.run = None
        assert json.dumps(view) == expected
        assert view.explain() == alone._state.newest.explain()
        if number % 3 == 0:
            alone.observe(reply(number))
            before = read(session)
            MIDDLE.run = compare
            view.observe(reply(number))
            MIDDLE.run = None
        before = read(session)
        assert sums_are_true(session)
    assert alone.state == session.state
    assert MIDDLE.calls or (place, limits) in [
        ("commit", VAST),
        ("counter", VAST),
    ]


@formats
@pytest.mark.parametrize(
    "redact", [None, lambda text: text.replace("line 3", "line x")]
)
def test_what_was_read_stays_as_it_was(format, redact):
    """Windows and views that somebody keeps do not move on, whenever they are looked at."""
    session = session_of(format, redact=redact)
    late, kept, read_then = [], [], []
    for number, request in enumerate(requests(format)):
        view = session.fit(request)
        late.append(view)
        if number % 2:
            kept.append((view, session.window))
            read_then.append(
                (shown(session.window), view.explain(), view._repr_html_())
            )
    for (view, window), (then, explained, picture) in zip(
        kept, read_then, strict=True
    ):
        assert shown(window) == then
        assert shown(view.sent.window) == then
        assert (view.explain(), view._repr_html_()) == (explained, picture)
    fresh = session_of(format, redact=redact)
    for view, request in zip(late, requests(format), strict=True):
        again = fresh.fit(
            request
        )  # a view that nobody looked at tells the same
        assert view.explain() == again.explain()
        assert shown(view.sent.window) == shown(fresh.window)


def test_whatever_a_session_shows_is_read_in_the_middle():
    public = {name for name in vars(ReadMixin) if not name.startswith("_")}
    assert public == {
        *(
            "state",
            "saved",
            "events",
            "usage",
            "cost_usd",
            "calls",
            "window",
            "owns",
            "tools",
        ),
    }


def test_whoever_reads_cannot_write():
    session = session_of("anthropic")
    for request in requests("anthropic"):
        session.fit(request)
    window = session.window
    with pytest.raises(AttributeError, match="cannot be written"):
        window.size = 0
    for change in (
        lambda: window.transcript.append(
            window.transcript.messages[0], b"d" * 16
        ),
        lambda: window.transcript.refresh(0, window.transcript.messages[1]),
        lambda: window.transcript.upto(1),
    ):
        with pytest.raises(TypeError, match="frozen"):
            change()
    window.transcript.messages.clear()
    window.changed.clear()
    assert sums_are_true(session)
    assert [
        json.dumps(session.fit(request)) for request in requests("anthropic")
    ] == [
        json.dumps(view)
        for view in map(session_of("anthropic").fit, requests("anthropic"))
    ]


def test_a_turn_freezes_what_is_new_and_copies_nothing_else(monkeypatch):
    """What a turn adds to a frozen window is a constant, however long the history is."""
    added = []
    whole = Layers.with_changes

    def counting(self, changes):
        added.append(len(changes))
        return whole(self, changes)

    monkeypatch.setattr(Layers, "with_changes", counting)
    session, sizes, cut = session_of("openai-chat", VAST), [], []
    given = FrozenTranscript.__getattr__

    def getting(transcript, name):
        value = given(transcript, name)
        if isinstance(value, list):
            cut.append((len(sizes), name))
        return value

    monkeypatch.setattr(FrozenTranscript, "__getattr__", getting)
    for request in requests("openai-chat", 60):
        added.clear()
        session.fit(request)
        session.observe(reply(len(sizes)))
        sizes.append(sum(added))
    assert sum(sizes) <= 6 * len(sizes)  # a few a turn; a batch has its edits
    assert [turn for turn, _ in cut if turn > 2] == []


def test_a_look_at_each_view_counts_each_text_once(monkeypatch):
    counted = []
    whole = Window.count_message
    monkeypatch.setattr(
        Window, "count_message", lambda *it: counted.append(1) or whole(*it)
    )
    session, looks = (
        session_of("openai-chat", VAST, policy=Policy(name="none")),
        [],
    )
    for request in requests("openai-chat", 60):
        counted.clear()
        session.fit(request)
        repr(session)
        looks.append(len(counted))
    assert max(looks[2:]) <= 12


# ── others who write ─────────────────────────────────────────────────────────────────────


class Midway(MemoryStore):
    """Calls a function before it keeps what a turn decided."""

    run = None

    def commit(self, tenant, outputs, records):
        if self.run is not None:
            self.run()
        return super().commit(tenant, outputs, records)


def test_what_others_change_in_the_middle_of_a_turn_is_not_lost():
    """An event, a refusal, a reply to a request that was sent as it came, a host's lesson."""
    store = Midway()
    session = session_of("anthropic", store=store, budget=Budget(tokens=10**9))
    (first, *others) = requests("anthropic")
    session.fit(first)
    unfitted = session.pass_on(first, ValueError("not fitted"))
    told = session.events[-1]
    for request in others[:5]:
        view = session.fit(request)

    def change():
        store.run = None
        session.emit(told)
        unfitted.observe(
            {"id": "other", "usage": {"input_tokens": 901, "output_tokens": 3}}
        )
        size = view.sent.estimate
        overflow = (
            f"prompt is too long: {size + 90} tokens > {size - 300} maximum"
        )
        assert view.refused(ValueError(overflow))

    store.run = change
    for request in others[5:]:
        session.fit(request)
    assert store.run is None
    kinds = [event.kind for event in session.events]
    assert kinds.count("unfitted") == 2
    assert kinds.count("refused") == 1
    assert session.usage.fresh_tokens == 901
    assert session.learnt.lessons


def test_a_host_reads_and_gives_in_the_middle_of_a_turn():
    store, requests_of = Midway(), [*requests("anthropic")]
    session = session_of("anthropic", store=store)
    session.fit(requests_of[0])
    read_then = []

    def host():
        again = json.loads(json.dumps(requests_of[0]))
        assert (
            session.intern(again) is again
        )  # the turn works on what is remembered
        session.begin_with_header(None)
        read_then.append(
            (session.header, session.newest_request(), len(session.messages))
        )

    store.run = host
    last = requests_of[0]
    for request in requests_of[1:]:
        before = len(read_then)
        session.fit(request)
        for header, newest, size in read_then[before:]:
            assert header is None
            assert newest == last
            assert size == len(last["messages"])
        last = request
    assert read_then
    assert all(
        name in HostMixin.__dict__
        for name in ("intern", "newest_request", "messages")
    )


def test_a_session_that_is_closed_in_the_middle_of_a_turn_is_as_before_it(
    tmp_path, monkeypatch
):
    put("commit", monkeypatch)
    session = session_of("anthropic", store=tmp_path / "kept.db")
    (first, *others) = requests("anthropic")
    session.fit(first)
    before, state = read(session), session.state
    MIDDLE.run = session.close
    failed = False
    for request in others:
        before, state = read(session), session.state
        try:
            session.fit(request)
        except StoreError:
            failed = True
            break
    assert failed
    MIDDLE.run = None
    assert session.state == state
    assert read(session)["window"] == before["window"]
    again = session_of("anthropic", store=tmp_path / "kept.db")
    assert json.dumps(again.fit(others[-1])) == json.dumps(
        [*map(session_of("anthropic").fit, requests("anthropic"))][-1]
    )


def test_a_copy_made_in_the_middle_of_a_turn_goes_on_by_itself(
    tmp_path, monkeypatch
):
    put("commit", monkeypatch)
    session = session_of("anthropic", store=tmp_path / "kept.db")
    session.fit(next(requests("anthropic")))
    copies = []
    MIDDLE.run = lambda: copies.append(
        (copy.copy(session), pickle.dumps(session))
    )
    views = [
        json.dumps(session.fit(request)) for request in requests("anthropic")
    ]
    MIDDLE.run = None
    assert copies
    assert all(twin._state.newest.working is None for twin, _ in copies)
    for twin, pickled in copies:
        for other in (twin, pickle.loads(pickled)):
            *_, last = requests("anthropic")
            assert json.dumps(other.fit(last)) == views[-1]
            assert sums_are_true(other)
    assert sums_are_true(session)


# ── an event loop, and threads ───────────────────────────────────────────────────────────


def test_on_an_event_loop_a_session_reads_as_before_the_turn_that_is_awaited():
    """A long turn is worked out in a thread, and the loop goes on looking at the session."""

    async def played():
        store = Midway()
        session = AsyncSession(
            "claude-opus-4-8", format="anthropic", limits=LIMITS, policy=POLICY, recall=True,
            store=Threaded(store),
        )  # fmt: skip
        views, looks = [], []
        for request in requests("anthropic"):
            entered, may_go_on = threading.Event(), threading.Event()
            store.run = lambda e=entered, m=may_go_on: (e.set(), m.wait(60))
            before = (
                None if not views else (repr(session), shown(session.window))
            )
            task = asyncio.create_task(session.fit(request))
            task.add_done_callback(lambda _, e=entered: e.set())
            await asyncio.to_thread(entered.wait, 60)
            if before is not None and not task.done():
                looks.append((repr(session), shown(session.window)) == before)
            may_go_on.set()
            views.append(json.dumps(await task))
        assert sums_are_true(session)
        return views, looks

    views, looks = asyncio.run(played())
    assert looks
    assert all(looks)
    assert views == [
        json.dumps(v)
        for v in map(session_of("anthropic").fit, requests("anthropic"))
    ]


def look_at(session, is_over, failures):
    """Read a session again and again, until it is over; what a reader finds wrong is a failure."""
    while not is_over.is_set():
        try:
            repr(session)
            window = session.window
            visible = [
                at for at in range(window.size) if not window.hidden(at)
            ]
            anew = (
                sum(map(window.message_tokens, visible))
                + window.summaries_tokens
            )
            assert window.tokens == window.head_tokens + anew
            assert (
                len(session.messages) == len(window.transcript)
                or session.window is not window
            )
            copy.copy(session)
            session._repr_html_()
        except BaseException as error:  # noqa: BLE001 - it is raised in the test's own thread
            failures.append(error)
            return


@settings(max_examples=8, deadline=None)
@given(
    format=st.sampled_from(sorted(FORMATS)),
    limits=st.sampled_from([LIMITS, VAST]),
    observed=st.sets(st.integers(0, 9), max_size=4),
)
def test_threads_that_read_change_nothing(format, limits, observed):
    alone, session = session_of(format, limits), session_of(format, limits)
    first, *others = requests(format)
    alone.fit(first)
    session.fit(first)
    is_over, failures = threading.Event(), []
    readers = [
        threading.Thread(target=look_at, args=(session, is_over, failures))
        for _ in range(2)
    ]
    for reader in readers:
        reader.start()
    try:
        for number, request in enumerate(others):
            assert json.dumps(session.fit(request)) == json.dumps(
                alone.fit(request)
            )
            if number in observed:
                session.observe(reply(number))
                alone.observe(reply(number))
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
    if failures:
        raise failures[0]
    assert sums_are_true(session)
    assert session.state == alone.state
