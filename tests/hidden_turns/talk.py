"""A client, a door with a store and a scripted model: one conversation, told from outside.

    talk = Talk("anthropic")
    talk.user("What failed?")
    talk.model(Reply("Let me look.", [RECALL]), Reply("Line 5."))      the rounds of one reply
    assert talk.texts == ["Let me look.", "Line 5."]                   what the client has of it

The model is strict. A request fails the test that breaks a rule of the wire, or that does not begin
with all that the model was sent and said for the longest beginning of the client's history that it
was asked about before (`Talk.forgets` makes it forget). The client appends what it got, by its
habits, and answers its own calls. What it gets names no private tool.
"""

import json
import random

from lab.returned import problems
from tests.hidden_turns import sdks
from tests.histories import in_turn
from tests.servers import Call, Reply
from tests.servers.replies import MODELS, Prompt, body_of
from tests.servers.streams import events_in, stream_of
from ullage import MemoryStore
from ullage.core.values.toolset import ToolSpec
from ullage.doors.hidden_turns import (
    FinishedReply,
    NextRound,
    PrivateCalls,
    Rounds,
    StreamedRounds,
    restore_hidden_turns,
)
from ullage.session.drivers import run
from ullage.wires import FORMATS
from ullage.wires.base import name_of_call

__all__ = [
    "HABITS",
    "OWN",
    "RECALL",
    "Call",
    "Reply",
    "Talk",
    "goes_on",
    "knitted",
    "owns",
    "start",
    "text_in",
]

PRIVATE = "read_output"
RECALL = Call(PRIVATE, {"ref_id": "0123456789abcdef", "limit": 20})
OWN = Call("read_file", {"path": "a.py", "lines": [1, 2.0], "all": None})
_PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = (
    ToolSpec("read_file", "Reads.", _PATH),
    ToolSpec(PRIVATE, "Recalls.", _PATH),
)


def owns(call):
    return name_of_call(call) == PRIVATE


