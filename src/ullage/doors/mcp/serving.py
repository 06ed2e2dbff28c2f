"""An MCP server of our own: what one tenant of a store holds, listed, read and searched.

So any agent can look into what a colleague's run set aside. The shelf only reads: `answered` gives
the frame that answers one, and does no more I/O than the stores do. What else is served (a user's
decisions, `ullage.tools.hand.serving`) is handed in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from msgspec import UNSET
from msgspec.structs import replace

from ullage import Output, ToolSpec, __version__, open_result
from ullage.core.errors import RefNotFound, StoreError
from ullage.doors.host import Words
from ullage.doors.mcp.frames import (
    Id,
    UnreadableFrame,
    encode,
    failure,
    fields_of,
    reply,
    rpc_message_of,
    value_of,
)
from ullage.doors.mcp.tools import TOOLSET, as_listed, version_of
from ullage.policy import on_one_line
from ullage.stores import Shape, Store, every_ref

LIST = "tool_output_list"

_SEARCH = next(
    tool.name
    for tool in TOOLSET.tools
    if "pattern" in tool.parameters["properties"]
)
"""The tool that searches."""

_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
_STATELESS = ("2026-07-28",)
_ABOUT = (
    "What earlier runs set aside: tool outputs, each under a ref of 16 characters. List them, "
    "search all of them or one, and read on by ref."
)
_PAGE = 50
_BEGINS_CHARS = 100
_SEARCHED_CHARS = 20_000
"""The most characters of an answer that searches everything."""

_NO_METHOD = -32601
_NO_PARAMS = -32602
_NO_VERSION = -32022


def _integer(description: str) -> dict[str, str]:
    return {"type": "integer", "description": description}


def _optional_ref(tool: ToolSpec) -> ToolSpec:
    """The search, which may be of everything."""
    if tool.name != _SEARCH:
        return tool
    properties = dict(tool.parameters["properties"])
    properties["ref_id"] = {
        "type": "string",
        "description": "The ref; all outputs without it",
    }
    parameters = {
        **tool.parameters,
        "properties": properties,
        "required": ["pattern"],
    }
    return replace(tool, parameters=parameters)


_LISTING = ToolSpec(
    LIST,
    "List the tool outputs that were set aside: ref, size, how each begins.",
    {
        "type": "object",
        "properties": {
            "after": {
                "type": "string",
                "description": "The last ref of the page before",
            },
            "limit": _integer(f"Outputs to list (default: {_PAGE})"),
        },
    },
)
_TOOLS = (_LISTING, *map(_optional_ref, TOOLSET.tools))
_NAMES = tuple(tool.name for tool in _TOOLS)
_WORDS = Words(toolset=TOOLSET)


class Shelf:
    """Several stores, read as one: a ref is that of the first that has it.

    Args:
        stores: the stores.
        tenant: whose outputs; nobody else's can be reached.
    """

    name: str = "shelf"

    def __init__(self, stores: Sequence[Store], tenant: str) -> None:
        self._stores = tuple(stores)
        self._tenant = tenant

    def put(self, tenant: str, outputs: Sequence[Output]) -> None:
        """Refused: it only reads."""
        raise StoreError(self.name, "put", "it is only read from")

    def stat(self, tenant: str, ref: str) -> Shape:
        """`Blobs.stat`."""
        return self._holder(ref).stat(self._tenant, ref)

    def chunk(self, tenant: str, ref: str, n: int) -> str:
        """`Blobs.chunk`."""
        return self._holder(ref).chunk(self._tenant, ref, n)

    def get(self, tenant: str, ref: str) -> Output:
        """`Blobs.get`."""
        return self._holder(ref).get(self._tenant, ref)

    def refs(self, cursor: str = "") -> Iterator[str]:
        """Every ref behind one, in their order, each once."""
        refs = {
            ref
            for store in self._stores
            for ref in every_ref(store, self._tenant)
        }
        return (ref for ref in sorted(refs) if ref > cursor)

    def _holder(self, ref: str) -> Store:
        for store in self._stores:
            try:
                store.stat(self._tenant, ref)
            except RefNotFound:
                continue
            return store
        raise RefNotFound(self.name, ref)


class MoreTools(Protocol):
    """Tools and prompts that are served beside those of the shelf.

    Attributes:
        tools: as MCP lists them.
        prompts: as MCP lists them.
        about: a sentence for the instructions.
    """

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The tools."""

    @property
    def prompts(self) -> Sequence[Mapping[str, Any]]:
        """The prompts."""

    @property
    def about(self) -> str:
        """The sentence."""

    def call(
        self, name: str, arguments: Mapping[str, Any]
    ) -> tuple[str, bool]:
        """Call one of the tools: what the model reads, and whether that is an error."""

    def prompt(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """The text of one of the prompts; None: there is none of this name."""


def answered(
    frame: bytes, shelf: Shelf, more: MoreTools | None = None
) -> bytes:
    """The frame that answers one; b"" where none is due.

    Args:
        frame: as it came.
        shelf: what is read.
        more: what is served beside that; None: nothing.
    """
    message = rpc_message_of(frame)
    if (
        message is None
        or message.method is UNSET
        or not isinstance(message.id, Id)
    ):
        return b""
    try:
        fields = {} if message.params is UNSET else fields_of(message.params)
        params = {name: value_of(raw) for name, raw in fields.items()}
    except UnreadableFrame:
        return failure(message.id, _NO_PARAMS, "the params are no object")
    return _reply(message.id, str(message.method), params, shelf, more)


def _reply(
    id: Id,
    method: str,
    params: Mapping[str, Any],
    shelf: Shelf,
    more: MoreTools | None,
) -> bytes:
    version = version_of(params)
    if version and version not in _STATELESS:
        data = {"supported": list(_STATELESS), "requested": version}
        return failure(
            id, _NO_VERSION, "this protocol version is not spoken", data
        )
    result: dict[str, Any]
    if method == "initialize":
        requested = params.get("protocolVersion")
        result = {
            "protocolVersion": requested
            if requested in _VERSIONS
            else _VERSIONS[0],
            **_self(more),
        }
    elif method == "server/discover":
        versions = {"supportedVersions": list(_STATELESS)}
        result = {**versions, **_self(more), **_CACHED}
    elif method == "ping":
        result = {}
    elif method == "tools/list":
        result = {
            "tools": [
                *map(as_listed, _TOOLS),
                *(() if more is None else more.tools),
            ],
            **(_CACHED if version else {}),
        }
    elif method == "tools/call":
        result = _called(
            params.get("name"), params.get("arguments") or {}, shelf, more
        )
    elif method == "prompts/list" and more is not None:
        result = {
            "prompts": list(more.prompts),
            **(_CACHED if version else {}),
        }
    elif method == "prompts/get" and more is not None:
        prompt = _prompted(
            params.get("name"), params.get("arguments") or {}, more
        )
        if prompt is None:
            return failure(id, _NO_PARAMS, "there is no prompt of this name")
        result = prompt
    else:
        return failure(id, _NO_METHOD, f"{method[:80]} is not known here")
    return reply(
        id, {**result, "resultType": "complete"} if version else result
    )


_CACHED = {"ttlMs": 3_600_000, "cacheScope": "public"}


def _self(more: MoreTools | None) -> dict[str, Any]:
    about = {"name": "ullage", "version": __version__}
    prompts: dict[str, Any] = {} if more is None else {"prompts": {}}
    return {
        "capabilities": {"tools": {}, **prompts},
        "serverInfo": about,
        "instructions": _ABOUT if more is None else f"{_ABOUT} {more.about}",
    }


def _prompted(
    name: object, arguments: object, more: MoreTools
) -> dict[str, Any] | None:
    """What a prompt comes to: one message of the user's."""
    options = arguments if isinstance(arguments, dict) else {}
    text = more.prompt(str(name), options)
    if text is None:
        return None
    content = {"type": "text", "text": text}
    return {"messages": [{"role": "user", "content": content}]}


def _called(
    name: object, arguments: object, shelf: Shelf, more: MoreTools | None
) -> dict[str, Any]:
    options = arguments if isinstance(arguments, dict) else {}
    names = [] if more is None else [tool["name"] for tool in more.tools]
    if more is not None and name in names:
        text, is_error = more.call(str(name), options)
        return _said(text, is_error=is_error)
    if name not in _NAMES:
        known = ", ".join((*_NAMES, *names))
        return _said(
            f"There is no tool of this name; there are {known}.",
            is_error=True,
        )
    try:
        if name == LIST:
            return _said(_listed(shelf, options))
        if name == _SEARCH and not options.get("ref_id"):
            return _searched(shelf, options)
        answer = open_result(
            str(name), encode(options).decode(), shelf, words=_WORDS
        )
    except StoreError as error:
        return _said(str(error), is_error=True)
    return _said(answer.text, is_error=answer.is_error)


def _said(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _listed(shelf: Shelf, options: Mapping[str, Any]) -> str:
    """A page of refs, each with how its output begins."""
    limit = options.get("limit")
    cursor = options.get("after")
    limit = min(max(limit, 1), 10 * _PAGE) if isinstance(limit, int) else _PAGE
    refs = list(
        islice(
            shelf.refs(cursor if isinstance(cursor, str) else ""), limit + 1
        )
    )
    lines = [_line(shelf, ref) for ref in refs[:limit]]
    if len(refs) > limit:
        lines.append(
            f'[there are more. Next: {LIST}(after="{refs[limit - 1]}")]'
        )
    return "\n".join(lines) or "[nothing is kept here]"


def _line(shelf: Shelf, ref: str) -> str:
    shape = shelf.stat("", ref)
    begins = shelf.chunk("", ref, 0) if shape.chunks else ""
    newlines = sum(extent.newlines for extent in shape.chunks)
    size = f"{shape.chars:,} characters, {newlines + 1:,} lines"
    return f"{ref}  {size}  {on_one_line(begins, _BEGINS_CHARS)}"


def _searched(shelf: Shelf, options: Mapping[str, Any]) -> dict[str, Any]:
    """The matches in every output, as far as there is room for them."""
    sections = []
    room = _SEARCHED_CHARS
    refs = shelf.refs()
    for ref in refs:
        arguments = encode({**options, "ref_id": ref}).decode()
        answer = open_result(_SEARCH, arguments, shelf, words=_WORDS)
        if answer.is_error:
            return _said(answer.text, is_error=True)
        if answer.text.startswith("[0 of 0 "):
            continue
        sections.append(f"{ref}:\n{answer.text}")
        room -= len(sections[-1])
        if room < 0:
            remaining = sum(1 for _ in refs)
            sections.append(
                f"[{remaining:,} outputs behind {ref} were not searched]"
            )
            break
    return _said("\n\n".join(sections) or "[no output has a matching line]")
