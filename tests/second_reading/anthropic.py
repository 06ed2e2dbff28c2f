"""Anthropic Messages, read from the rules A1 to A27.

Not here, since one request alone does not show them: A13, A15, A16 and A17 (need what was
received), A26 (which models refuse is not said), and A2, A10 and A27 (they only permit).
"""

import base64
import itertools
import re
import struct
from typing import Any

Block = dict[str, Any]
Message = dict[str, Any]
Call = tuple[int, Block]

ID = re.compile(r"[a-zA-Z0-9_-]+")
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
MODEL = re.compile(
    r"claude-(?:([a-z]+)-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?"
)

FIELDS = {
    "text": {"text", "citations", "cache_control"},
    "image": {"source", "transformations", "cache_control"},
    "document": {"source", "title", "context", "citations", "cache_control"},
    "search_result": {
        "source",
        "title",
        "content",
        "citations",
        "cache_control",
    },
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "tool_use": {
        "id",
        "name",
        "input",
        "caller",
        "toolset_name",
        "cache_control",
    },
    "tool_result": {
        "tool_use_id",
        "content",
        "is_error",
        "toolset_name",
        "cache_control",
    },
    "container_upload": {"file_id", "cache_control"},
    "tool_addition": {"tool", "cache_control"},
    "tool_removal": {"tool", "cache_control"},
}
"""The fields the table of block types gives. `cache_control` on tool blocks: A21 names only
thinking and empty text as places where it may not stand, so it is read as allowed there."""

NOT_NULL = {
    "tool_use": {"caller"},
    "tool_result": {"is_error"},
    "search_result": {"citations"},
}
"""Fields that the SDK's types let be left out and not be null; in all others it lets both."""

SERVED = {
    "id",
    "name",
    "input",
    "server_name",
    "tool_use_id",
    "content",
    "caller",
    "is_error",
}
"""The fields of what the server's tools say and give. It goes back as it came, and may have come
with more than the table has: so only a null there is read as one that somebody added."""

SOURCES = {"type", "media_type", "data", "url", "file_id", "content"}

COMPACTION = {
    "type",
    "content",
    "encrypted_content",
    "signature",
    "tool_changes",
    "cache_control",
}
THOUGHTS = ("thinking", "redacted_thinking")


def broken(request: dict[str, Any]) -> set[str]:
    """The ids of the rules this body breaks."""
    messages: list[Message] = request.get("messages") or []
    found = (
        first(messages)
        | pairs(messages)
        | names(request, messages)
        | texts(messages)
        | system_texts(request)
        | last(request, messages)
        | open_loop(request, messages)
        | server_tools(request, messages)
        | system_messages(messages)
        | markers(request, messages)
        | compactions(messages)
        | fields(messages)
        | images(request, messages)
    )
    return found | ({"A24"} if forced(request) else set())


