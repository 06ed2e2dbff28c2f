"""One scenario for all frameworks: an agent looks into cupboards, and what must come of it.

    class TestScenario(Scenario):
        driver = process            # a module of the framework

A driver runs real agents of its framework, with its own test model and on its own persistence:

Process(folder, **settings)   an application: one adapter, for conversations kept in the folder
    say(script, text, name, stream=, inner=)   a turn of one; None where it waits for a signature
    sign(script, name)        lets it go on after that
    stored(name)              its messages, as the framework kept them
    taken                     names of tools of the user's that its agents have from now on
    ullage                    the adapter
    close()
Script(steps, model)          the test model: ``sent`` and ``asked`` are what it was given
calls, says, recalls, too_long       its steps, and `Hang`
items(messages)               messages as `Item`
offered(asked)                the names of the tools of a request
faults(sent)                  what of a request its provider would refuse
forbids(asked)                whether tools were forbidden; None where the framework cannot
TOO_LONG, SPENT               the errors of a request too long and of a spent budget
BINDS                         a model that binds its reasoning to what stands before it; None
                              where its providers take reasoning that has lost it
STREAMS_TELL_USAGE            whether its test model reports usage with a stream
"""

import asyncio
import shutil
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from tests.integrations.outputs import (
    GREP,
    NEEDLE,
    big,
    names_in,
    page,
    refs_in,
)
from ullage import Budget, Limits
from ullage.session.aio import AsyncSession
from ullage.session.session import Session

GO = "Find the needle."
SMALL = Limits(window_tokens=16_000, output_reserve_tokens=1_000)
OURS = [GREP, f"ullage_{GREP}", f"ullage2_{GREP}"]
"""The names that a recall tool may have, the one that is free."""


class Item(NamedTuple):
    """A message, of any framework.

    Attributes:
        role: "user", "assistant", "tool", "system".
        text: all that it says, results left out.
        calls: the ids of the calls in it.
        results: id and text of each result in it.
        thoughts: how many blocks of reasoning are in it.
    """

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    thoughts: int = 0


class Hang:
    """A step at which a model never answers."""

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def forever(self) -> None:
        """Tell that it began, and wait."""
        self.began.set()
        await asyncio.sleep(3_600)


def results(items):
    """What tools gave, in order."""
    return [text for item in items for _, text in item.results]


def text_of(items):
    """All that is said, and all that tools gave."""
    return "\n".join([*(item.text for item in items), *results(items)])


def is_paired(items):
    """Whether each call is answered once, before anything else is said."""
    waiting, was_call = set(), False
    for item in items:
        answered = {id_ for id_, _ in item.results}
        if not answered <= waiting:
            return False
        waiting -= answered
        if waiting and not was_call and not answered:
            return False
        waiting |= set(item.calls)
        was_call = bool(item.calls)
    return not waiting