class Talk:
    """See above.

    Args:
        format: the wire.
        streamed: whether replies come as events, and by which SDK the client reads them.
        seed: of the places where texts are cut in a stream.
        habits: what the client does to what it sends back (`HABITS`).
        store: what the door keeps; another door may share it.
        has_ids: whether calls have ids (Gemini's may have none).
        most: so many rounds of private calls are answered.
    """

    def __init__(
        self,
        format,
        *,
        streamed=False,
        seed=0,
        habits=(),
        store=None,
        has_ids=True,
        most=8,
        **fields,
    ):
        self.format, self.wire, self.streamed = (
            format,
            FORMATS[format],
            streamed,
        )
        self.store = MemoryStore() if store is None else store
        self.habits, self.fields, self.has_ids, self.most = (
            habits,
            fields,
            has_ids,
            most,
        )
        self.records = []  # all that was ever kept
        self.dice = random.Random(seed)
        self.history = []  # the client's
        self.sent = []  # what the model was sent, a history each
        self.truths = {}  # by the client's history: what the model was sent of it, and said
        self.returned = []  # every message of the model's
        self.bound = {}  # by what is sealed: what stood before it when it was made
        self.is_as_it_was = True  # nothing was lost, nor edited by the client
        self.recalled = 0
        self.rounds = 0
        self.reply = None
        self.events = []

    # ── the client ───────────────────────────────────────────────────────────────────

    def user(self, text):
        self.history.append(self.wire.user(text))
        if self.format == "bedrock-converse":
            self.history = in_turn(self.history)

    def model(self, *script):
        """One request of the client's, and what came of it; the calls in it are answered."""
        self.script = list(script)
        request = self.request()
        before = json.dumps(request)
        self.truth = self.known()
        self.reply = self.door(request)
        assert json.dumps(request) == before, (
            "the client's request was changed"
        )
        assert not self.script, "the model was not asked so often"
        said = sdks.messages(
            self.format, self.reply, self.events if self.streamed else None
        )
        for habit in self.habits:
            said = HABITS[habit](self.format, said)
        self.history += said
        if (
            not self.done.records
        ):  # nothing was hidden: the turn is what the client makes of it
            self.returned += [self.wire.user("-"), *said]
            self.truth = [*self.sent[-1], *said]
        self.truths[json.dumps(self.history)] = self.truth
        self.answer(said)
        return self.reply

    def answer(self, said):
        """The results of the calls that the client knows of."""
        calls = [call for message in said for call in self.wire.calls(message)]
        results = [
            self.wire.result(self.wire.call(call), "x = 1") for call in calls
        ]
        self.history += self.wire.results(results) if results else []

    def request(self):
        tools = [self.wire.tool(spec) for spec in TOOLS]
        if self.format == "gemini":
            tools = [{"functionDeclarations": tools}]
        head = {"model": MODELS[self.format], "tools": tools}
        more = {
            "anthropic": {"max_tokens": 500},
            "openai-responses": {"store": False},
        }
        if self.format == "bedrock-converse":
            head = {
                "modelId": MODELS[self.format],
                "toolConfig": {"tools": tools},
            }
        by_path = self.format in ("gemini", "bedrock-converse")
        stream = {"stream": True} if self.streamed and not by_path else {}
        fields = {**head, **more.get(self.format, {}), **stream, **self.fields}
        return {**fields, self.wire.key: list(self.history)}

    @property
    def texts(self):
        """The texts of the last reply, as the client has them."""
        return [
            part.text for part in self.parts if type(part).__name__ == "Text"
        ]

    @property
    def words(self):
        """All of them together."""
        return " ".join(" ".join(self.texts).split())

    @property
    def calls(self):
        return [
            part.name
            for part in self.parts
            if type(part).__name__ == "ToolCall"
        ]

    @property
    def thoughts(self):
        return sum(type(part).__name__ == "Reasoning" for part in self.parts)

    @property
    def parts(self):
        said = self.wire.reply(self.reply)
        return [
            part
            for raw in said
            for part in self.wire.parse(raw, "reply").parts
        ]

    # ── the door ─────────────────────────────────────────────────────────────────────

    def door(self, request):
        knitted = run(
            restore_hidden_turns(request, self.wire, "t"), self.store, "t"
        )
        rounds = Rounds(self.wire, knitted, owns, self.most)
        if self.streamed:
            self.events = self.gives(rounds, knitted.request)
        else:
            self.events = []
            self.done = self.unstreamed(rounds, knitted.request)
        for given in (*self.events, self.done.reply):
            assert PRIVATE not in json.dumps(given), (
                "the client sees a private tool"
            )
        return self.done.reply

    def unstreamed(self, rounds, request):
        while True:
            step = rounds.take(self.upstream(request))
            if isinstance(step, PrivateCalls):
                step = rounds.answer(self.recall(step.calls))
            if isinstance(step, FinishedReply):
                self.keep(step.records)
                return step
            assert isinstance(step, NextRound)
            request = step.request

    def gives(self, rounds, request):
        streamed, given = StreamedRounds(rounds), []
        while True:
            for event in self.cut(self.upstream(request), request):
                as_text = json.dumps(event)
                given += streamed.feed(event)
                assert json.dumps(event) == as_text, "an event was changed"
            step = streamed.end()
            if isinstance(step, PrivateCalls):
                step = streamed.answer(self.recall(step.calls))
            if isinstance(step, FinishedReply):
                self.keep(step.records)
                self.done = step
                return [*given, *step.events]
            request = step.request

    def keep(self, records):
        self.records += records
        if records:
            self.store.commit("t", (), records)

    def recall(self, calls):
        self.recalled += len(calls)
        return [
            self.wire.result(self.wire.call(call), "what was set aside")
            for call in calls
        ]

    # ── the model ────────────────────────────────────────────────────────────────────

    def forgets(self):
        """What the next requests begin with may differ from all before."""
        self.truths.clear()
        self.is_as_it_was = False

    def known(self):
        """What the model was sent and said for the longest known beginning of the history."""
        beginnings = (
            self.history[:stop] for stop in range(len(self.history), 0, -1)
        )
        return next(
            filter(
                None,
                (self.truths.get(json.dumps(each)) for each in beginnings),
            ),
            [],
        )

    def upstream(self, request):
        history = self.wire.history(request)
        returned = self.returned if self.is_as_it_was else None
        found = problems(self.format, request, history=returned)
        assert found == [], (found, history)
        kept = history[: len(self.truth)]
        assert without_empty(kept) == without_empty(self.truth), (
            "the prefix was broken"
        )
        if self.is_as_it_was and not self.habits:
            self.check_sealed(history)
        self.sent.append(history)
        self.rounds += 1
        body = self.body(self.script.pop(0), request)
        said = self.wire.reply(body)
        self.returned += [self.wire.user("-"), *said]
        for at, raw in enumerate(said):
            before = json.dumps(without_empty([*history, *said[:at]]))
            self.bound |= dict.fromkeys(seals_in(raw), before)
        self.truth = [*history, *said]
        return body

    def body(self, reply, request):
        body = body_of(
            self.format, reply, self.rounds, Prompt(1_000 + self.rounds)
        )
        if self.format == "openai-responses" and not isinstance(reply, dict):
            body["tools"] = request["tools"]
        for part in (
            body["candidates"][0]["content"]["parts"]
            if not self.has_ids
            else ()
        ):
            part.get("functionCall", {}).pop("id", None)
        return body

    def check_sealed(self, history):
        """What is sealed stands behind what stood before it when it was made (A15)."""
        for at, raw in enumerate(history):
            before = json.dumps(without_empty(history[:at]))
            for seal in seals_in(raw):
                assert self.bound[seal] == before, (
                    "something before this thinking has changed"
                )

    def cut(self, body, request):
        """The events of a reply, its texts cut anywhere."""
        asked = {**request, "stream_options": {"include_usage": True}}
        events = events_in(stream_of(self.format, body, asked))
        cut = [piece for event in events for piece in self._pieces(event)]
        if self.format == "openai-responses":
            cut = [
                {**event, "sequence_number": number}
                for number, event in enumerate(cut)
            ]
        return cut

    def _pieces(self, event):
        """One event as several, by the text in it."""
        holder, name = text_in(self.format, event)
        text = holder[name] if holder else ""
        if len(text) < 2:
            return [event]
        at = self.dice.randrange(1, len(text))
        pieces = []
        for piece in (text[:at], text[at:]):
            copy = json.loads(json.dumps(event))
            into, name = text_in(self.format, copy)
            into[name] = piece
            pieces.append(copy)
        return pieces


