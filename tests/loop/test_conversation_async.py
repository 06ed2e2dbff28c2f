"""The conversation of an event loop: what the synchronous one does, and a summary ahead of need."""

import asyncio
import sqlite3
import subprocess
import sys
import threading

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import histories
from tests.conversations import (
    LIMITS,
    LOG,
    TURNS,
    Model,
    bare,
    calls,
    opened,
    summaries,
    texts,
)
from tests.histories import Call, Turn
from tests.servers import Call as Asks
from tests.servers import Reply as Says
from tests.stores.killed import dies, forks, silent
from ullage import (
    Budget,
    ConfigError,
    FormatError,
    MemoryStore,
    StoreError,
    Usage,
)
from ullage.core.values.effects import Reply
from ullage.documents.conversation import AsyncConversation, ConversationStore
from ullage.tools.replay import reading
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

CHAT = "openai-chat"
SHORT = TURNS[:36]


class Writer(Model):
    """A summariser for an event loop that answers when it may."""

    def __init__(self, may=True):
        super().__init__()
        self.begun, self.may = asyncio.Event(), asyncio.Event()
        self.answered, self.cancelled = 0, 0
        if may:
            self.may.set()

    async def __call__(self, question):
        said = super().__call__(question)
        self.begun.set()
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.answered += 1
        return Reply(
            text=said, usage=Usage(fresh_tokens=1_000), model="gpt-4.1"
        )


def awaited(folder, format=CHAT, model=None, **more):
    return opened(folder, format, model, of=AsyncConversation, **more)


def folder_of(path, name):
    (path / name).mkdir()
    return path / name


async def played(conversation, format, messages, then=None):
    """The views of a conversation that is played through; ``then`` is called after each."""
    views = []
    for call, argument in calls(format, messages):
        came = await getattr(conversation, call)(argument)
        if call == "fit":
            views.append(came)
            if then is not None:
                await then()
    return views


def played_sync(folder, format, messages, model=None, **more):
    with opened(folder, format, model, **more) as made:
        came = [
            getattr(made, call)(argument)
            for call, argument in calls(format, messages)
        ]
        return [view for view in came if isinstance(view, dict)]


def rows(folder, format=CHAT):
    """What is in the database, but for ids and times."""
    kept = ConversationStore(folder / "chat.db", format=format)
    history = [
        (stored.message, stored.is_compacted) for stored in kept.history("s")
    ]
    with sqlite3.connect(folder / "chat.db") as db:
        parts = db.execute(
            "SELECT Summary, CompactedMessageCount, CompactedTokenCount, "
            "(SELECT COUNT(*) FROM Messages m WHERE m.rowid < b.rowid) "
            "FROM CompactionParts p JOIN Messages b ON b.Id = p.MessageId ORDER BY p.rowid"
        ).fetchall()
    return history, parts


async def until_begun(conversation, messages):
    """Live on until a summary is begun; the number of messages that then are kept."""
    for number, message in enumerate(messages):
        await conversation.append([message])
        await conversation.fit(bare(CHAT))
        if conversation.preparing is not None:
            await asyncio.sleep(0)
            return number + 1
    raise AssertionError("nothing was begun")


async def until_compacted(conversation, messages):
    """Live on until there is a summary; the view with it."""
    for message in messages:
        await conversation.append([message])
        view = await conversation.fit(bare(CHAT))
        if conversation.compacted.was_compacted:
            return view
    raise AssertionError("nothing was compacted")


def kinds(conversation, kind):
    return [
        event for event in conversation.session.events if event.kind == kind
    ]


# ── the same as the synchronous one ──────────────────────────────────────────────────────


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_the_same_views_and_the_same_rows(format, tmp_path):
    messages = histories.wire(format, SHORT)
    sync, other = folder_of(tmp_path, "sync"), folder_of(tmp_path, "async")
    views = played_sync(sync, format, messages)

    async def run():
        async with awaited(other, format) as made:
            came = await played(made, format, messages)
            assert await made.messages == opened(sync, format).messages
            return came

    assert asyncio.run(run()) == views
    assert rows(other, format) == rows(sync, format)
    assert len(rows(sync, format)[1]) > 1


