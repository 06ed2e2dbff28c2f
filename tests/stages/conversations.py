"""Conversations as text: read aloud, then run.

A case of `tests/fixtures/stages/*.md` is a heading, a few settings and a conversation. The test
adds what the model would see and what the session told, and compares. Written so:

    user: what was said
    assistant: what it said
        call read_file path=a.py
    thinking: a signed thought; it belongs to the assistant message that follows
    result: the answer to the first call that has none yet
    error: the same, but the tool failed
    result:
        | the first line of a longer text
        <<200 lines of log, line 150 says ERROR disk full>>

``<<…>>`` stands for a text nobody wants to read; `generators` has the kinds. In the part that is
compared, a text that is still whole is written as it was before. Control characters are shown
by their pictures (␍, ␀).

    UPDATE_FIXTURES=1 pytest tests/stages        writes the second part anew; then read the diff
"""

import json
import os
import re
from functools import partial
from pathlib import Path

from msgspec import Struct

from lab import reading
from tests.stages.generators import generate
from ullage import Limits, Policy, Session
from ullage.core.contract.kinds import LIMIT_CHARS
from ullage.policy.stages.emergency import emergency
from ullage.policy.stages.pressure import (
    newest_share,
    over_or_pays,
    over_share,
)
from ullage.policy.stages.prune import prune
from ullage.policy.stages.record import record
from ullage.policy.stages.truncate import by_kind, truncate
from ullage.wires.rules.checker import problems_of

FOLDER = Path(__file__).parents[1] / "fixtures" / "stages"
MODELS = {"openai-chat": "gpt-4.1", "anthropic": "claude-sonnet-4-5"}
STAGES = {
    "truncate": truncate,
    "prune": prune,
    "record": record,
    "emergency": emergency,
}
FENCE = "~~~\n"

_SPEAKER = re.compile(
    r"(system|user|assistant|thinking|result|error):(?: (.*))?$"
)
_GENERATED = re.compile(r"<<(.+?)>>")
_WORD = re.compile(r"[\w./:-]+$")
_PICTURES = {
    code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"
}
_CONTROLS = {ord(picture): code for code, picture in _PICTURES.items()}


# ── from text to a conversation ──────────────────────────────────────────────────────────


class Turn(Struct):
    """One speaker's lines. ``calls`` holds (name, arguments)."""

    who: str
    text: str = ""
    calls: list = []


class Case(Struct, frozen=True):
    """One case of a file: how it is set up, what is said, and what came out last time."""

    file: str
    title: str
    settings: dict
    before: str
    head: str
    after: str


