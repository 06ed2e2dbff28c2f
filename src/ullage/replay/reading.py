"""Read a view as a model would: by its visible text, and by the calls its notices name.

The gates, the tests and anybody who wants proof use this. It knows the wire and the notices,
and nothing of windows, ledgers or stores.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from ullage.session import Session
from ullage.values.notices import Pointer, next_offset, pointers
from ullage.values.toolset import CONTINUATION, READ

__all__ = [
    "Library",
    "SessionLibrary",
    "ask",
    "content_of",
    "follow",
    "leads_to",
    "reachable",
    "reachable_with",
    "refs_in",
    "results",
    "texts_of",
    "visible",
]

Wire = Mapping[str, Any]

_INDEX = "Index of messages"
_TEXTS = ("text", "input_text", "output_text")


def content_of(message: Wire) -> Any:
    """What a message says: its content, or its parts."""
    return message["parts"] if "parts" in message else message.get("content")


def texts_of(content: Any) -> list[str]:
    """The texts of a message's or of a result's content."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else ()
    return [block["text"] for block in blocks if _is_text(block)]


def _is_text(block: Wire) -> bool:
    if "type" in block:
        return block["type"] in _TEXTS
    return isinstance(block.get("text"), str) and not block.get("thought")


def results(message: Wire) -> Iterator[tuple[str, list[str]]]:
    """Call id and texts of every tool result in a message of any format."""
    if "parts" in message:
        yield from _responses(message["parts"])
    elif str(message.get("type")).endswith("_call_output"):
        yield str(message.get("call_id")), texts_of(message.get("output"))
    elif message.get("role") == "tool":
        yield str(message.get("tool_call_id")), texts_of(message.get("content"))
    elif isinstance(message.get("content"), list):
        for block in message["content"]:
            if block.get("type") == "tool_result":
                yield str(block["tool_use_id"]), texts_of(block.get("content"))


def _responses(parts: Sequence[Wire]) -> Iterator[tuple[str, list[str]]]:
    """Id (or name) and text of each functionResponse: what its wrapper holds, as text."""
    for part in parts:
        given = part.get("functionResponse")
        if given is not None:
            value = given["response"]
            if len(value) == 1 and set(value) <= {"result", "output", "error"}:
                (value,) = value.values()
            if not isinstance(value, str):
                value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            blobs = [blob.get("inlineData", {}) for blob in given.get("parts", ())]
            plain = [blob["data"] for blob in blobs if blob.get("mimeType") == "text/plain"]
            texts = [value, *(base64.b64decode(data).decode() for data in plain)]
            yield str(given.get("id") or given["name"]), texts


def visible(messages: Sequence[Wire]) -> Iterator[str]:
    """Every text a model sees, call arguments included."""
    for message in messages:
        yield from texts_of(content_of(message))
        for part in message.get("parts", ()):
            if "functionCall" in part:
                yield json.dumps(part["functionCall"].get("args"), ensure_ascii=False)
        for call in message.get("tool_calls") or ():
            yield str(call.get("function", {}).get("arguments", ""))
            yield str(call.get("custom", {}).get("input", ""))
        if message.get("type") in ("function_call", "custom_tool_call"):
            yield str(message.get("arguments") or message.get("input") or "")
        blocks = message["content"] if isinstance(message.get("content"), list) else ()
        for block in blocks:
            if block.get("type") == "tool_use":
                yield json.dumps(block["input"], ensure_ascii=False)
        for _, texts in results(message):
            if message.get("role") != "tool":
                yield from texts


def ask(session: Session, tool: str, arguments: Wire) -> str:
    """Make a recall call in the session's own format.

    Returns:
        The text that comes back.
    """
    call: dict[str, Any]
    if session.state.format == "gemini":
        call = {"functionCall": {"name": tool, "args": dict(arguments)}}
        (text,) = session.recall(call)["functionResponse"]["response"].values()
        return str(text)
    if session.state.format == "anthropic":
        call = {"type": "tool_use", "id": "toolu_read", "name": tool, "input": dict(arguments)}
        return str(session.recall(call)["content"])
    body = {"name": tool, "arguments": json.dumps(arguments)}
    if session.state.format == "openai-responses":
        call = {"type": "function_call", "call_id": "call_read", **body}
        return str(session.recall(call)["output"])
    call = {"id": "call_read", "type": "function", "function": body}
    return str(session.recall(call)["content"])