class Scenario:
    """The scenario; a test class of each framework inherits it."""

    driver: Any
    name_at_last = GREP
    """Of the recall tool, once the user's tool of this name is gone again."""

    def process(self, folder, **settings):
        return self.driver.Process(folder, **settings)

    def script(self, *steps, model="gpt-5.2"):
        return self.driver.Script(list(steps), model)

    def two_looks(self):
        w = self.driver
        both = w.calls(("look", {"n": 1}), ("look", {"n": 2}))
        return [both, w.recalls, w.says("In the fourth drawer.", read=700)]

    def turns(self, count, **more):
        return [
            self.driver.calls(("turn", {"n": n}), **more)
            for n in range(1, count + 1)
        ]

    def sent(self, script):
        return [self.driver.items(messages) for messages in script.sent]

    def check_two_looks(self, said, stored, script):
        assert said.strip() == "In the fourth drawer."
        given = results(self.driver.items(stored))
        assert sorted(given[:2]) == [big(1), big(2)]
        assert f"{NEEDLE} of cupboard" in given[2]
        assert len(text_of(self.sent(script)[1])) < 20_000

    @pytest.mark.parametrize(
        "stream", [False, True], ids=["whole", "streamed"]
    )
    def test_two_large_results_at_once_and_a_recall(self, tmp_path, stream):
        budget, script = Budget(tokens=0), self.script(*self.two_looks())

        async def main():
            process = self.process(tmp_path, budget=budget)
            said = await process.say(script, GO, stream=stream)
            stored = await process.stored()
            await process.close()
            return said, stored

        said, stored = asyncio.run(main())
        self.check_two_looks(said, stored, script)
        spent = budget.spent
        assert spent.calls == 3
        if not stream or self.driver.STREAMS_TELL_USAGE:
            assert spent.usage.input_tokens == 3_000
            assert spent.usage.cache_read_tokens == 700

    def test_a_long_run_is_legal_shares_its_prefix_and_is_stored_whole(
        self, tmp_path
    ):
        steps = [*self.turns(100), self.driver.says("Done.")]
        script = self.script(*steps, model="claude-opus-4-5")

        async def main():
            process = self.process(tmp_path, limits=SMALL)
            await process.say(script, GO)
            stored = await process.stored()
            await process.close()
            return stored

        stored = asyncio.run(main())
        assert results(self.driver.items(stored)) == [
            page(n) for n in range(1, 101)
        ]
        sent = self.sent(script)
        assert len(sent) == 101
        kept = 0
        for before, after in pairwise(sent):
            assert len(text_of(after)) / 3 < 16_000
            assert is_paired(after)
            kept += after[: len(before)] == before
        assert kept > 70
        assert not [
            fault
            for each in script.sent[::10]
            for fault in self.driver.faults(each)
        ]

    def test_what_is_not_touched_is_the_very_object_that_was_given(
        self, tmp_path, monkeypatch
    ):
        given, script = (
            [],
            self.script(*self.turns(30), self.driver.says("Done.")),
        )
        for kind in (Session, AsyncSession):
            monkeypatch.setattr(kind, "fit", _spied(kind.fit, given))

        async def main():
            process = self.process(tmp_path, limits=SMALL)
            await process.say(script, GO)
            await process.close()

        asyncio.run(main())
        same = 0
        for asked, sent in zip(given, script.sent, strict=True):
            whole = {id(message) for message in asked}
            same += sum(id(message) in whole for message in sent)
            if len(asked) == len(
                sent
            ):  # nothing is condensed: what differs was edited
                for was, now in zip(asked, sent, strict=True):
                    assert was is now or self.driver.items(
                        [was]
                    ) != self.driver.items([now])
        assert {*map(id, given[2])} <= {
            *map(id, script.sent[2])
        }  # a system message may be added
        assert same > len(given) * 4

    def test_a_request_that_is_refused_once_is_cut_deeper(self, tmp_path):
        steps = [
            *self.turns(12),
            self.driver.too_long(),
            self.driver.says("Done."),
        ]
        budget, script = Budget(tokens=0), self.script(*steps)

        async def main():
            process = self.process(tmp_path, limits=SMALL, budget=budget)
            said = await process.say(script, GO)
            stored = await process.stored()
            await process.close()
            return said, stored

        said, stored = asyncio.run(main())
        assert said.strip() == "Done."
        sent = self.sent(script)
        assert len(text_of(sent[13])) < len(text_of(sent[12])) * 0.8
        assert results(self.driver.items(stored)) == [
            page(n) for n in range(1, 13)
        ]
        assert budget.spent.calls == 13

    def test_what_is_refused_for_ever_comes_out_as_the_frameworks_error(
        self, tmp_path
    ):
        budget = Budget(tokens=1_000_000)
        script = self.script(
            *self.turns(2), *[self.driver.too_long() for _ in range(9)]
        )

        async def main():
            process = self.process(tmp_path, budget=budget)
            with pytest.raises(self.driver.TOO_LONG, match="too long"):
                await process.say(script, GO)
            await process.close()

        asyncio.run(main())
        assert len(script.sent) <= 5
        assert budget.reserved.tokens == 0
        assert budget.spent.calls == 2

    def test_any_other_error_comes_out_at_once(self, tmp_path):
        budget, script = (
            Budget(tokens=1_000_000),
            self.script(ValueError("no such key")),
        )

        async def main():
            process = self.process(tmp_path, budget=budget)
            with pytest.raises(ValueError, match="no such key"):
                await process.say(script, GO)
            await process.close()

        asyncio.run(main())
        assert len(script.sent) == 1
        assert budget.reserved.tokens == 0

    def test_a_restart_shows_what_the_process_before_would_have_shown(
        self, tmp_path
    ):
        warm = self.script(
            *self.turns(50), *map(self.driver.says, ("Nothing.", "No."))
        )
        cold = self.script(self.driver.says("No."))

        async def main():
            first = self.process(tmp_path / "a", limits=SMALL)
            await first.say(warm, GO)
            shutil.copytree(tmp_path / "a", tmp_path / "b")
            await first.say(warm, "And now?")
            await first.close()
            second = self.process(tmp_path / "b", limits=SMALL)
            await second.say(cold, "And now?")
            await second.close()

        (tmp_path / "a").mkdir()
        asyncio.run(main())
        before, after = self.sent(warm)[-1], self.sent(cold)[0]
        assert after == before
        assert "[ullage" in text_of(after)

    def test_a_run_that_waits_for_a_signature_goes_on_in_another_process(
        self, tmp_path
    ):
        w = self.driver
        first = self.script(
            w.calls(("look", {"n": 1})), w.calls(("sign", {"n": 2}))
        )
        second = self.script(w.recalls, w.says("In the fourth drawer."))

        async def main():
            process = self.process(tmp_path)
            assert await process.say(first, GO) is None
            await process.close()
            process = self.process(tmp_path)
            said = await process.sign(second)
            stored = await process.stored()
            await process.close()
            return said, stored

        said, stored = asyncio.run(main())
        assert said.strip() == "In the fourth drawer."
        given = results(w.items(stored))
        assert given[:2] == [big(1), "Signed: 2."]
        assert f"{NEEDLE} of cupboard 1\n" in given[2]
        before, after = self.sent(first)[-1], self.sent(second)[0]
        assert after[: len(before)] == before

    def test_twelve_conversations_at_once_and_none_opens_what_is_anothers(
        self, tmp_path
    ):
        w = self.driver

        async def main():
            process = self.process(tmp_path)

            async def talk(n):
                look = w.calls(("look", {"n": n}))
                script = self.script(
                    look, w.recalls, w.says("Done."), w.recalls, w.says("Yes.")
                )
                await process.say(script, GO, str(n))
                await asyncio.sleep(0)
                await process.say(script, "Sure?", str(n))
                return script

            scripts = await asyncio.gather(*map(talk, range(12)))
            stored = [w.items(await process.stored(str(n))) for n in range(12)]
            (ref,) = set(refs_in(text_of(self.sent(scripts[0])[1]))[-1:])
            steals = w.calls(
                (GREP, {"tool_call_id": ref, "pattern": "needle"})
            )
            await process.say(self.script(steals, w.says("No.")), GO, "thief")
            stolen = w.items(await process.stored("thief"))
            await process.close()
            return stored, stolen

        stored, stolen = asyncio.run(main())
        for n, items in enumerate(stored):
            whole, *found = results(items)
            assert whole == big(n)
            assert all(f"{NEEDLE} of cupboard {n}\n" in each for each in found)
            assert len(found) == 2
        assert "nothing is kept under" in results(stolen)[0]

    def test_an_agent_within_an_agent_has_a_conversation_of_its_own(
        self, tmp_path
    ):
        w = self.driver
        inner = self.script(*self.two_looks())
        outer = self.script(
            w.calls(("ask", {"request": "Where?"})), w.says("Found.")
        )

        async def main():
            process = self.process(tmp_path)
            said = await process.say(outer, GO, inner=inner)
            stored = await process.stored()
            await process.close()
            return said, stored

        said, stored = asyncio.run(main())
        assert said.strip() == "Found."
        assert "In the fourth drawer." in results(w.items(stored))[0]
        assert NEEDLE in text_of(self.sent(inner)[2])
        assert len(text_of(self.sent(inner)[2])) < 40_000
        assert NEEDLE not in text_of(self.sent(outer)[1])

    def test_reasoning_that_is_bound_stands_upon_what_it_was_thought_upon(
        self, tmp_path
    ):
        """What is sent before a thought is what it was thought upon, to the byte, or it is out."""
        thought = self.turns(30, thought="A page.")
        model = self.driver.BINDS or "gpt-5.2"
        script = self.script(*thought, self.driver.says("Done."), model=model)

        async def main():
            process = self.process(tmp_path, limits=SMALL)
            await process.say(script, GO)
            stored = await process.stored()
            await process.close()
            return stored

        stored = asyncio.run(main())
        assert sum(item.thoughts for item in self.driver.items(stored)) == 30
        assert not [
            fault for each in script.sent for fault in self.driver.faults(each)
        ]
        sent = self.sent(script)
        for items in sent if self.driver.BINDS else ():
            for at, item in enumerate(items):
                assert not item.thoughts or items[:at] in sent
        counts = {sum(item.thoughts for item in items) for items in sent[15:]}
        assert max(counts) < 30
        assert len(counts) > 1  # they go in batches, and new ones stay

    def test_the_last_request_of_a_budget_forbids_tools_and_the_next_is_refused(
        self, tmp_path
    ):
        budget = Budget(tokens=4_000)
        steps = [
            *self.turns(4),
            self.driver.says("That is all."),
            self.driver.says("More."),
        ]
        script = self.script(*steps)

        async def main():
            process = self.process(tmp_path, budget=budget, limits=SMALL)
            said = await process.say(script, GO)
            with pytest.raises(self.driver.SPENT, match="budget"):
                await process.say(script, "More?")
            await process.close()
            return said

        assert asyncio.run(main()).strip() == "That is all."
        assert len(script.sent) == 5
        *earlier, last = map(self.driver.forbids, script.asked)
        assert last in (True, None)
        assert last is None or not any(earlier)
        assert budget.allowance.words in text_of(self.sent(script)[-1])

    @pytest.mark.parametrize(
        "stream", [False, True], ids=["whole", "streamed"]
    )
    def test_a_run_that_is_cancelled_claims_nothing_and_can_go_on(
        self, tmp_path, stream
    ):
        budget, hang = Budget(tokens=1_000_000), Hang()
        script = self.script(self.driver.calls(("look", {"n": 1})), hang)
        again = self.script(self.driver.says("Done."))

        async def main():
            process = self.process(tmp_path, budget=budget)
            run = asyncio.ensure_future(process.say(script, GO, stream=stream))
            await asyncio.wait_for(hang.began.wait(), 60)
            assert budget.reserved.tokens > 0
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            assert budget.reserved.tokens == 0
            said = await process.say(again, "Go on.")
            await process.close()
            return said

        assert asyncio.run(main()).strip() == "Done."
        assert is_paired(self.sent(again)[0])
        assert budget.spent.calls == 2

    # ── names ────────────────────────────────────────────────────────────────────────

    def search(self, given):
        """A reply that searches under the name that the last notice gives."""
        text = text_of(self.driver.items(getattr(given, "input", given)))
        arguments = {"tool_call_id": refs_in(text)[-1], "pattern": "needle"}
        return self.driver.calls((names_in(text)[-1], arguments))

    def names(self, script):
        """The names of the tools of each request."""
        return [self.driver.offered(asked) for asked in script.asked]

    @pytest.mark.parametrize("taken", [OURS[:1], OURS[:2]], ids=len)
    def test_a_tool_of_the_users_keeps_its_name_and_ours_opens_all_the_same(
        self, tmp_path, taken
    ):
        w, ours = self.driver, OURS[len(taken)]
        script = self.script(
            w.calls(("look", {"n": 1})),
            self.search,
            w.calls((GREP, {"chapter": "two"})),
            w.says("In the fourth drawer."),
        )

        async def main():
            process = self.process(tmp_path)
            process.taken = taken
            await process.say(script, GO)
            stored = await process.stored()
            await process.close()
            return results(w.items(stored))

        _, found, told = asyncio.run(main())
        for names in self.names(script):
            recall_tools = [name for name in names if name.endswith(GREP)]
            assert sorted(recall_tools) == sorted([*taken, ours])
        assert set(names_in(text_of(self.sent(script)[1]))) == {ours}
        assert NEEDLE in found
        assert told == "And then, in two, it rained."

    def test_a_name_that_the_user_takes_under_way_renames_ours_and_back(
        self, tmp_path
    ):
        w, first = self.driver, self.driver.calls(("look", {"n": 1}))
        scripts = [
            self.script(first, self.search, w.says("There.")),
            self.script(self.search, w.says("There.")),
            self.script(self.search, w.says("There.")),
        ]

        async def main():
            process = self.process(tmp_path)
            for script, taken in zip(scripts, ([], [GREP], []), strict=True):
                process.taken = taken
                await process.say(script, GO)
            stored = await process.stored()
            await process.close()
            return results(w.items(stored))

        _, *found = asyncio.run(main())
        assert [NEEDLE in page for page in found] == [True, True, True]
        names = [GREP, OURS[1], self.name_at_last]
        searched = zip(scripts, names, [1, 0, 0], strict=True)
        for script, ours, at in searched:
            assert ours in self.names(script)[at]
            assert names_in(text_of(self.sent(script)[at]))[-1] == ours

    def test_where_the_user_has_every_name_no_notice_names_a_tool_of_the_users(
        self, tmp_path
    ):
        w = self.driver
        script = self.script(
            w.calls(("look", {"n": 1})), w.says("I have read it.")
        )

        async def main():
            process = self.process(tmp_path)
            process.taken = OURS
            await process.say(script, GO)
            ullage = process.ullage
            awaited = getattr(ullage, "asessions", ullage.sessions)
            sessions = {*ullage.sessions.find(), *awaited.find()}
            await process.close()
            return sessions

        sessions = asyncio.run(main())
        for names in self.names(script):
            assert len(names) == len(set(names))
        named = set(names_in(text_of(self.sent(script)[1])))
        assert not named & set(OURS)
        told = [event.why for s in sessions for event in s.events]
        assert named or any("recall is off" in why for why in told)

    def test_with_recall_off_the_model_is_shown_none_of_our_tools(
        self, tmp_path
    ):
        w = self.driver
        script = self.script(
            w.calls(("look", {"n": 1})), w.says("I have read it.")
        )

        async def main():
            process = self.process(tmp_path, recall=False)
            await process.say(script, GO)
            await process.close()

        asyncio.run(main())
        shown = self.names(script)
        assert len(shown) == 2
        for names in shown:
            assert "look" in names
            assert not set(names) & set(OURS)
        assert big(1) in text_of(self.sent(script)[1])

    def test_what_was_saved_is_told_by_the_adapter(self, tmp_path):
        script = self.script(*self.two_looks())

        async def main():
            process = self.process(tmp_path)
            await process.say(script, GO)
            saved = process.ullage.saved
            await process.close()
            return saved

        saved = asyncio.run(main())
        assert saved.requests == 3
        assert saved.sent.prompt == 3_000
        assert saved.raw.prompt > saved.sent.prompt, str(saved)
        assert saved.saved_usd > 0


def _spied(fit, given):
    """`fit`, which also tells what it was given."""

    def spy(self, request, **more):
        given.append(
            list(
                next(
                    v
                    for k in ("messages", "input", "contents")
                    if (v := request.get(k))
                )
            )
        )
        return fit(self, request, **more)

    return spy