def cases(name):
    """The cases of ``<name>.md``, in order."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    return [_case(name, part) for part in re.split(r"(?m)^(?=## )", text)[1:]]


def _case(name, part):
    settings = dict(re.findall(r"(?m)^- (\w+): *(.*)$", part.split(FENCE)[0]))
    before = part.split(FENCE)[1]
    stop = part.index(FENCE, part.index(before)) + len(FENCE)
    return Case(
        name,
        part[3:].partition("\n")[0],
        settings,
        before,
        part[:stop],
        part[stop:],
    )


class Script:
    """A conversation read from its text, and how each generated text was written.

    Attributes:
        turns: who said what.
        written: the lines a text was written as, by the text.
    """

    def __init__(self, text):
        self.turns = []
        self.written = {}
        lines = text.splitlines()
        starts = [i for i, line in enumerate(lines) if _SPEAKER.match(line)]
        for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
            self._turn(_SPEAKER.match(lines[start]), lines[start + 1 : stop])

    def _turn(self, said, lines):
        turn = Turn(said[1], calls=[])
        body = [said[2]] if said[2] is not None else []
        for line in lines:
            content = line.removeprefix("    ")
            if content.startswith("call "):
                turn.calls.append(self._call(content))
            else:
                body.append(content)
        texts = (
            generate(line[2:-2]) if _GENERATED.fullmatch(line) else plain(line)
            for line in body
        )
        turn.text = "\n".join(texts)
        if any(_GENERATED.fullmatch(line) for line in body):
            self.written[turn.text] = body
        self.turns.append(turn)

    def _call(self, line):
        _, name, *rest = line.split(" ", 2)
        arguments = {}
        for key, value in re.findall(
            r'(\w+)=("(?:[^"\\]|\\.)*"|<<.+?>>|\S+)', " ".join(rest)
        ):
            arguments[key] = self._value(value)
        return name, arguments

    def _value(self, value):
        if _GENERATED.fullmatch(value):
            text = generate(value[2:-2])
            self.written[text] = [value]
            return text
        try:
            return json.loads(value)
        except ValueError:
            return value


def plain(line):
    """A line of a text as it is meant."""
    return line.removeprefix("|").removeprefix(" ").translate(_CONTROLS)


# ── from a conversation to the wire ──────────────────────────────────────────────────────


def wire(turns, format):
    """The turns as wire messages, and the system text."""
    write = _Anthropic() if format == "anthropic" else _OpenAI()
    system = "".join(turn.text for turn in turns if turn.who == "system")
    for turn in turns:
        if turn.who != "system":
            write.add(turn)
    return write.messages, system


class _Wire:
    def __init__(self):
        self.messages = []
        self.open = []
        self.thought = None
        self.calls = 0

    def add(self, turn):
        if turn.who == "thinking":
            self.thought = turn.text
        elif turn.who in ("result", "error"):
            self.result(self.open.pop(0), turn)
        elif turn.who == "user":
            self.messages.append({"role": "user", "content": turn.text})
        else:
            self.said(turn, [self.id() for _ in turn.calls])

    def id(self):
        self.calls += 1
        self.open.append(f"call_{self.calls}")
        return self.open[-1]


class _OpenAI(_Wire):
    def said(self, turn, ids):
        message = {"role": "assistant", "content": turn.text or None}
        if ids:
            message["tool_calls"] = [
                {
                    "id": id,
                    "type": "function",
                    "function": {
                        "name": name,
                        "arguments": json.dumps(arguments),
                    },
                }
                for id, (name, arguments) in zip(ids, turn.calls, strict=True)
            ]
        self.messages.append(message)

    def result(self, id, turn):
        self.messages.append(
            {"role": "tool", "tool_call_id": id, "content": turn.text}
        )


class _Anthropic(_Wire):
    def said(self, turn, ids):
        blocks = []
        if self.thought is not None:
            blocks.append(
                {
                    "type": "thinking",
                    "thinking": self.thought,
                    "signature": "c2ln",
                }
            )
            self.thought = None
        if turn.text:
            blocks.append({"type": "text", "text": turn.text})
        for id, (name, arguments) in zip(ids, turn.calls, strict=True):
            blocks.append(
                {
                    "type": "tool_use",
                    "id": id,
                    "name": name,
                    "input": arguments,
                }
            )
        self.messages.append({"role": "assistant", "content": blocks})

    def result(self, id, turn):
        block = {
            "type": "tool_result",
            "tool_use_id": id,
            "content": turn.text,
        }
        if turn.who == "error":
            block["is_error"] = True
        last = self.messages[-1]
        if last["role"] == "user" and isinstance(last["content"], list):
            last["content"].append(block)
        else:
            self.messages.append({"role": "user", "content": [block]})


# ── running a case ───────────────────────────────────────────────────────────────────────


def policy_of(settings):
    """The policy of a case: the stages it names, with the settings it gives them."""
    bound = {}
    for name, stage in STAGES.items():
        if name in settings:
            pairs = (pair.split("=") for pair in settings[name].split())
            numbers = {
                key: float(n) if "." in n else int(n) for key, n in pairs
            }
            bound[name] = partial(stage, **_settings(name, numbers))
    return Policy(
        name="fixture",
        on_arrival=tuple(
            bound[name] for name in ("truncate",) if name in bound
        ),
        under_pressure=tuple(
            bound[name] for name in ("prune", "record") if name in bound
        ),
        guard=bound.get("emergency"),
    )


def _settings(name, numbers):
    """A stage's settings by the short names that the fixtures use."""
    if name == "truncate":
        limits = dict.fromkeys(LIMIT_CHARS, max(numbers.values())) | numbers
        return {"shape": partial(by_kind, limit_chars=limits)}
    if name == "prune":
        marks = {
            key: numbers.get(key, usual)
            for key, usual in (("high", 0.75), ("low", 0.4))
        }
        return {
            "wanted": partial(over_share, **marks),
            "protected": partial(
                newest_share, share=numbers.get("protect", 0.12)
            ),
            "least_share": numbers.get("least", 0.1),
        }
    if name == "record":
        rent = {"times": 15, "tail_chars": 16_000, "least_calls": 50}
        return {
            "is_due": partial(
                over_or_pays, high=numbers.get("high", 0.5), **rent
            ),
            "protected": partial(
                newest_share, share=numbers.get("protect", 0.1)
            ),
            "least_share": numbers.get("least", 0.05),
        }
    return numbers


class Played(Struct):
    """What came of a case: the script, the session, the full history and the newest view."""

    script: Script
    session: Session
    messages: list
    view: list


