"""A client that does anything, workers that come and go, and a strict model: whole exchanges.

`tests.hidden_turns.talk` is the judge: a request breaks no rule of its wire, and begins with all
that the model was sent and said for the longest beginning of the client's history that is known,
unless it reports a batch. Beside that no private name reaches the client, and every ref that the
model sees opens. No socket, no thread: exchanges, sessions and a store in memory.
"""

import copy
import json
import re
from types import SimpleNamespace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

from lab.returned import problems
from tests import histories
from tests.exchange.scripted import Reply, stream, stream_type
from tests.hidden_turns.talk import OWN, TOOLS, Talk
from tests.hidden_turns.talk import Call as Called
from tests.hidden_turns.talk import Reply as Said
from tests.servers.replies import Prompt, body_of
from tests.servers.streams import events_in, stream_of
from ullage import Limits, MemoryStore
from ullage.core.values.toolset import RECALL_TOOLS
from ullage.doors.exchange import Exchanges
from ullage.session.drivers import drive
from ullage.session.sessions import Sessions

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-pro:",
    "ollama": "/api/chat",
}
BINDS = "claude-opus-5-5"
"""It binds its thinking to all that stands before it (A15)."""
LIMITS = Limits(window_tokens=9_000, output_reserve_tokens=500)
RECALL = Called("get_continuation", {"tool_call_id": "0123456789abcdef"})
BATCHES = {"pruned", "condensed", "compacted", "cut", "reasoning", "changed"}
REF = re.compile(r"\b[0-9a-z]{16}\b")
indices = st.integers(0, 20)


class Store(MemoryStore):
    """One that can lose what was hidden from clients."""

    def lose(self):
        records = self._tenants["t"].records if self._tenants else {}
        for key in [
            key
            for key in records
            if any(kind == "splice" for kind, *_ in records[key])
        ]:
            del records[key]


class Worker(Exchanges):
    """The exchanges of one process; all of them tell in one list."""

    def __init__(self, store, reports):
        self.reports = reports
        sessions = Sessions(store=store, limits=LIMITS, policy=histories.EAGER)
        super().__init__(sessions, self.reports.append)