def follow(session: Session, ref: str, offset: int = 0) -> str:
    """Read on from a character to the end, page after page, as each page says.

    Raises:
        ValueError: a page says to read on from where it began.
    """
    words, pages = session.window.words, list[str]()
    while True:
        arguments = {"tool_call_id": ref, "offset": offset}
        text = ask(session, words.prefix + CONTINUATION, arguments)
        more = next_offset(text, words.toolset)
        if more is None:
            return "".join([*pages, text])
        page, following = more
        if following <= offset:
            raise ValueError(f"paging of {ref!r} does not move on from character {offset:,}")
        pages.append(page)
        offset = following


def reachable(session: Session, texts: Sequence[str], opened: dict[str, str]) -> None:
    """Open every ref that these texts name, and every ref an index among them names."""

    def leads(ref: str) -> list[str]:
        if ref in opened:
            return []
        opened[ref] = follow(session, ref)
        return leads_to(opened[ref])

    reachable_with(leads, [pointer.ref for text in texts for pointer in pointers(text)])


def leads_to(text: str) -> list[str]:
    """The refs that an index of messages names; none if the text is no index."""
    return [pointer.ref for pointer in refs_in(text)] if text.startswith(_INDEX) else []


def reachable_with(leads: Callable[[str], Iterable[str]], refs: Iterable[str]) -> list[str]:
    """These refs, and every ref that they lead to, each once."""
    found, queue = dict[str, None](), list(refs)
    while queue:
        ref = queue.pop()
        if ref not in found:
            found[ref] = None
            queue += leads(ref)
    return list(found)


class Library(Protocol):
    """Opens refs as what is judged documents it."""

    def whole(self, ref: str) -> str:
        """Everything kept under a ref, page after page."""

    def leads(self, ref: str) -> Sequence[str]:
        """The refs that what is kept under a ref names, if it is an index of others."""

    def named(self, text: str) -> Sequence[Pointer]:
        """Every ref that a visible text names, in order."""


class SessionLibrary:
    """Opens refs by the session's own recall tools; nothing, if it offers none that does."""

    def __init__(self, session: Session) -> None:
        """Open refs of this session. Each is read once."""
        self._session = session
        self._wholes: dict[str, str] = {}

    def whole(self, ref: str) -> str:
        """See `Library.whole`."""
        if ref not in self._wholes:
            pages = follow(self._session, ref) if self._reads_on else self.open(Pointer(ref, 0))
            self._wholes[ref] = pages
        return self._wholes[ref]

    def leads(self, ref: str) -> Sequence[str]:
        """See `Library.leads`."""
        return leads_to(self.whole(ref))

    def named(self, text: str) -> Sequence[Pointer]:
        """See `Library.named`."""
        return refs_in(text)

    def open(self, pointer: Pointer) -> str:
        """What one call with a ref returns."""
        words = self._session.window.words
        if self._reads_on:
            arguments = {"tool_call_id": pointer.ref, "offset": pointer.offset}
            return ask(self._session, words.prefix + CONTINUATION, arguments)
        if not words.recall or READ not in words.toolset.names:
            return ""
        return ask(self._session, words.prefix + READ, {"ref_id": pointer.ref})

    @property
    def _reads_on(self) -> bool:
        words = self._session.window.words
        return words.recall and CONTINUATION in words.toolset.names


def refs_in(text: str) -> Sequence[Pointer]:
    """Every ref that a text names in ullage's own words."""
    return _pointers(text) if any(name in text for name in _MAY_NAME) else ()


_MAY_NAME = ("ref", "get_continuation(", ".txt")


@lru_cache(maxsize=4096)
def _pointers(text: str) -> tuple[Pointer, ...]:
    return tuple(pointers(text))
