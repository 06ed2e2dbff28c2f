"""A world with one session in it, and everything that may be done to its history.

The state machine and the stream both drive it. `World.fit` is the judge: after each view it
compares with sessions that remember nothing, and with what was sent before.
"""

import asyncio
import copy
import json
from collections import Counter

from msgspec.structs import replace

from lab import reading
from tests import histories
from ullage import AsyncSession, Limits, MemoryStore, Session, Usage
from ullage.core.turn.rendering import groups, layout
from ullage.stores.threaded import Threaded
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of

FORMAT_NAMES = ("anthropic", "openai-chat")
OLD_WIRES = (*FORMAT_NAMES, "openai-responses", "gemini")
MODEL = {name: histories.MODEL[name] for name in OLD_WIRES}
ONE_REPLY = ("openai-responses", "gemini")
"""Wires on which what a model says twice in a row is one reply."""
REWRITES = {"pruned", "condensed", "compacted", "cut"}


def as_bytes(value):
    return json.dumps(value)


def recount(session, view):
    """Tokens of a view, counted from its own bytes.

    A window counts each summary as a message of its own, also where the wire wants turns and it
    goes into one of the user's: which that is, is known only when the view is written.
    """
    window, wire = session.window, FORMATS[session.state.format]
    meter, total = window.meter, window.head_tokens
    raws = view[wire.key][len(wire.leading(view)) :]
    if wire.wants_turns(window.meter.model):
        total += meter.overhead.message * (len(layout(window)) - len(raws))
    for raw in raws:
        message = wire.parse(raw, "view")
        total += meter.framing(message)
        for part in message.parts:
            items = getattr(part, "content", None)
            total += sum(
                meter.leaf(leaf)
                for leaf in (items if items is not None else (part,))
            )
    return total