def play(case):
    """Live through a case as a loop would: a request before each assistant message."""
    script = Script(case.before)
    format = case.settings.get("format", "openai-chat")
    messages, system = wire(script.turns, format)
    session = _session(case, format)
    lengths = [
        i
        for i, message in enumerate(messages)
        if i and message["role"] == "assistant"
    ]
    for length in [*lengths, len(messages)]:
        view = session.fit(_request(format, messages[:length], system))
    assert (
        _session(case, format).fit(_request(format, messages, system)) == view
    ), "a cold start"
    return Played(script, session, messages, view["messages"])


def _session(case, format):
    limits = Limits(
        window_tokens=int(case.settings["window"]), output_reserve_tokens=0
    )
    recall = case.settings.get("recall", "yes") == "yes"
    policy = policy_of(case.settings)
    return Session(
        MODELS[format],
        policy=policy,
        limits=limits,
        format=format,
        recall=recall,
    )


def _request(format, messages, system):
    model = {"model": MODELS[format], "max_tokens": 100, "messages": messages}
    if not system:
        return model
    if format == "anthropic":
        return {**model, "system": system}
    return {
        **model,
        "messages": [{"role": "system", "content": system}, *messages],
    }


def check(case):
    """Run a case: what is seen is what is written, legal, and opens everything it left out."""
    played = play(case)
    seen = case.head + _after(case, played)
    if os.environ.get("UPDATE_FIXTURES"):
        path = FOLDER / f"{case.file}.md"
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace(case.head + case.after, seen), encoding="utf-8"
        )
    else:
        assert seen.strip() == (case.head + case.after).strip()
    assert not problems_of(played.session.state.format, played.view)
    assert played.session.window.estimate <= played.session.window.limit_tokens
    if case.settings.get("recall", "yes") == "yes":
        _everything_opens(played)
    return played


def _everything_opens(played):
    opened = {}
    texts = list(reading.visible(played.view))
    reading.reachable(played.session, texts, opened)
    reachable = {*texts, *opened.values()}
    recalled = {
        "get_continuation",
        "tool_output_cache",
        "tool_output_cache_grep",
    }
    names = [name for turn in played.script.turns for name, _ in turn.calls]
    answers = [
        turn.text
        for turn in played.script.turns
        if turn.who in ("result", "error")
    ]
    for name, text in zip(names, answers, strict=False):
        short = len(text) <= 80 and any(text in shown for shown in texts)
        assert text in reachable or short or name in recalled


# ── from the wire to text ────────────────────────────────────────────────────────────────


def _after(case, played):
    pieces = ["\nafter\n\n", FENCE, *_view(played), FENCE, "\ntold\n\n", FENCE]
    pieces += [
        f"{e.kind}  {e.where}: {e.why}\n" for e in played.session.events
    ]
    pieces.append(FENCE)
    if case.settings.get("open"):
        ref = played.session.events[-1].ref
        text = reading.follow(played.session, ref)
        pieces += [
            f"\nopened, ref={ref}\n\n",
            FENCE,
            *_block("", text, {}),
            FENCE,
        ]
    return "".join([*pieces, "\n"])


def _view(played):
    for message in played.view:
        yield from _message(message, played.script.written)


def _message(message, written):
    content = message["content"]
    blocks = (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else content or []
    )
    if message["role"] == "tool":
        yield from _block("result:", content, written)
        return
    thoughts = [
        block["thinking"] for block in blocks if block["type"] == "thinking"
    ]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    for text in thoughts:
        yield from _block("thinking:", text, written)
    if texts or message["role"] == "assistant":
        yield from _block(f"{message['role']}:", "\n".join(texts), written)
    for call in message.get("tool_calls") or ():
        body = call["function"]
        yield _call(body["name"], json.loads(body["arguments"]), written)
    for block in blocks:
        if block["type"] == "tool_use":
            yield _call(block["name"], block["input"], written)
        elif block["type"] == "tool_result":
            head = "error:" if block.get("is_error") else "result:"
            yield from _block(head, block["content"], written)


def _block(head, text, written):
    if text in written:
        lines = written[text]
        if len(lines) == 1:
            yield f"{head} {lines[0]}\n"
            return
        yield f"{head}\n"
        yield from (f"    {line}\n" for line in lines)
        return
    lines = text.translate(_PICTURES).split("\n")
    if len(lines) == 1 and head:
        yield f"{head} {lines[0]}".rstrip() + "\n"
        return
    if head:
        yield f"{head}\n"
    yield from (f"    | {line}".rstrip() + "\n" for line in lines)


def _call(name, arguments, written):
    shown = (
        f"{key}={_shown(value, written)}" for key, value in arguments.items()
    )
    return f"    call {' '.join((name, *shown))}\n"


def _shown(value, written):
    if isinstance(value, str) and value in written:
        return written[value][0]
    if isinstance(value, str) and _WORD.match(value) and not value.isdigit():
        return value
    return json.dumps(value, ensure_ascii=False)