def seals_in(raw):
    """What is sealed in a message of the model's."""
    if raw.get("type") == "reasoning":
        return [raw["encrypted_content"]]
    content = raw.get("content")
    blocks = content if isinstance(content, list) else ()
    thoughts = [
        b["reasoningContent"]["reasoningText"]
        for b in blocks
        if "reasoningContent" in b
    ]
    return [
        block["signature"]
        for block in (*blocks, *thoughts)
        if block.get("signature")
    ]


def start(mode, **more):
    """A conversation on a wire, streamed or not, and the user's first word."""
    format, streamed = mode
    talk = Talk(format, streamed=streamed, **more)
    talk.user("What failed?")
    return talk


def goes_on(talk):
    """The next question continues all that the model was sent and said."""
    talk.user("And then?")
    talk.model("Nothing else.")
    assert talk.texts == ["Nothing else."]


def knitted(talk):
    """The client's next request, knitted."""
    return run(
        restore_hidden_turns(talk.request(), talk.wire, "t"), talk.store, "t"
    )


def text_in(format, event):
    """Where a delta has its text."""
    if format == "anthropic" and event["type"] == "content_block_delta":
        delta = event["delta"]
        names = [
            name
            for name in ("text", "thinking", "partial_json")
            if name in delta
        ]
        return (delta, names[0]) if names else (None, "")
    if format == "openai-chat" and event.get("choices"):
        delta = event["choices"][0]["delta"]
        if delta.get("content"):
            return delta, "content"
        calls = delta.get("tool_calls")
        return (
            (calls[0]["function"], "arguments")
            if calls and "id" not in calls[0]
            else (None, "")
        )
    if format == "openai-responses" and event["type"].endswith(".delta"):
        return event, "delta"
    if format == "ollama":
        names = [
            name
            for name in ("content", "thinking")
            if event["message"].get(name)
        ]
        return (event["message"], names[0]) if names else (None, "")
    if format == "bedrock-converse" and "contentBlockDelta" in event:
        delta = event["contentBlockDelta"]["delta"]
        holder = delta.get("toolUse") or delta.get("reasoningContent") or delta
        return holder, next(
            (name for name in ("text", "input") if name in holder), "signature"
        )
    if format == "gemini" and "finishReason" not in event["candidates"][0]:
        part = event["candidates"][0]["content"]["parts"][0]
        return (
            (part, "text")
            if "text" in part and "thoughtSignature" not in part
            else (None, "")
        )
    return None, ""