@pytest.mark.parametrize("summariser", [Model, Writer], ids=["sync", "async"])
def test_the_same_words_where_a_view_grows_too_much_at_once(
    summariser, tmp_path
):
    """Nothing was begun, so the model is asked within the turn."""
    messages = histories.wire(CHAT, SHORT)
    halves = messages[:50], messages[50:]
    sync, other = folder_of(tmp_path, "sync"), folder_of(tmp_path, "async")
    first, asked = Model(), []
    views = []
    with opened(sync, CHAT, first) as made:
        for half in halves:
            made.append(half)
            views.append(made.fit(bare(CHAT)))
        told = made.compacted

    async def run():
        model = summariser()
        async with awaited(other, model=model) as made:
            came = []
            for half in halves:
                await made.append(half)
                came.append(await made.fit(bare(CHAT)))
                assert made.preparing is None
            asked.extend(model.asked)
            assert made.compacted.summary == told.summary
            return came

    assert asyncio.run(run()) == views
    assert rows(other) == rows(sync)
    assert asked == first.asked
    assert len(asked) == 2


def test_two_that_need_a_summary_at_once_make_one(tmp_path):
    async def run():
        model = Writer(may=False)
        async with awaited(tmp_path, model=model) as made:
            await made.append(histories.wire(CHAT, SHORT))
            both = asyncio.gather(made.fit(bare(CHAT)), made.fit(bare(CHAT)))
            await model.begun.wait()
            model.may.set()
            first, second = await both
            assert first == second
        assert len(model.asked) == 1

    asyncio.run(run())
    assert len(rows(tmp_path)[1]) == 1


def test_the_same_things_are_refused(tmp_path):
    async def run():
        async with awaited(tmp_path) as made:
            with pytest.raises(ConfigError, match="it is kept already"):
                await made.fit(
                    histories.request(CHAT, [{"role": "user", "content": "x"}])
                )
            with pytest.raises(FormatError):
                await made.append(
                    [{"role": "user", "content": "x"}, {"role": "nobody"}]
                )
            assert await made.messages == []
        with pytest.raises(ConfigError, match="no compaction"):
            awaited(tmp_path, policy="continuation")

    asyncio.run(run())
    with pytest.raises(ConfigError, match="Use an AsyncConversation"):
        opened(tmp_path, CHAT, Writer())


def test_importing_the_synchronous_one_loads_no_event_loop():
    code = """
import sys, ullage.documents.conversation
assert "asyncio" not in sys.modules
assert ullage.documents.conversation.AsyncConversation
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ── a summary before it is needed ────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Performance Considerations",
    "**Async Compaction**: Run compaction in background when possible",
    lives="ullage.documents.conversation.AsyncConversation",
)
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_it_is_begun_before_it_is_needed_and_written_down_by_the_fit_that_needs_it(
    format, tmp_path
):
    messages, wire = histories.wire(format, SHORT), FORMATS[format]

    async def run():
        model = Writer()
        begun = []

        async def settled():
            if made.preparing is not None:
                begun.append(len(rows(tmp_path, format)[1]))
                await made.preparing

        async with awaited(tmp_path, format, model) as made:
            views = await played(made, format, messages, settled)
            assert not kinds(made, "summary_refused")
            assert made.usage == made.session.budget.spent.usage
            assert made.usage == Usage(fresh_tokens=1_000 * len(model.asked))
        return model, views, begun

    model, views, begun = asyncio.run(run())
    history, parts = rows(tmp_path, format)
    assert [message for message, _ in history] == messages
    assert len(parts) > 1
    assert begun == list(
        range(len(begun))
    )  # one for each compaction, and before it
    assert len(model.asked) == len(begun) >= len(parts)
    for number, (summary, count, _, boundary) in enumerate(parts, 1):
        assert f"Part {number}." in summary
        assert count == boundary
    for view in views:
        assert not problems_of(format, wire.history(view))
        assert len(summaries(format, wire.history(view))) <= 1
    assert (
        "Part 1." in model.asked[1].texts[0]
    )  # what was before goes in with what is new
    with opened(tmp_path, format) as again:
        shown, found = texts(format, wire.history(again.fit(bare(format)))), {}
        reading.reachable(again.session, shown, found)
    said = "\n".join([*shown, *found.values()])
    steps = range(len(SHORT) - 1)
    assert [
        n
        for n in steps
        if f"Step {n}." not in said or f"{n}\n{LOG}" not in said
    ] == []


LONG = [
    Turn(
        said=f"Step {n}. "
        + "international communication infrastructure " * 24,
        calls=(Call("bash", f"{n}", "ok"),),
    )
    for n in range(100)
]
"""Words of more than four characters a token, so that the policy's rough estimate comes first."""