class Client(Talk):
    """A `Talk` whose door is an exchange of one of the workers."""

    def __init__(self, format, worker, **more):
        super().__init__(format, **more)
        self.worker, self.is_marked, self.outputs = worker, False, 0
        self.refs = set()
        self.breaks, self.heard, self.is_new = "", 0, True

    def request(self):
        request = super().request()
        own = self.wire.tool(TOOLS[0])
        request["tools"] = (
            [{"functionDeclarations": [own]}]
            if self.format == "gemini"
            else [own]
        )
        if self.format == "anthropic":
            request["model"] = BINDS
        if self.format == "gemini":
            del request["model"]
        if self.format == "openai-chat" and self.streamed:
            request["stream_options"] = {"include_usage": True}
        if self.is_marked:
            request = with_marker(request)
        return request

    def answer(self, said):
        """The results of the calls that the client knows of: long ones."""
        calls = [
            self.wire.call(call)
            for message in said
            for call in self.wire.calls(message)
        ]
        results = []
        for call in calls:
            self.outputs += 1
            lines = (
                f"{self.outputs}.{n}: value {n * self.outputs} of it\n"
                for n in range(110)
            )
            results.append(self.wire.result(call, "".join(lines)))
        self.history += self.wire.results(results) if results else []

    # ── the door ─────────────────────────────────────────────────────────────────────

    @property
    def path(self):
        ends = {
            True: "streamGenerateContent?alt=sse",
            False: "generateContent",
        }
        return PATHS[self.format] + (
            ends[self.streamed] if self.format == "gemini" else ""
        )

    def exchange(self, request, upstream):
        return self.worker.of(
            "POST",
            self.path,
            json.dumps(request).encode(),
            upstream,
            tenant="t",
        )

    def door(self, request):
        self.breaks, self.is_new = "", True
        answer = drive(self.exchange(request, self).steps())
        said = b"".join(iter(lambda: drive(answer.next()), b""))
        drive(answer.close())
        report = self.worker.reports[-1]
        assert (answer.status, report.passed, report.problem) == (
            200,
            None,
            "",
        ), said
        told = {
            event.kind
            for each in self.worker.reports[self.heard :]
            for event in each.events
        }
        assert not self.breaks or BATCHES & told, self.breaks
        self.heard = len(self.worker.reports)
        for name in RECALL_TOOLS:
            assert name.encode() not in said, "the client sees a private tool"
        self.recalled += report.recalled
        self.done = SimpleNamespace(records=report.recalled)
        self.events = events_in(said) if self.streamed else []
        return None if self.streamed else json.loads(said)

    # ── the model ────────────────────────────────────────────────────────────────────

    def send(self, body):
        """See `ullage.doors.exchange.Upstream`."""
        request = without_markers(json.loads(body))
        reply = self.upstream(request)
        self.opens(body)
        if not self.streamed:
            return Reply(reply)
        return stream(self.format, *self.cut(reply, request))

    def upstream(self, request):
        history = self.wire.history(request)
        if self.is_new:  # what is asked again has to be sent again
            self.truths[json.dumps(self.history)], self.is_new = history, False
        kept = history[: len(self.truth)]
        if without_nothing(kept) != without_nothing(self.truth):
            self.breaks = "the prefix was broken, and no batch is told of"
            self.truth = kept
        if RECALL.name not in json.dumps(
            request["tools"]
        ):  # a history that was joined
            last = self.script[-1]
            calls = [call for call in last.calls if call is not RECALL]
            self.script[:] = [Said(last.text, calls, last.thought)]
        return super().upstream(request)

    def body(self, reply, request):
        visible = sorted(self.refs & set(REF.findall(json.dumps(request))))
        if visible and reply.calls:
            real = Called(RECALL.name, {"tool_call_id": visible[0]})
            calls = [real if call is RECALL else call for call in reply.calls]
            reply = Said(reply.text, calls, reply.thought)
        prompt = Prompt(len(json.dumps(request)) // 4)
        return body_of(self.format, reply, self.rounds, prompt)

    def check_sealed(self, history):
        """Reasoning of the others may stand behind a batch."""
        if self.format == "anthropic":
            super().check_sealed(history)

    def opens(self, body):
        """What was set aside by now can be had, as long as the model sees its ref."""
        for report in self.worker.reports[-1:]:
            self.refs |= {event.ref for event in report.events if event.ref}
        store = self.worker.sessions.store
        for ref in self.refs & set(REF.findall(body.decode())):
            assert store.get("t", ref).text


class Beside:
    """A model that says one thing, to a request made while another is under way."""

    def __init__(self, client):
        self.client, self.format, self.sent = client, client.format, []
        self.asked = json.dumps(client.history)

    def send(self, body):
        request = json.loads(body)
        assert problems(self.format, request) == []
        history = self.client.wire.history(without_markers(request))
        self.client.truths[self.asked] = history
        self.sent.append(history)
        reply = body_of(self.format, "Beside.", 900, Prompt(len(body) // 4))
        if request.get("stream") or self.format == "gemini":
            raw = stream_of(self.format, reply, request)
            return Reply(raw, content_type=stream_type(self.format))
        return Reply(reply)


# ── what is sent and said ────────────────────────────────────────────────────────────────


def with_marker(request):
    """The request with a cache marker on its last message, where there is such a thing."""
    request = copy.deepcopy(request)
    content = request.get("messages", [{}])[-1].get("content")
    if isinstance(content, list) and content and "max_tokens" in request:
        content[-1]["cache_control"] = {"type": "ephemeral"}
    return request


def without_markers(value):
    if isinstance(value, dict):
        return {
            k: without_markers(item)
            for k, item in value.items()
            if k != "cache_control"
        }
    return (
        [without_markers(item) for item in value]
        if isinstance(value, list)
        else value
    )


def without_nothing(said):
    return [
        {k: v for k, v in message.items() if v not in (None, "")}
        for message in said
    ]


# ── the machine ──────────────────────────────────────────────────────────────────────────

texts = st.sampled_from(("", "Let me look.", "Line 5\n  failed. ", "é🙂"))
thoughts = st.sampled_from(("", "Hm."))
private = st.builds(
    Said, texts, st.lists(st.just(RECALL), min_size=1, max_size=2), thoughts
)
mixed = st.lists(st.sampled_from((RECALL, OWN)), min_size=1, max_size=3)
endings = st.builds(
    Said, texts, mixed.filter(lambda calls: OWN in calls), thoughts
)
scripts = st.tuples(st.lists(private, max_size=2), endings)


class Doors(RuleBasedStateMachine):
    @initialize(
        format=st.sampled_from(list(PATHS)),
        streamed=st.booleans(),
        seed=indices,
    )
    def begin(self, format, streamed, seed):
        self.store, self.branches, self.reports = Store(), [], []
        self.workers = [
            Worker(self.store, self.reports),
            Worker(self.store, self.reports),
        ]
        self.client = Client(
            format, self.workers[0], streamed=streamed, seed=seed
        )
        self.client.user("What failed?")
        self.say([], Said("Let me look.", [OWN]))

    # ── what a client does ───────────────────────────────────────────────────────────

    def speak(self):
        """The user says something, unless results are the last word."""
        last = self.client.wire.parse(self.client.history[-1], "last")
        if last.role == "assistant":
            self.client.user("And then?")

    def say(self, hidden, last):
        """No two replies are the same: of such the first is what the other is knitted to."""
        text = f"{last.text} That was {self.client.rounds}."
        self.client.model(*hidden, Said(text, last.calls, last.thought))

    @rule(scripts=st.lists(scripts, min_size=1, max_size=4))
    def ask(self, scripts):
        for script in scripts:
            self.speak()
            self.say(*script)

    @rule(script=scripts)
    def retry(self, script):
        """The reply did not arrive: the same request is made again, and answered otherwise."""
        self.speak()
        before = list(self.client.history)
        self.say(*script)
        self.client.history = before
        self.say(*script)

    @rule(at=indices)
    def rewind(self, at):
        users = self.asked()
        self.client.history = self.client.history[: users[at % len(users)] + 1]

    @rule()
    def fork(self):
        self.branches.append(list(self.client.history))

    @precondition(lambda self: self.branches)
    @rule(at=indices)
    def go_to_a_branch(self, at):
        at %= len(self.branches)
        client = self.client
        client.history, self.branches[at] = (
            self.branches[at],
            list(client.history),
        )

    @rule(at=indices)
    def edit(self, at):
        """A word of the user's is changed: nothing behind it is as it was."""
        users = self.asked()
        history = copy.deepcopy(self.client.history)
        word = f"Rather this: {len(history)}."
        history[users[at % len(users)]] = self.client.wire.user(word)
        self.client.history = history
        self.client.is_as_it_was = False

    @rule()
    def move_the_marker(self):
        self.client.is_marked = not self.client.is_marked

    def asked(self):
        """Where the user speaks."""
        parsed = [
            self.client.wire.parse(raw, "raw") for raw in self.client.history
        ]
        return [
            n
            for n, each in enumerate(parsed)
            if each.role == "user" and not each.results
        ]

    # ── what happens to workers and stores ───────────────────────────────────────────

    @rule(at=st.integers(0, 1))
    def go_to_a_worker(self, at):
        self.client.worker = self.workers[at]

    @rule(at=st.integers(0, 1))
    def restart(self, at):
        self.workers[at] = self.client.worker = Worker(
            self.store, self.reports
        )

    @rule(script=scripts, steps=st.integers(1, 12))
    def kill(self, script, steps):
        """A worker dies in the middle of an exchange: the client has nothing, and asks again."""
        self.speak()
        client, before = self.client, list(self.client.history)
        client.script = [*script[0], script[1]]
        client.truth, client.is_new = client.known(), True
        running = acting_for(steps, client.exchange(client.request(), client))
        self.workers.remove(client.worker)
        self.workers.append(Worker(self.store, self.reports))
        client.worker = self.workers[-1]
        del running
        client.history = before
        self.say(*script)

    @rule(script=scripts)
    def ask_twice_at_once(self, script):
        """The same request goes through both workers, step by step."""
        self.speak()
        client, other = self.client, Beside(self.client)
        one, two = self.workers
        client.worker = two
        beside = client.exchange(client.request(), other).steps()
        client.worker = one
        asked = next(beside)
        self.say(*script)
        answer = drive(resumed(beside, asked))
        while drive(answer.next()):
            pass
        drive(answer.close())
        assert answer.status == 200
        assert other.sent

    @rule()
    def lose(self):
        """Every splice is lost."""
        self.store.lose()
        self.workers = [
            Worker(self.store, self.reports),
            Worker(self.store, self.reports),
        ]
        self.client.worker = self.workers[0]
        self.client.forgets()


def acting_for(steps, exchange):
    """So many steps of an exchange, and what is left of it, which nobody closes."""
    running = exchange.steps()
    came = None
    for _ in range(steps):
        try:
            came = running.send(came)()
        except StopIteration:
            break
    return running


def resumed(steps, asked):
    """The rest of steps that asked for something already."""
    while True:
        try:
            came = yield asked
        except BaseException as error:  # noqa: BLE001 - the steps see it
            asked = steps.throw(error)
        else:
            try:
                asked = steps.send(came)
            except StopIteration as stop:
                return stop.value


Doors.TestCase.settings = settings(max_examples=8, stateful_step_count=8)
TestDoors = Doors.TestCase