def blocks(message: Message) -> list[Block]:
    """The content of a message as blocks; a string is one text."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or [])


def of(message: Message, kind: str) -> list[Block]:
    return [b for b in blocks(message) if b.get("type") == kind]


def turns(messages: list[Message]) -> list[tuple[str, list[Message]]]:
    """Runs of messages of one role: A2 says they are merged."""
    return [
        (role, list(run))
        for role, run in itertools.groupby(messages, lambda m: m["role"])
    ]


def first(messages: list[Message]) -> set[str]:
    """A1."""
    if not messages:
        return {"A1"}
    if messages[0]["role"] == "system":
        return set()  # A20 names this case, so it alone is reported
    begins = blocks(messages[0])[:1]
    compacted = bool(begins) and begins[0].get("type") == "compaction"
    return set() if messages[0]["role"] == "user" or compacted else {"A1"}


def pairs(messages: list[Message]) -> set[str]:
    """A3 to A7.

    A3 says "the immediately next message", and A2 merges what one role says in a row. So the
    next message is the next *user turn*: the doubts at the end of the document agree that
    results split over two user messages break A6, not A3. But "which must be `user`" is taken
    by its letter: another assistant message behind the calls breaks A3.
    "That user message" of A5 and A6 is the one that answers; a result that answers nothing
    breaks A4 or A7 alone.
    """
    found: set[str] = set()
    calls = [b["id"] for m in messages for b in of(m, "tool_use")]
    results = [
        b["tool_use_id"] for m in messages for b in of(m, "tool_result")
    ]
    if len(set(calls)) < len(calls) or len(set(results)) < len(results):
        found.add("A7")
    said = spoken(messages)
    for at, message in enumerate(said):
        if message["role"] == "user" and at and said[at - 1]["role"] == "user":
            continue  # a later part of a turn
        before = said[at - 1] if at else {"role": "user"}
        calling = (
            of(before, "tool_use") if before["role"] == "assistant" else []
        )
        asked = {b["id"] for b in calling}
        run = said[at:] if message["role"] == "user" else []
        found |= answers(
            asked,
            list(itertools.takewhile(lambda m: m["role"] == "user", run)),
        )
    if said and said[-1]["role"] == "assistant" and of(said[-1], "tool_use"):
        found.add("A3")
    return found


def answers(asked: set[str], turn: list[Message]) -> set[str]:
    """A3 to A6 for the calls of one assistant message and the user turn behind it."""
    found: set[str] = set()
    open_calls = set(asked)
    pure = True
    for at, message in enumerate(turn):
        for block in blocks(message):
            if block.get("type") != "tool_result":
                pure = False
            elif block["tool_use_id"] in open_calls:
                open_calls.remove(block["tool_use_id"])
                found |= set() if pure else {"A5"}
                found |= {"A6"} if pure and at else set()
            elif block["tool_use_id"] not in asked:
                found.add("A4")
    return found | ({"A3"} if open_calls else set())


def names(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """A8."""
    calls = [b for m in messages for b in of(m, "tool_use")]
    ids = [b["id"] for b in calls]
    ids += [b["tool_use_id"] for m in messages for b in of(m, "tool_result")]
    tools = [t["name"] for t in request.get("tools") or [] if "name" in t]
    called = [b["name"] for b in calls]
    right = all(ID.fullmatch(i) for i in ids) and all(
        NAME.fullmatch(n) for n in tools + called
    )
    return set() if right else {"A8"}


def texts(messages: list[Message]) -> set[str]:
    """A9. Texts inside a `tool_result` are not settled, so they are left alone."""
    for at, message in enumerate(messages):
        final = at == len(messages) - 1 and message["role"] == "assistant"
        if not message.get("content"):
            if not final:
                return {"A9"}
        elif any(not b["text"].strip() for b in of(message, "text")):
            return {"A9"}
    for block in walk([blocks(m) for m in messages]):
        if any(not text.strip() for text in held(block)):
            return {"A9"}
    return set()


def held(block: Block) -> list[str]:
    """The texts that stand inside a document or a search result."""
    if block.get("type") not in ("document", "search_result"):
        return []
    inside = block.get("content") if block["type"] == "search_result" else None
    source = block.get("source")
    if isinstance(source, dict) and source.get("type") in ("text", "content"):
        inside = (
            source.get("data")
            if source["type"] == "text"
            else source.get("content")
        )
    if isinstance(inside, str):
        return [inside]
    items = inside if isinstance(inside, list) else []
    return [
        item.get("text", "") for item in items if item.get("type") == "text"
    ]


def system_texts(request: dict[str, Any]) -> set[str]:
    """A9 for the top-level `system`: its blocks are text blocks too."""
    system = request.get("system")
    given = system if isinstance(system, list) else []
    return {"A9"} if any(not b["text"].strip() for b in given) else set()


def version(request: dict[str, Any]) -> tuple[str, float] | None:
    """Family and version of the model, e.g. ("opus", 4.6); None when it is not a Claude."""
    match = MODEL.search(request.get("model") or "")
    if match is None:
        return None
    return match[1] or "", int(match[2]) + int(match[3] or 0) / 10


def last(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """A11 and A12. A paused turn may stand last: it is known by a server tool's call in it that
    has no result yet, in the messages that A2 merges."""
    if not messages or messages[-1]["role"] != "assistant":
        return set()
    kinds = [b.get("type", "") for b in blocks(messages[-1])]
    model = version(request)
    if model is not None and model[1] >= 4.6:
        said = turns(spoken(messages))[-1][1]
        return set() if served(said, [])[1] else {"A11"}
    final = of(messages[-1], "text")[-1:]
    ends = (
        bool(final)
        and kinds[-1] == "text"
        and final[0]["text"] != final[0]["text"].rstrip()
    )
    return {"A12"} if ends else set()


def open_loop(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """A14, manual thinking only, and only while results are the last thing said.

    The other reading holds for every request with manual thinking, also after a closed turn;
    but the rule's first words are "during a tool loop". The "final assistant turn" is the whole
    loop: all the assistant said since the user last said anything but results. Later steps need
    not begin with thinking, but the first one does. System messages belong to neither side.
    The last message tells whether the loop goes on: words of the user's in one of their own end
    it, and words beside the results do not.
    What a compaction block opens was cut there by the provider itself.
    """
    if (request.get("thinking") or {}).get("type") != "enabled":
        return set()
    heard = spoken(messages)
    if not heard or not of(heard[-1], "tool_result"):
        return set()
    merged = turns(heard)
    said = [
        n
        for n, (role, run) in enumerate(merged[:-1])
        if role == "user" and not pure(run)
    ]
    loop = merged[said[-1] + 1 if said else 0 : -1]
    replies = [run[0] for role, run in loop if role == "assistant"]
    opening = [b.get("type") for m in replies[:1] for b in blocks(m)][:1]
    return (
        set()
        if not replies or set(opening) & {*THOUGHTS, "compaction"}
        else {"A14"}
    )


def pure(run: list[Message]) -> bool:
    """Whether nothing but results was said."""
    return all(b.get("type") == "tool_result" for m in run for b in blocks(m))


def is_result(block: Block) -> bool:
    """Whether a block is the result of a server's tool."""
    return str(block.get("type")).endswith("_tool_result")