@pytest.mark.parametrize("turns", [TURNS, LONG], ids=["guard", "policy"])
def test_until_it_is_needed_the_view_is_as_it_was(turns, tmp_path):
    async def run():
        model = Writer()
        messages = histories.wire(CHAT, turns)
        async with awaited(tmp_path, model=model) as made:
            number = await until_begun(made, messages)
            await made.preparing
            (event,) = kinds(made, "preparing")
            assert "threshold" in event.why
            view = await made.fit(bare(CHAT))
            assert view["messages"] == messages[:number]
            assert not made.compacted.was_compacted
            assert made.preparing is None  # it is ready, and not begun again
            await until_compacted(made, messages[number:])
            assert "Part 1." in made.compacted.summary
            assert made._task is None  # it holds outputs: let them go
        assert len(model.asked) == 1

    asyncio.run(run())


class Raising(Model):
    def __call__(self, question):
        super().__call__(question)
        raise OSError("no way there")


class Silent(Model):
    def __call__(self, question):
        super().__call__(question)
        return ""


@pytest.mark.parametrize("fate", ["late", "raises", "refused", "cancelled"])
def test_one_that_cannot_be_used_leaves_what_would_have_been_without_a_model(
    fate, tmp_path
):
    """No turn waits for it, and nobody is asked in its place."""
    messages = histories.wire(CHAT, SHORT)
    sync, other = folder_of(tmp_path, "sync"), folder_of(tmp_path, "async")
    views = played_sync(sync, CHAT, messages)

    async def run():
        model = {"raises": Raising, "refused": Silent}.get(
            fate, lambda: Writer(may=False)
        )()

        async def between():
            if made.preparing is None:
                return
            if fate in ("late", "cancelled"):
                await model.begun.wait()
            if fate == "cancelled":
                model.begun.clear()
                made.preparing.cancel()
            if fate != "late":
                await asyncio.wait((made.preparing,))

        async with awaited(other, model=model) as made:
            came = await played(made, CHAT, messages, between)
            told = {
                event.why.partition(";")[0]
                for event in kinds(made, "summary_refused")
            }
            begun = len(kinds(made, "preparing"))
            assert (made.preparing is not None) == (fate == "late")
        return came, told, begun, len(model.asked)

    came, told, begun, asked = asyncio.run(run())
    assert came == views
    assert rows(other) == rows(sync)
    most = (
        2 if fate in ("raises", "refused") else 1
    )  # once more, until it is left out
    assert 1 <= asked <= begun * most
    left_out = {why for why in told if "was not asked, as in" in why}
    assert (
        told - left_out
        == {
            "late": {"what was begun beside the turns was not ready"},
            "cancelled": {"what was begun beside the turns was not ready"},
            "raises": {"the summariser raised OSError"},
            "refused": {"it says nothing"},
        }[fate]
    )
    assert begun == 1 if fate == "late" else begun > 1


@settings(max_examples=5)
@given(answers=st.lists(st.booleans(), min_size=40, max_size=40))
def test_however_late_the_answers_come_no_turn_waits_and_each_is_counted(
    answers, tmp_path_factory
):
    folder, messages = (
        tmp_path_factory.mktemp("late"),
        histories.wire(CHAT, SHORT),
    )
    left = iter(answers)

    async def run():
        model = Writer(may=False)

        async def between():
            model.may.clear()
            if next(left):
                model.may.set()
                if made.preparing is not None:
                    await made.preparing

        async with awaited(folder, model=model) as made:
            for view in await played(made, CHAT, messages, between):
                assert not problems_of(CHAT, view["messages"])
                assert len(summaries(CHAT, view["messages"])) <= 1
            assert made.usage == Usage(fresh_tokens=1_000 * model.answered)
            assert made.usage == made.session.budget.spent.usage
        assert len(model.asked) <= len(rows(folder)[1]) + 1

    asyncio.run(run())
    history, parts = rows(folder)
    assert [message for message, _ in history] == messages
    assert [is_compacted for _, is_compacted in history].count(True) == parts[
        -1
    ][1]


def test_a_late_one_is_in_the_totals_when_it_comes_back(tmp_path):
    async def run():
        model = Writer(may=False)
        messages = histories.wire(CHAT, TURNS)
        async with awaited(tmp_path, model=model) as made:
            number = await until_begun(made, messages)
            view = await until_compacted(made, messages[number:])
            assert "Part 1." not in str(view)
            assert made.usage == Usage()
            model.may.set()
            await made.preparing
            assert (
                made.usage
                == made.session.budget.spent.usage
                == Usage(fresh_tokens=1_000)
            )
            assert await made.fit(bare(CHAT)) == view

    asyncio.run(run())


def test_closing_gives_up_what_is_under_way(tmp_path):
    async def run():
        model = Writer(may=False)
        made = awaited(tmp_path, model=model)
        await until_begun(made, histories.wire(CHAT, TURNS))
        task = made.preparing
        await model.begun.wait()
        await made.close()
        assert task.cancelled()
        assert model.cancelled == 1
        assert made.preparing is None
        with pytest.raises(StoreError):
            await made.session.store.get("", "x")

    asyncio.run(run())
    assert rows(tmp_path)[1] == []


