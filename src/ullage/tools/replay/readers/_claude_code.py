"""Claude Code session logs: the Anthropic history behind a log of lines.

A log holds one JSON object a line. Lines of type ``user`` and ``assistant`` carry a piece of
a message; the rest (progress, snapshots, titles) only matters as a link in the chain of
``parentUuid``. What was sent is put together again in three steps:

1. *threads*: the lines of one session, and each sidechain (a subagent) by itself;
2. *order*: from the last line back along ``parentUuid`` (over a compaction along
   ``logicalParentUuid``), plus what hangs beside the chain but belongs to it: other lines
   of the same reply and the results of its calls. What is left over are branches the user
   went back on; they are no part of the history;
3. *messages*: the lines of one reply (same ``message.id``) are one assistant message; the
   results of its calls are one user message directly after it, whatever came between.

A log is not a request: it has empty texts the client never sent back, and calls cut short.
Those are left out, or answered by a short error where later messages build on them, and each
is reported as damage. No system prompt and no tools are in such a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ullage.tools.replay.readers._log import (
    Event,
    Lines,
    LoggedConversation,
    LogKind,
    fields_of,
)
from ullage.tools.replay.readers._run import DamageReport

_LINKS = ("parentUuid", "leafUuid", "snapshot")
_NOTES = (
    "queue-operation",
    "ai-title",
    "last-prompt",
    "pr-link",
    "custom-title",
    "mode",
)


def _is_line(value: Event) -> bool:
    """Whether the value has a type and a link to other lines.

    Logs of other clients link their lines alike; their messages hold parts, as Gemini's do.
    """
    kind = value.get("type")
    if "parts" in fields_of(value.get("message")):
        return False
    return isinstance(kind, str) and (
        kind in _NOTES or any(key in value for key in _LINKS)
    )


def _events(value: Event) -> Iterator[tuple[str | None, Event]]:
    """The line; of one that carries no piece of a message its links alone."""
    links = ("uuid", "parentUuid", "logicalParentUuid")
    link = {"type": "link", **{key: value.get(key) for key in links}}
    yield None, value if _was_sent(value) else link


def _was_sent(value: Event) -> bool:
    """Not what the client made for the screen: errors, and notes only shown in the transcript."""
    message = value.get("message")
    model = message.get("model") if isinstance(message, dict) else None
    shown_only = value.get("isVisibleInTranscriptOnly") and not value.get(
        "isCompactSummary"
    )
    is_local = (
        value.get("isApiErrorMessage") or model == "<synthetic>" or shown_only
    )
    return value["type"] in ("user", "assistant") and not is_local


# ── threads and order ────────────────────────────────────────────────────────────────────


def _arranged(
    name: str, lines: Lines, report: DamageReport
) -> Iterator[tuple[str, Lines]]:
    """Each session and each sidechain: the lines that belong to its history, in order."""
    parents = dict[str, str]()
    threads = dict[str, Lines]()
    for value, number in lines:
        uuid = _uuid(value, number)
        parent = value.get("parentUuid") or value.get("logicalParentUuid")
        if isinstance(parent, str):
            parents[uuid] = parent
        if not _was_sent(value):
            continue
        if isinstance(
            fields_of(value.get("message")).get("content"), (str, list)
        ):
            thread = _thread(name, value, _chain(parents, uuid)[-1])
            threads.setdefault(thread, []).append((value, number))
        else:
            report.add(number, "a line of a session without a message")
    for thread, of_thread in threads.items():
        parts: dict[str, Lines] = {}
        for value, number in of_thread:
            root = _chain(parents, _uuid(value, number))[-1]
            parts.setdefault(root, []).append((value, number))
        main_lines = [
            line for part in parts.values() for line in _main(parents, part)
        ]
        yield thread, sorted(main_lines, key=lambda line: line[1])


def _thread(name: str, value: Event, root: str) -> str:
    session = value.get("sessionId")
    agent = value.get("agentId")
    session = session if isinstance(session, str) else name
    if not value.get("isSidechain"):
        return session
    return f"{session}/{agent if isinstance(agent, str) else root}"


def _main(parents: Mapping[str, str], part: Lines) -> Lines:
    """The lines on the chain that ends last, and those that belong beside it."""
    chain = set(_chain(parents, _uuid(*part[-1])))
    replies = {
        _reply_of(value)
        for value, number in part
        if _uuid(value, number) in chain
    } - {None}
    of_replies = (value for value, _ in part if _reply_of(value) in replies)
    call_ids = {
        id for value in of_replies for id in _ids("tool_use", "id", value)
    }
    return [
        (value, number)
        for value, number in part
        if _uuid(value, number) in chain
        or _reply_of(value) in replies
        or not call_ids.isdisjoint(_ids("tool_result", "tool_use_id", value))
    ]


def _chain(parents: Mapping[str, str], uuid: str) -> list[str]:
    """A line and those it follows from, back to its root."""
    chain = {uuid: None}
    while (parent := parents.get(uuid)) is not None and parent not in chain:
        chain[parent] = None
        uuid = parent
    return list(chain)


def _uuid(value: Event, number: int) -> str:
    uuid = value.get("uuid")
    return uuid if isinstance(uuid, str) else f"line {number}"


def _reply_of(value: Event) -> str | None:
    """The id of the reply that a line is a piece of."""
    reply = value["message"].get("id")
    return (
        reply
        if value["type"] == "assistant" and isinstance(reply, str)
        else None
    )


def _ids(kind: str, key: str, value: Event) -> Iterator[str]:
    """The call ids in the blocks of one type."""
    content = value["message"]["content"]
    blocks = content if isinstance(content, list) else ()
    return (str(block.get(key)) for block in blocks if _is(block, kind))


# ── messages ─────────────────────────────────────────────────────────────────────────────


def _take(history: LoggedConversation, value: Event) -> None:
    content = value["message"]["content"]
    blocks = (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else content
    )
    filled = [
        b
        for b in blocks
        if not (_is(b, "text") and not str(b.get("text")).strip())
    ]
    if len(filled) < len(blocks):  # a provider sends some, and takes none back
        history.report.repaired(history.line, "an empty text is left out")
    if value["type"] == "assistant":
        _take_reply(history, value, filled)
    else:
        _take_user(history, content, filled)


def _take_reply(
    history: LoggedConversation, value: Event, blocks: list[Any]
) -> None:
    """One line of a reply: begins it, or adds to it."""
    message = value["message"]
    history.of_model(message.get("model"))
    id = str(message.get("id") or _uuid(value, history.line))
    turn = history.replies.get(id)
    if turn is None:
        turn = history.replies[id] = history.reply([], {})
    if blocks:
        earlier = turn.raws[0]["content"] if turn.raws else []
        turn.raws = [{"role": "assistant", "content": [*earlier, *blocks]}]
    calls = [
        str(block.get("id")) for block in blocks if _is(block, "tool_use")
    ]
    history.asks(turn, dict.fromkeys(calls, ""))


def _take_user(
    history: LoggedConversation, content: Any, blocks: list[Any]
) -> None:
    """Results go to the reply that asked; the rest beside them, or is a message by itself."""
    answered = None
    rest = []
    for block in blocks:
        if not _is(block, "tool_result"):
            rest.append(block)
            continue
        turn = history.result(str(block.get("tool_use_id")), block)
        if turn is not None:
            answered = turn
            turn.answered_s = history.stamp
    if answered is not None:
        answered.beside += rest
    elif rest:
        history.say(
            {
                "role": "user",
                "content": content if isinstance(content, str) else rest,
            }
        )


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind


CLAUDE_CODE = LogKind(
    format="anthropic",
    is_line=_is_line,
    take=_take,
    events=_events,
    arranged=_arranged,
)
