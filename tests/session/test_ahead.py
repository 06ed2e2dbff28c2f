"""Compaction beside the turns of an event loop: ready before it is needed."""

import asyncio
import threading

import pytest
from msgspec.structs import replace

from lab import reading
from tests import histories
from tests.histories import Call, Turn
from ullage import (
    AsyncSession,
    Limits,
    MemoryStore,
    Session,
    StoreError,
    summarise,
)
from ullage.core.values.effects import Reply
from ullage.core.values.usage import Usage
from ullage.policy import DEFAULT
from ullage.session.ahead import proposing
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

LIMITS = Limits(window_tokens=20_000, output_reserve_tokens=1_000)


def steps(words):
    return [
        Turn(said=f"Step {n}. {words}", calls=(Call("bash", f"{n}", "ok"),))
        for n in range(100)
    ]


TURNS = steps("I think about it. " * 40)
LONG = steps("international communication infrastructure " * 24)
"""Words of more than four characters a token, so that a rough estimate is reached first."""
KINDS = {
    "prose": steps("international communication infrastructure " * 48),
    "code": steps("    self.x1 = f(a[1], b={'k2': 7}); " * 24),
    "json": steps('{"id":7919,"v":[1,2],"ok":true},' * 24),
    "numbers": steps("18273 99182 10293 " * 40),
    "chinese": steps("请检查日志并修复加载程序中的错误。" * 20),
}
"""Text of more than four characters a token, and of fewer: then our own count is reached first."""
FULLER = steps("I think about it. " * 100)
"""The window is full before so many calls were made that a record would be due."""
GOOD = "<summary>The loader is next.</summary>"


class Model:
    """A summariser that answers when it may."""

    def __init__(self, text=GOOD):
        self.text, self.asked, self.may = text, [], asyncio.Event()

    async def __call__(self, question):
        self.asked.append(question)
        await self.may.wait()
        return Reply(
            text=self.text, usage=Usage(fresh_tokens=1_000), model="gpt-4.1"
        )


def session(model, format="openai-chat", **more):
    return AsyncSession(
        "", format=format, limits=LIMITS, summariser=model, **more
    )


def requests(format="openai-chat", turns=TURNS):
    """The requests of a conversation, one for each turn."""
    messages = histories.wire(format, turns)
    step = (len(messages) - 1) // len(turns)
    ends = range(1 + step, len(messages) + 1, step)
    return [histories.request(format, messages[:end]) for end in ends]


def kinds(made, kind):
    return [event for event in made.events if event.kind == kind]


async def until_begun(made, asked):
    """Live on until a compaction is under way; returns the number of the next request."""
    for number, request in enumerate(asked, 1):
        await made.fit(request)
        if made.preparing is not None:
            await asyncio.sleep(0)
            return number
        await made.observe(Usage(fresh_tokens=made.window.estimate))
    raise AssertionError("nothing was begun")


@pytest.mark.says(
    "three-layer-management",
    "Performance Considerations",
    "**Async Compaction**: Run compaction in background when possible",
    lives="ullage.session.ahead.PendingCompaction",
)
@pytest.mark.parametrize("policy", ["default", "three_layer", "output_cache"])
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_it_is_begun_before_it_is_needed_and_the_next_request_shows_it(
    format, policy
):
    async def run():
        text = "## Conversation Summary\n### Context\n### Key Decisions\n### Changes Made\n"
        model = Model(
            f"<summary>{text}### Current State\nThe loader is next.</summary>"
        )
        made = session(model, format, policy=policy)
        asked = requests(format, LONG if policy == "three_layer" else TURNS)
        number = await until_begun(made, asked)
        view = await made.fit(asked[number])  # nobody waits for it
        assert not kinds(made, "compacted")
        assert len(FORMATS[format].history(view)) == len(
            FORMATS[format].history(asked[number])
        )
        model.may.set()
        await made.preparing
        view = await made.fit(asked[number + 1])
        assert (
            len(kinds(made, "compacted")) == len(kinds(made, "preparing")) == 1
        )
        assert "The loader is next." in "\n".join(
            reading.visible(FORMATS[format].history(view))
        )
        assert not problems_of(format, FORMATS[format].history(view))
        assert (
            FORMATS[format].history(view)[-1]
            is FORMATS[format].history(asked[number + 1])[-1]
        )
        for request in asked[number + 2 : number + 6]:
            await made.fit(request)
        assert (len(model.asked), made.preparing) == (1, None)
        assert made.usage == made.budget.spent.usage
        assert made.budget.calls[-1].usage == Usage(fresh_tokens=1_000)

    asyncio.run(run())