def test_once_the_budget_is_spent_nothing_is_begun(tmp_path):
    async def run():
        model, budget = (
            Writer(),
            Budget(tokens=10, on_exceeded="warn", warn_at=0),
        )
        budget.charge(Usage(fresh_tokens=10), "gpt-4.1", agent="x")
        async with awaited(tmp_path, model=model, budget=budget) as made:
            await played(made, CHAT, histories.wire(CHAT, SHORT))
            assert not kinds(made, "preparing")
        assert model.asked == []

    asyncio.run(run())
    assert rows(tmp_path)[1]


# ── the loop goes on, whatever the database does ─────────────────────────────────────────


class Slow(ConversationStore):
    """Works on once the loop has ticked; on the loop itself it would wait in vain."""

    ticked = threading.Event()
    waited = ()

    def _transaction(self, operation, begin):
        type(self).waited += ((operation, self.ticked.wait(5)),)
        self.ticked.clear()
        return super()._transaction(operation, begin)


def test_a_slow_database_does_not_hold_up_the_loop(tmp_path):
    async def tick():
        while True:
            Slow.ticked.set()
            await asyncio.sleep(0.001)

    async def run():
        ticking = asyncio.create_task(tick())
        store = Slow(tmp_path / "chat.db")
        model = Writer()
        made = AsyncConversation(
            store, "s", "gpt-4.1", limits=LIMITS, summariser=model
        )
        for message in histories.wire(CHAT, SHORT):
            await made.append([message])
            await made.fit(bare(CHAT))
        await made.messages
        await made.close()
        ticking.cancel()
        return len(model.asked)

    assert asyncio.run(run()) > 0
    waited = dict(Slow.waited)
    assert waited.keys() == {
        "append",
        "load",
        "history",
        "newest_compaction",
        "mark_compacted",
    }
    assert all(ticked for _, ticked in Slow.waited)


# ── it may be interrupted at any step ────────────────────────────────────────────────────


@forks
@silent
def test_killed_at_any_step_after_the_answer_the_history_is_whole(tmp_path):
    messages = histories.wire(CHAT, TURNS)

    async def lengths(made):
        """How many messages there are when a summary is begun, and when it is needed."""
        begun = await until_begun(made, messages)
        await until_compacted(made, messages[begun:])
        return begun, len(rows(folder)[0])

    async def answered(made):
        await made.append(messages[:begun])
        await made.fit(bare(CHAT))
        await made.preparing
        await made.append(messages[begun:needed])

    def prepare():
        runner, made = asyncio.Runner(), awaited(folder, model=Writer())
        runner.run(answered(made))
        return runner, made

    def work(runner, made):
        runner.run(made.fit(bare(CHAT)))

    folder, after, seen = folder_of(tmp_path, "lengths"), 0, []
    begun, needed = asyncio.run(lengths(awaited(folder, model=Writer())))
    folder = folder_of(tmp_path, "0")
    while dies(work, after, prepare=prepare, file="chat.db"):
        kept = ConversationStore(folder / "chat.db")
        part, history = kept.newest_compaction("s"), kept.history("s")
        loaded = [stored.message for stored in kept.load("s")]
        assert [stored.message for stored in history] == messages[:needed]
        marked = sum(stored.is_compacted for stored in history)
        assert marked == (part.compacted_message_count if part else 0)
        assert len(loaded) == needed - marked + bool(part)
        assert not problems_of(CHAT, loaded)
        seen.append(bool(part))
        after += 1
        folder = folder_of(tmp_path, f"{after}")
    assert seen == sorted(seen)
    assert set(seen) == {False, True}
    assert (
        "Part 1."
        in ConversationStore(folder / "chat.db").newest_compaction("s").summary
    )


def test_what_is_ready_is_not_lost_where_the_row_could_not_be_written(
    tmp_path,
):
    async def run():
        model, messages = Writer(), histories.wire(CHAT, TURNS)
        async with awaited(tmp_path, model=model) as made:
            number = await until_begun(made, messages)
            await made.preparing
            with sqlite3.connect(tmp_path / "chat.db") as db:
                db.execute(
                    "CREATE TRIGGER no BEFORE UPDATE ON Messages "
                    "BEGIN SELECT RAISE(ABORT, 'not here'); END"
                )
            with pytest.raises(StoreError, match="mark_compacted"):
                await until_compacted(made, messages[number:])
            history, parts = rows(tmp_path)
            assert [message for message, _ in history] == messages[
                : len(history)
            ]
            assert parts == []
            with sqlite3.connect(tmp_path / "chat.db") as db:
                db.execute("DROP TRIGGER no")
            await made.fit(bare(CHAT))
            assert "Part 1." in made.compacted.summary
        assert len(model.asked) == 1

    asyncio.run(run())