# ── what clients do to a reply before they send it back ──────────────────────────────────


def _joined(format, said):
    """Every text of a message as one, in the place of the first."""
    if format in ("openai-chat", "openai-responses", "ollama"):
        return said
    key = "parts" if format == "gemini" else "content"
    parts = [part for message in said for part in message[key]]
    texts = [
        part for part in parts if "text" in part and not part.get("thought")
    ]
    if not texts:
        return said
    one = {**texts[0], "text": "".join(part["text"] for part in texts)}
    rest = [part for part in parts if all(part is not text for text in texts)]
    marks = ("thinking", "thought", "reasoningContent")
    thoughts = [part for part in rest if any(part.get(mark) for mark in marks)]
    others = [
        part for part in rest if all(part is not each for each in thoughts)
    ]
    return [{**said[0], key: [*thoughts, one, *others]}]


def _thoughtless(format, said):
    match format:
        case "anthropic":
            said = [
                {
                    **m,
                    "content": [
                        b for b in m["content"] if "thinking" not in b["type"]
                    ],
                }
                for m in said
            ]
            return [message for message in said if message["content"]]
        case "bedrock-converse":
            said = [
                {
                    **m,
                    "content": [
                        b for b in m["content"] if "reasoningContent" not in b
                    ],
                }
                for m in said
            ]
            return [message for message in said if message["content"]]
        case "openai-responses":
            said = [item for item in said if item["type"] != "reasoning"]
            return [
                {k: v for k, v in item.items() if k != "id"} for item in said
            ]
        case "gemini":
            said = [
                {**m, "parts": [p for p in m["parts"] if not p.get("thought")]}
                for m in said
            ]
            return [message for message in said if message["parts"]]
    return said


def _rewritten(format, said):
    """Arguments as another language writes them."""

    def again(arguments):
        value = {
            k: v for k, v in json.loads(arguments).items() if v is not None
        }
        return json.dumps(dict(reversed(value.items())), indent=1).replace(
            "2.0", "2"
        )

    said = json.loads(json.dumps(said))
    for message in said:
        for call in message.get("tool_calls") or ():
            given = call["function"]["arguments"]
            written = again(
                given if isinstance(given, str) else json.dumps(given)
            )
            is_text = isinstance(given, str)
            call["function"]["arguments"] = (
                written if is_text else json.loads(written)
            )
        content = message.get("content")
        blocks = content if isinstance(content, list) else ()
        for block in (block.get("toolUse", block) for block in blocks):
            if "input" in block:
                block["input"] = json.loads(again(json.dumps(block["input"])))
        for part in message.get("parts") or ():
            if "functionCall" in part:
                call = part["functionCall"]
                call["args"] = json.loads(again(json.dumps(call["args"])))
        if message.get("type") == "function_call":
            message["arguments"] = again(message["arguments"])
    return said


def _without_nulls(format, said):
    if isinstance(said, dict):
        return {
            k: _without_nulls(format, v)
            for k, v in said.items()
            if v is not None
        }
    return (
        [_without_nulls(format, item) for item in said]
        if isinstance(said, list)
        else said
    )


def without_empty(said):
    """Without the fields of a chat message that a stream leaves out where they say nothing."""
    return [
        {k: v for k, v in message.items() if v not in (None, "")}
        for message in said
    ]


def _trimmed(format, said):
    if (
        format == "gemini"
    ):  # each chunk is a part: that would trim within a text
        return said
    said = json.loads(json.dumps(said))
    for message in said:
        content = message.get("content") or message.get("parts") or ()
        for part in content if isinstance(content, list) else ():
            if isinstance(part.get("text"), str):
                part["text"] = part["text"].strip()
        if isinstance(content, str):
            message["content"] = content.strip()
    return said


HABITS = {
    "joins texts": _joined,
    "drops thinking": _thoughtless,
    "rewrites arguments": _rewritten,
    "drops nulls": _without_nulls,
    "trims": _trimmed,
}