def is_call(block: Block) -> bool:
    """Whether a block calls a server's tool."""
    return block.get("type") in ("server_tool_use", "mcp_tool_use")


def server_tools(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """A18 and A19, over merged turns.

    An unanswered `server_tool_use` is open while nobody speaks after it, or where client calls
    stand beside it: its result then stands in the next assistant turn, for good.
    `mcp_tool_use` is not named in A18; its pairs are read the same way.
    """
    found: set[str] = set()
    merged = turns(spoken(messages))
    owed: list[Call] = []
    for at, (role, run) in enumerate(merged):
        if role != "assistant":
            continue
        overdue, owed, stray = served(
            run, owed, sum(len(m) for _, m in merged[:at])
        )
        found |= {"A18"} if overdue or stray else set()
        if owed and any(of(m, "tool_use") for m in run):
            found |= mixed(
                request, merged[at + 1 :], [call for _, call in owed]
            )
        elif owed and at < len(merged) - 1:
            found.add("A18")
            owed = []
    return found


def served(
    run: list[Message], owed: list[Call], start: int = 0
) -> tuple[list[Call], list[Call], bool]:
    """What of the calls that were owed, and of those in this reply, has no result at its end; and
    whether a result answers none. An id may come again: a result answers the first open call of
    the newest message that has one. `start` is the number of the first message.
    """
    calls = list(owed)
    stray = False
    for at, block in (
        (at, b) for at, m in enumerate(run, start) for b in blocks(m)
    ):
        if is_call(block):
            calls.append((at, block))
        elif is_result(block) and block.get("type") != "tool_result":
            fits = [
                call for call in calls if call[1]["id"] == block["tool_use_id"]
            ]
            stray = stray or not fits
            for call in [call for call in fits if call[0] == fits[-1][0]][:1]:
                calls.remove(call)
    return (
        [c for c in calls if c[0] < start],
        [c for c in calls if c[0] >= start],
        stray,
    )


def spoken(messages: list[Message]) -> list[Message]:
    """All but the system messages: A20 says where those may stand, and they part nothing else."""
    return [m for m in messages if m["role"] != "system"]


def mixed(
    request: dict[str, Any],
    after: list[tuple[str, list[Message]]],
    owed: list[Block],
) -> set[str]:
    """A19: what follows a turn with client calls and unfinished server calls.

    "The same tools": a request that names its model and sends no tools sends none of them; a bare
    history says nothing.
    """
    follow = after[0][1] if after and after[0][0] == "user" else []
    if any(b.get("type") != "tool_result" for m in follow for b in blocks(m)):
        return {"A19"}
    need = {b["name"] for b in owed if b["type"] == "server_tool_use"}
    closed = any(role == "assistant" for role, _ in after)
    whole = "tools" in request or bool(request.get("model"))
    if whole and follow and not closed:
        have = {t.get("name") for t in request.get("tools") or []}
        return {"A19"} if need - have else set()
    return set()


def system_messages(messages: list[Message]) -> set[str]:
    """A20. One that stands first is not A1 as well, one that parts a call from its result not
    A3 and A4: the rule that names the case goes before those that hold in general."""
    merged = turns(messages)
    for at, (role, _) in enumerate(merged):
        if role != "system":
            continue
        before = merged[at - 1] if at else ("", [])
        after = merged[at + 1][0] if at + 1 < len(merged) else "assistant"
        ends = blocks(before[1][-1])[-1:] if before[1] else []
        parts = before[0] == "assistant" and bool(
            of(before[1][-1], "tool_use")
        )
        follows = before[0] == "user" or (
            bool(ends) and is_result(ends[0]) and not parts
        )
        if not follows or after != "assistant":
            return {"A20"}
    return set()


def walk(value: Any) -> list[Block]:
    """Every object within `value` that is a block or a tool, in the order it is sent.

    What the server's tools gave is not looked into: it goes back as it came."""
    if isinstance(value, list):
        return [b for v in value for b in walk(v)]
    if isinstance(value, dict):
        theirs = is_result(value) and value.get("type") != "tool_result"
        return [value, *([] if theirs else walk(value.get("content")))]
    return []


def markers(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """A21."""
    sent = [
        *walk(request.get("tools")),
        *walk(request.get("system")),
        *walk(messages),
    ]
    marked = [b for b in sent if b.get("cache_control")]
    for block in marked:
        if block.get("type") in THOUGHTS or (
            block.get("type") == "text" and not block["text"]
        ):
            return {"A21"}
    top = request.get("cache_control")
    lives = [lifetime(b["cache_control"]) for b in marked]
    final = blocks(messages[-1])[-1:] if messages else []
    if (
        top
        and final
        and lifetime(top) != lifetime(final[0].get("cache_control") or top)
    ):
        return {"A21"}
    lives += [lifetime(top)] if top else []
    return {"A21"} if len(lives) > 4 or lives != sorted(lives) else set()


def lifetime(marker: dict[str, Any]) -> str:
    """ "1h" or "5m", the default; as text, "1h" sorts before "5m" as the rule wants."""
    return marker.get("ttl") or "5m"


def compactions(messages: list[Message]) -> set[str]:
    """A22, what shows in one request; unsigned blocks may stand in any assistant message.
    The table of types adds that an empty string is not a summary."""
    every = [b for m in messages for b in of(m, "compaction")]
    signed = [b for b in every if b.get("signature")]
    if any(b.get("content") == "" for b in every) or any(
        set(b) - COMPACTION for b in every
    ):
        return {"A22"}
    if len(signed) > 1 or (signed and blocks(messages[0])[:1] != signed):
        return {"A22"}
    return set()


def fields(messages: list[Message]) -> set[str]:
    """A23, for the types whose fields the table gives, and for the messages themselves.

    A marker on thinking is A21's, which names it; a null there is a field like any other.
    """
    for message in messages:
        extra = (
            {"clear_at", "output_config"}
            if message["role"] == "system"
            else set()
        )
        if set(message) - {"role", "content"} - extra:
            return {"A23"}
    for block in walk([blocks(m) for m in messages]):
        if foreign(block):
            return {"A23"}
    return set()


def foreign(block: Block) -> set[str]:
    """The fields of a block, or of its source, that nobody knows."""
    kind = block.get("type", "")
    if is_call(block) or (is_result(block) and kind != "tool_result"):
        return (
            {name for name in block if block[name] is None}
            - SERVED
            - {"cache_control"}
        )
    if kind not in FIELDS:
        return set()
    found = set(block) - FIELDS[kind] - {"type"}
    found |= {
        name
        for name in NOT_NULL.get(kind, ())
        if name in block and block[name] is None
    }
    found -= (
        {"cache_control"}
        if kind in THOUGHTS and block.get("cache_control")
        else set()
    )
    source = block.get("source")
    return found | (
        set(source) - SOURCES if isinstance(source, dict) else set()
    )


def forced(request: dict[str, Any]) -> bool:
    """A24. Mythos is not named there, only Fable; Sonnet 5.5 is read as "5.5 and later"."""
    if (request.get("tool_choice") or {}).get("type") not in ("any", "tool"):
        return False
    family, number = version(request) or ("", 0.0)
    refuses = (family == "fable" and number >= 5.1) or (
        family == "sonnet" and number >= 5.5
    )
    return refuses or (request.get("thinking") or {}).get("type") == "enabled"


def images(request: dict[str, Any], messages: list[Message]) -> set[str]:
    """A25, for images sent as base64; sizes are read from PNG headers only.

    Which models have 200k is not said. Claude 5 has 1M, so 600 holds there and where no model
    is named, 100 before it. "10 MB each" is read as decoded bytes of 1,000,000 x 10 or more;
    the other reading counts the base64 characters.
    """
    found = [
        b
        for b in walk([blocks(m) for m in messages])
        if b.get("type") == "image"
    ]
    model = version(request)
    if len(found) > (100 if model is not None and model[1] < 5 else 600):
        return {"A25"}
    side = 2000 if len(found) > 20 else 8000
    for block in found:
        source = block.get("source") or {}
        raw = (
            base64.b64decode(source["data"])
            if source.get("type") == "base64"
            else b""
        )
        if len(raw) > 10_000_000 or max(size(raw)) > side:
            return {"A25"}
    return set()


def size(raw: bytes) -> tuple[int, int]:
    """Width and height of a PNG; zeros for what is none."""
    if raw[:8] != b"\x89PNG\r\n\x1a\n":
        return 0, 0
    width, height = struct.unpack(">II", raw[16:24])
    return width, height