@pytest.mark.says(
    "three-layer-management",
    "Performance Considerations",
    "**Async Compaction**: Run compaction in background when possible",
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["three_layer", "output_cache"])
def test_it_is_begun_ahead_whatever_the_text_is(policy, kind):
    async def run():
        text = "## Conversation Summary\n### Context\n### Key Decisions\n### Changes Made\n"
        model = Model(
            f"<summary>{text}### Current State\nThe loader is next.</summary>"
        )
        made, asked = (
            session(model, policy=policy),
            requests(turns=KINDS[kind]),
        )
        number = await until_begun(made, asked)
        assert not kinds(made, "compacted")
        model.may.set()
        await made.preparing
        view = await made.fit(asked[number])
        assert "The loader is next." in str(view)
        assert len(model.asked) == len(kinds(made, "compacted")) == 1

    asyncio.run(run())


def test_nothing_is_begun_by_our_count_while_pruning_can_win_enough():
    """Layer 2 comes before layer 3: where old outputs can go, no model is asked."""
    dense = '{"id":7919,"v":[1,2],"ok":true},\n'
    turns = [
        Turn(calls=(Call("look", f"{n}", f"{n} {dense * 250}"),))
        for n in range(40)
    ]

    async def run():
        model = Model()
        made = session(model, policy="three_layer")
        for request in requests(turns=turns):
            await made.fit(request)
            if kinds(made, "pruned"):
                break
            assert made.preparing is None
        assert kinds(made, "pruned")
        assert model.asked == []
        await made.close()

    asyncio.run(run())


def test_one_that_is_needed_while_it_is_under_way_is_waited_for_and_not_asked_for_again():
    async def run():
        model = Model()
        made, asked = session(model), requests(turns=FULLER)
        number = await until_begun(made, asked)
        waits, ask = asyncio.Event(), made._summaries.aask

        async def asking(question):
            waits.set()
            return await ask(question)

        made._summaries.aask = asking
        for request in asked[number:]:
            needed = asyncio.create_task(made.fit(request))
            waiting = asyncio.create_task(waits.wait())
            await asyncio.wait(
                (needed, waiting), return_when=asyncio.FIRST_COMPLETED
            )
            if waits.is_set():
                break
            waiting.cancel()
        assert not needed.done()
        model.may.set()
        view = await needed
        assert len(model.asked) == 1
        assert "> The loader is next." in str(view)
        assert view["messages"][-1] is request["messages"][-1]
        assert await made.compact(request)
        assert len(model.asked) == 2

    asyncio.run(run())


def test_it_can_be_cancelled_and_leaves_nothing():
    async def run():
        model = Model()
        made, asked = session(model), requests()
        number = await until_begun(made, asked)
        made.preparing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await made.preparing
        assert made.preparing is None
        assert (await made.fit(asked[number - 1])) == asked[number - 1]
        task = made.preparing  # it is over the threshold still
        await made.close()
        assert task.cancelled()
        assert not kinds(made, "compacted")

    asyncio.run(run())


def test_it_is_shown_in_no_history_but_its_own():
    async def run():
        model, store = Model(), MemoryStore()
        made, asked = session(model, store=store), requests()
        number = await until_begun(made, asked)
        model.may.set()
        await made.preparing
        other = requests(
            turns=[
                Turn(user="Something else.", said="Well. " * 90)
                for _ in range(9)
            ]
        )
        assert await made.fit(other[-1]) == other[-1]
        early = asked[3]
        assert await made.fit(early) == early  # rewound to before it
        view = await made.fit(asked[number])
        assert "> The loader is next." in str(view)
        assert len(model.asked) == 1
        worker = session(Model(), store=store)
        assert await worker.fit(asked[number]) == view
        assert len(kinds(worker, "preparing")) == 0

    asyncio.run(run())


def test_it_is_not_lost_where_the_store_then_failed():
    class Failing(MemoryStore):
        fails = True

        def commit(self, *given):
            if self.fails and any(
                record.kind == "batch" for record in given[2]
            ):
                self.fails = False
                raise StoreError("memory", "commit", "the disk is full")
            return super().commit(*given)

    async def run():
        model = Model()
        made, asked = session(model, store=Failing()), requests()
        number = await until_begun(made, asked)
        model.may.set()
        await made.preparing
        with pytest.raises(StoreError):
            await made.fit(asked[number])
        assert "> The loader is next." in str(await made.fit(asked[number]))
        assert len(model.asked) == 1

    asyncio.run(run())