class Pausing(ConversationStore):
    """Waits before an operation, for somebody who wants to do something meanwhile."""

    at = ""

    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        self.reached, self.go_on = threading.Event(), threading.Event()

    def _transaction(self, operation, begin):
        if operation == self.at:
            self.reached.set()
            self.go_on.wait(5)
        return super()._transaction(operation, begin)


async def cancelled_at(store, operation, work):
    """Cancel a task while its thread is at an operation of the store."""
    store.at = operation
    task = asyncio.create_task(work)
    assert await asyncio.to_thread(store.reached.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    store.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    store.at = ""


def test_a_fit_that_is_cancelled_while_it_writes_has_written(tmp_path):
    async def run():
        store = Pausing(tmp_path / "chat.db")
        made = AsyncConversation(store, "s", "gpt-4.1", limits=LIMITS)
        await made.append(histories.wire(CHAT, SHORT))
        await cancelled_at(store, "mark_compacted", made.fit(bare(CHAT)))
        assert len(rows(tmp_path)[1]) == 1
        view = await made.fit(bare(CHAT))
        assert view["messages"] == await made.messages
        assert len(summaries(CHAT, view["messages"])) == 1
        assert len(rows(tmp_path)[1]) == 1
        await made.close()

    asyncio.run(run())


def test_an_append_that_is_cancelled_has_happened(tmp_path):
    async def run():
        store = Pausing(tmp_path / "chat.db")
        made = AsyncConversation(store, "s", "gpt-4.1", limits=LIMITS)
        first, second, *_ = histories.wire(CHAT, SHORT)
        await made.append([first])
        assert await made.messages == [first]
        await cancelled_at(store, "append", made.append([second]))
        assert await made.messages == [first, second]
        await made.close()

    asyncio.run(run())


def test_a_history_that_cannot_be_read_beside_a_turn_disturbs_no_turn(
    tmp_path,
):
    class Failing(ConversationStore):
        fails = True

        def history(self, session):
            if self.fails:
                self.fails = False
                raise StoreError(
                    "conversations", "history", "the disk is asleep"
                )
            return super().history(session)

    async def run():
        model, messages = Writer(), histories.wire(CHAT, TURNS)
        store = Failing(tmp_path / "chat.db")
        made = AsyncConversation(
            store, "s", "gpt-4.1", limits=LIMITS, summariser=model
        )
        number = await until_begun(made, messages)
        await made.preparing
        view = await until_compacted(made, messages[number:])
        assert summaries(CHAT, view["messages"])
        assert model.asked == []
        await made.close()

    asyncio.run(run())


# ── a chat service on an event loop ──────────────────────────────────────────────────────


def test_a_chat_service_on_the_real_sdk_goes_on_from_the_boundary(
    serve, tmp_path
):
    steps = [
        Says(f"Step {n}.", [Asks("bash", {"command": f"run {n}"})])
        for n in range(24)
    ]
    server = serve(CHAT, [*steps, "Done."], strict=True)
    store = ConversationStore(tmp_path / "chat.db")

    async def turn(client, kept, said):
        await kept.append([{"role": "user", "content": said}])
        while True:
            reply = await client.chat.completions.create(
                **await kept.fit({"model": "gpt-4.1"})
            )
            await kept.session.observe(reply)
            message = reply.choices[0].message
            await kept.append([message])
            if not message.tool_calls:
                return message.content
            for call in message.tool_calls:
                result = {
                    "role": "tool",
                    "tool_call_id": call.id,
                    "content": LOG,
                }
                await kept.append([result])

    async def run():
        async with (
            openai.AsyncOpenAI(
                base_url=f"{server.url}/v1", api_key="x", max_retries=0
            ) as client,
            AsyncConversation(
                store, "s", "gpt-4.1", limits=LIMITS, store=MemoryStore()
            ) as kept,
        ):
            assert await turn(client, kept, "Go.") == "Done."
            return await kept.messages

    messages = asyncio.run(run())
    assert messages[0]["content"].startswith(
        "[Previous conversation compacted]"
    )
    assert "Go." in messages[0]["content"]
    assert len(server.requests) == 25
    assert len(store.history("s")) == 50
    again = opened(tmp_path, CHAT).messages
    assert (again[0], len(again)) == (messages[0], len(messages))