class World:
    """One session, one or two branches of one history, and what was sent so far."""

    def __init__(
        self, format, window, store=None, *, reuse_ids=False, provider=(1.0, 0)
    ):
        self.format = format
        self.key = FORMATS[format].key
        self.provider = provider
        self.limits = Limits(window_tokens=window)
        self.path = store
        self.reuse_ids = reuse_ids
        self.clock = None
        self.turns = 0
        self.is_answered = False
        self.messages = histories.wire(format, [])
        self.other = None
        self.previous = None
        self.grown = True
        self.sent = {}
        self.kinds = set()
        self.session = self.new_session(store=store)

    # ── sessions ─────────────────────────────────────────────────────────────────────

    def new_session(self, **more):
        return Session(
            MODEL[self.format],
            limits=self.limits,
            format=self.format,
            recall=True,
            **more,
        )

    def request(self):
        messages = [*self.leading(), *self.messages]
        request = histories.request(self.format, messages)
        if self.format == "anthropic" and self.clock is not None:
            request["system"] = (
                f"You are an agent. It is {self.clock} o'clock."
            )
        return request

    def leading(self):
        if self.format != "openai-chat" or self.clock is None:
            return []
        return [
            {
                "role": "system",
                "content": f"You are an agent. It is {self.clock} o'clock.",
            }
        ]

    def drop_memo(self):
        self.session._state = replace(self.session._state, cache=None)

    def restart(self):
        """Another process: with a file, it knows what the file holds; else the state."""
        if self.path is None:
            self.session = self.new_session(
                store=self.session.store, state=self.session.state
            )
        else:
            self.session.close()
            self.session = self.new_session(store=self.path)

    def close(self):
        self.session.close()

    # ── what callers do to a history ─────────────────────────────────────────────────

    def append(self, turn):
        self.turns += 1
        if self.is_answered and turn.user is None:
            turn = replace(turn, user="Go on.")
        self.is_answered = self.format in ONE_REPLY and not turn.calls
        more = histories.wire(
            self.format, [turn], reuse_ids=self.reuse_ids, start=self.turns
        )
        self.messages += more

    def say(self, text):
        """A longer tail in the same turn."""
        self.messages.append({"role": "user", "content": text})

    def rewind(self, length):
        self.messages = self.messages[: max(1, length)]
        self.grown = False

    def branch(self):
        """Leave this branch where it is, and go on with the other one."""
        other = self.other if self.other is not None else list(self.messages)
        self.messages, self.other = other, self.messages
        self.grown = False

    def replace_by_a_copy(self, index):
        index %= len(self.messages)
        self.messages[index] = copy.deepcopy(self.messages[index])

    def respell(self, index):
        """Write the arguments of calls otherwise: the same JSON in other bytes."""
        message = self.messages[index % len(self.messages)]
        for call in message.get("tool_calls") or ():
            spaced = json.dumps(
                json.loads(call["function"]["arguments"]), indent=2
            )
            call["function"]["arguments"] = spaced
            self.grown = False
        for block in (
            message["content"] if isinstance(message["content"], list) else ()
        ):
            if "input" in block:
                block["input"] = dict(reversed(block["input"].items()))
                self.grown = False

    def rewrite(self, index, text):
        """Change what a message says, in place."""
        self.grown = False
        message = self.messages[index % len(self.messages)]
        content = message["content"]
        block = content[0] if isinstance(content, list) and content else None
        if block is None:
            if content is not None:
                message["content"] = text
        elif block["type"] == "tool_result":
            block["content"] = text
        elif block["type"] == "text":
            block["text"] = text

    def append_block(self, index, text):
        self.grown = False
        message = self.messages[index % len(self.messages)]
        if (
            isinstance(message["content"], list)
            and message["role"] != "assistant"
        ):
            message["content"].append({"type": "text", "text": text})

    def think(self, index):
        """Drop the reasoning of a message, or put it there: clients do."""
        message = self.messages[index % len(self.messages)]
        if self.format != "anthropic" or message["role"] != "assistant":
            return
        self.grown = False
        if message["content"][0]["type"] == "thinking":
            del message["content"][0]
        else:
            message["content"].insert(
                0, {"type": "thinking", "thinking": "hm", "signature": "s"}
            )

    def move_markers(self):
        """The last two user messages have a cache marker, as in real loops."""
        if self.format != "anthropic":
            return
        blocks = [
            message["content"][-1]
            for message in self.messages
            if isinstance(message["content"], list)
            and message["role"] == "user"
        ]
        for block in blocks:
            block.pop("cache_control", None)
        for block in blocks[-2:]:
            block["cache_control"] = {"type": "ephemeral"}

    def observe(self):
        """The provider reports what it counted: another scale, and what we cannot see."""
        if self.session._state.newest is not None:
            scale, offset = self.provider
            tokens = int(self.session.window.tokens * scale) + offset
            self.session.observe(Usage(fresh_tokens=tokens))

    # ── the judge ────────────────────────────────────────────────────────────────────

    def fit(self, *, use_async=False):
        """A view, judged."""
        request = self.request()
        before, known, told = (
            copy.deepcopy(request),
            self.session.state,
            len(self.session.events),
        )
        view = (
            self.fit_async(request) if use_async else self.session.fit(request)
        )
        assert request == before, "the caller's data was changed"
        self.matches_sessions_without_memory(request, known, view)
        self.is_legal(request, view)
        self.hands_back_the_callers_own(request, view)
        self.fits(view)
        kinds = {event.kind for event in self.session.events[told:]}
        self.kinds |= kinds
        self.keeps_the_prefix(view, kinds)
        self.is_what_was_sent(request, view)
        return view

    def fit_async(self, request):
        """The same turn by the async twin; the sync one goes on from its state."""

        async def once():
            session = AsyncSession(
                MODEL[self.format],
                limits=self.limits,
                format=self.format,
                recall=True,
                store=Threaded(self.session.store),
                state=self.session.state,
            )
            session._state = replace(
                session._state, cache=self.session._state.cache
            )
            return session, await session.fit(request)

        other, view = asyncio.run(once())
        events = (*self.session.events, *other.events)
        self.session._state = replace(other._state, events=events)
        return view

    def matches_sessions_without_memory(self, request, known, view):
        """The same view from the ledger as it was before and as it is now, or from the file."""
        cold = {
            "the ledger after": {
                "store": MemoryStore(),
                "state": self.session.state,
            }
        }
        if self.path is None:
            cold["the ledger before"] = {
                "store": MemoryStore(),
                "state": known,
            }
        else:
            cold["the file alone"] = {"store": self.path}
        for what, more in cold.items():
            with self.new_session(**more) as fresh:
                assert as_bytes(fresh.fit(request)) == as_bytes(view), (
                    f"cold, with {what}"
                )
        assert as_bytes(self.session.fit(request)) == as_bytes(view), (
            "called again, unchanged"
        )

    def is_legal(self, request, view):
        own = Counter(
            problem.rule
            for problem in problems_of(self.format, request[self.key])
        )
        ours = Counter(
            problem.rule
            for problem in problems_of(self.format, view[self.key])
        )
        assert not ours - own

    def hands_back_the_callers_own(self, request, view):
        window, raws, shown = (
            self.session.window,
            request[self.key],
            view[self.key],
        )
        leading = len(raws) - len(window.transcript)
        kept, views = list(range(leading)), shown[:leading]
        laid = groups(window, FORMATS[self.format], window.meter.model)
        for (first, *others), message in zip(
            laid, shown[leading:], strict=True
        ):
            if not (isinstance(first, str) or others):
                kept.append(first + leading)
                views.append(message)
        assert len(kept) == len(views)
        for index, message in zip(kept, views, strict=True):
            if index - leading not in window.changed:
                assert message is raws[index]

    def fits(self, view):
        window = self.session.window
        assert recount(self.session, view) == window.tokens
        assert window.estimate <= window.limit_tokens

    def keeps_the_prefix(self, view, kinds):
        """A history that only grew keeps the view so far, unless an event told why not."""
        leading = len(self.leading())
        shown = [
            as_bytes(unmarked(message)) for message in view[self.key][leading:]
        ]
        if self.previous is not None and self.grown and not kinds & REWRITES:
            assert shown[: len(self.previous)] == self.previous
        self.previous, self.grown = shown, True

    def is_what_was_sent(self, request, view):
        """The same history under the same decisions is the view that was really sent."""
        leading = len(self.leading())
        history = as_bytes(unmarked(request[self.key][leading:]))
        chain, ledger = (
            self.session.window.transcript.chain,
            self.session.state.ledger,
        )
        decided = [ledger.at(key).batches for key in chain]
        shown = as_bytes(unmarked(view[self.key][leading:]))
        if history in self.sent and self.sent[history][0] == decided:
            assert self.sent[history][1] == shown
        self.sent[history] = (decided, shown)

    def read_everything_back(self):
        """Each tool result is in the view, or comes back by following what is visible."""
        view, opened = self.fit(), {}
        texts = list(reading.visible(view[self.key]))
        reading.reachable(self.session, texts, opened)
        reachable, shown = {*texts, *opened.values()}, "\n".join(texts)
        for message in self.messages:
            for _, results in reading.results(message):
                for text in results:
                    assert text in reachable or (
                        len(text) <= 80 and text in shown
                    )


def unmarked(value):
    """A copy without cache markers."""
    if isinstance(value, dict):
        return {
            k: unmarked(item)
            for k, item in value.items()
            if k != "cache_control"
        }
    return (
        [unmarked(item) for item in value]
        if isinstance(value, list)
        else value
    )