def test_words_that_are_refused_leave_the_deterministic_summary():
    async def run():
        model = Model("no tags")
        made, asked = session(model), requests()
        number = await until_begun(made, asked)
        model.may.set()
        await made.preparing
        view = await made.fit(asked[number])
        assert "no <summary>" in kinds(made, "summary_refused")[0].why
        assert "summarised here" in str(view["messages"][1])
        assert len(model.asked) == 2  # once, and once more with the reason

    asyncio.run(run())


def test_a_session_that_is_not_async_begins_nothing():
    asked = []
    made = Session(
        "gpt-4.1",
        limits=LIMITS,
        summariser=lambda question: asked.append(question),
    )
    for request in requests()[:40]:
        made.fit(request)
    assert made.settings.policy.ahead is not None
    assert not kinds(made, "preparing")


def test_a_policy_of_which_nothing_is_begun_is_the_very_same():
    assert proposing(DEFAULT, ()) is DEFAULT


def test_what_goes_wrong_in_the_task_is_raised_and_not_swallowed():
    async def wrong(question):
        raise AssertionError("ours")

    async def run():
        made, asked = session(Model()), requests()
        made._summaries.aask = wrong
        number = await until_begun(made, asked)
        with pytest.raises(AssertionError, match="ours"):
            await made.fit(asked[number])

    asyncio.run(run())


# ── where no turn waits ──────────────────────────────────────────────────────────────────


def unwaited(model, **more):
    """A summariser that no turn waits for."""
    return replace(summarise.of(model), waits=False, **more)


def test_where_no_turn_waits_the_conversation_goes_on_and_what_is_late_is_dropped():
    async def run():
        model = Model()
        made, asked = session(unwaited(model)), requests(turns=FULLER)
        number = await until_begun(made, asked)
        for request in asked[number : number + 12]:
            view = await made.fit(request)  # the model has not answered
        assert not model.may.is_set()
        assert kinds(made, "compacted")
        assert not kinds(made, "summary_refused")
        assert "summarised here" in str(view)
        assert "The loader is next." not in str(view)
        model.may.set()
        if made.preparing is not None:
            await made.preparing
        later = await made.fit(asked[number + 12])
        size = len(view["messages"]) - 1
        assert later["messages"][:size] == view["messages"][:size]

    asyncio.run(run())


def test_one_that_is_there_in_time_is_shown_and_its_cost_is_counted_at_once():
    async def run():
        model = Model()
        made, asked = session(unwaited(model)), requests()
        number = await until_begun(made, asked)
        view = await made.fit(asked[number])
        model.may.set()
        await made.preparing
        await asyncio.sleep(0)
        assert made.usage == made.budget.spent.usage
        assert made.budget.calls[-1].usage == Usage(fresh_tokens=1_000)
        view = await made.fit(asked[number + 1])
        assert "> The loader is next." in str(view)
        other = {"role": "user", "content": "Do it otherwise."}
        messages = [*asked[number + 1]["messages"], other]
        # a fork has the same past
        view = await made.fit({**asked[number], "messages": messages})
        assert "> The loader is next." in str(view)
        changed = requests(turns=FULLER)[number]  # and no other history
        assert "The loader is next." not in str(await made.fit(changed))
        assert len(model.asked) == 1

    asyncio.run(run())


def test_nobody_is_asked_where_nobody_may_be():
    async def run():
        model, may = Model(), []
        writer = unwaited(model, may_ask=lambda: bool(may))
        made, asked = session(writer), requests()
        number = await until_begun(session(Model()), asked)
        for request in asked[:number]:
            await made.fit(request)
        assert not kinds(made, "preparing")
        may.append(1)
        await made.fit(asked[number])
        assert made.preparing is not None
        await made.close()
        assert made.preparing is None

    asyncio.run(run())


def test_a_session_for_threads_begins_one_beside_its_turns_and_waits_for_none():
    may, asked_of = threading.Event(), []

    def model(question):
        asked_of.append(question)
        may.wait(30)
        return Reply(
            text=GOOD, usage=Usage(fresh_tokens=1_000), model="gpt-4.1"
        )

    made = Session(
        "",
        format="openai-chat",
        limits=LIMITS,
        summariser=unwaited(model),
    )
    asked = iter(requests())
    for request in asked:
        made.fit(request)
        if made.preparing is not None:
            break
        made.observe(Usage(fresh_tokens=made.window.estimate))
    made.fit(next(asked))
    assert len(kinds(made, "preparing")) == 1
    task = made.preparing
    may.set()
    task.result(30)
    view = made.fit(next(asked))
    assert "> The loader is next." in str(view)
    assert len(asked_of) == 1
    assert made.usage.fresh_tokens >= 1_000
    made.close()
    assert made.preparing is None
