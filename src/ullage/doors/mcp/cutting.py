"""A tool's result that is too large: what is shown of it, and the originals to keep.

    text, text of embedded resources   `stages.shorten`: head, tail and error lines; JSON stays JSON
    structuredContent                  `shorter`, checked against the declared schema, with a
                                       notice of its own in it (`noticed`)
    images, audio, links, errors       whole

All of a result has one limit, text and structure together. A structure that says what the text
says needs no ref of its own. Clients show the model the text, the structure, or both: so each of
them that is cut says so, and how to read on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Raw

from ullage import Output
from ullage.doors.host import Words, cut_text
from ullage.doors.mcp.frames import (
    UnreadableFrame,
    encode,
    fields_of,
    items_of,
    value_of,
)
from ullage.doors.mcp.noticed import declared_names, notice_name
from ullage.doors.mcp.schema import faults_of
from ullage.doors.mcp.shorter import Fault, shorter
from ullage.policy import level
from ullage.stores import ref_of

WHOLE_CHARS = 500_000
"""A structure that cannot be shortened under its schema goes whole up to this size."""

UNLISTED = b"unlisted"
"""In place of the schema of a tool that was in no list: nobody knows what it declared."""

_NOTICE_CHARS = 240
"""About how long a notice is."""

_LEAST_CHARS = 800
"""No text is cut to less: where there are more of them, neighbours become one."""


class CutResult(NamedTuple):
    """A result in part: as JSON, and the originals that its notices name."""

    result: bytes
    outputs: tuple[Output, ...]


class _Leaf(NamedTuple):
    """A text of a result.

    Attributes:
        at: the content blocks it takes the place of, from ``at`` to before ``stop``.
        text: the text.
        block: the fields of the first of these blocks.
    """

    at: int
    stop: int
    text: str
    block: dict[str, Raw]


def cut(
    result: bytes | Raw,
    tool: str,
    limit_chars: int,
    schema: bytes | None,
    words: Words,
    whole_chars: int = WHOLE_CHARS,
) -> CutResult | None:
    """Cut a result to a limit, with the originals to store first; None if it needs no cut.

    Args:
        result: of ``tools/call``, as JSON.
        tool: the tool's name.
        limit_chars: the most characters of text and structure together.
        schema: what the tool declared; None if nothing; `UNLISTED` if nobody knows.
        words: the wording of notices.
        whole_chars: a structure that cannot be shortened goes whole up to this size; beyond it
            the result becomes an error that says how to read it.

    Raises:
        Unreadable: it is not a result of a call.
    """
    fields = fields_of(result)
    if not _is_complete(fields):
        return None
    blocks = items_of(fields["content"]) if "content" in fields else []
    structure = _structure_of(fields)
    leaves = _leaves(blocks)
    if sum(_sizes(leaves, structure)) <= limit_chars:
        return None
    if structure is not None and _may_be_text(structure, schema):
        fields = {
            name: raw
            for name, raw in fields.items()
            if name != "structuredContent"
        }
        if not _says_the_same(structure, leaves):
            blocks = [*blocks, _said(structure.decode())]
            leaves = _leaves(blocks)
        structure = None
    merged = _fewer(leaves, limit_chars)
    height = max(level(_sizes(merged, structure), limit_chars), _LEAST_CHARS)
    content, outputs = _cut_texts(blocks, merged, tool, height, words)
    if structure is None:
        if not outputs:
            return None
        return CutResult(encode({**fields, "content": content}), outputs)
    beside = _Structure(structure, schema, _says_the_same(structure, leaves))
    return _with_structure(
        fields, content, outputs, beside, height, words, whole_chars
    )


def _sizes(leaves: Sequence[_Leaf], structure: bytes | None) -> list[int]:
    """How many characters each text has, and the structure."""
    texts = [len(leaf.text) for leaf in leaves]
    return texts if structure is None else [*texts, len(structure.decode())]


def _is_complete(fields: dict[str, Raw]) -> bool:
    """Whether it is the final result of a call that went well."""
    kind = (
        value_of(fields["resultType"])
        if "resultType" in fields
        else "complete"
    )
    is_error = value_of(fields["isError"]) if "isError" in fields else False
    return kind == "complete" and is_error is not True and "task" not in fields


def _structure_of(fields: dict[str, Raw]) -> bytes | None:
    raw = bytes(fields.get("structuredContent", b"null")).strip()
    return None if raw == b"null" else raw


def _may_be_text(structure: bytes, schema: bytes | None) -> bool:
    """Whether a structure can be shown as text alone: a list has no name to put a notice under.

    The client must know of no schema, or it would miss the structure.
    """
    is_declared = schema is not None and (
        schema == UNLISTED or declared_names(schema) is not None
    )
    return structure[:1] != b"{" and not is_declared


# ── text ─────────────────────────────────────────────────────────────────────────────────


def _leaves(blocks: Sequence[Raw]) -> list[_Leaf]:
    leaves = []
    for at, raw in enumerate(blocks):
        block = fields_of(raw)
        text = _text_of(block)
        if text is not None:
            leaves.append(_Leaf(at, at + 1, text, block))
    return leaves


def _text_of(block: dict[str, Raw]) -> str | None:
    kind = value_of(block["type"]) if "type" in block else None
    if kind == "resource" and "resource" in block:
        block = fields_of(block["resource"])
    elif kind != "text":
        return None
    text = value_of(block["text"]) if "text" in block else None
    return text if isinstance(text, str) else None


def _fewer(leaves: list[_Leaf], limit_chars: int) -> list[_Leaf]:
    """Where so many texts would each get too little, neighbouring text blocks become one."""
    if len(leaves) * _LEAST_CHARS <= limit_chars:
        return leaves
    runs: list[list[_Leaf]] = []
    for leaf in leaves:
        previous = runs[-1][-1] if runs else None
        if (
            previous
            and previous.stop == leaf.at
            and "text" in previous.block
            and "text" in leaf.block
        ):
            runs[-1].append(leaf)
        else:
            runs.append([leaf])
    return [
        _Leaf(
            run[0].at,
            run[-1].stop,
            "\n".join(leaf.text for leaf in run),
            run[0].block,
        )
        for run in runs
    ]


def _cut_texts(
    blocks: Sequence[Raw],
    leaves: Sequence[_Leaf],
    tool: str,
    height: int,
    words: Words,
) -> tuple[list[Raw], tuple[Output, ...]]:
    """The content with its texts cut to a height, and the originals of those that were."""
    content: list[Raw] = []
    outputs: list[Output] = []
    position = 0
    for leaf in leaves:
        content += blocks[position : leaf.at]
        position = leaf.stop
        shortened = cut_text(
            leaf.text, tool=tool, limit_chars=height, words=words
        )
        if shortened is None:
            content += blocks[leaf.at : leaf.stop]
            continue
        excerpt, output = shortened
        content.append(_with_text(leaf.block, excerpt))
        outputs.append(output)
    return [*content, *blocks[position:]], tuple(outputs)


def _with_text(block: dict[str, Raw], text: str) -> Raw:
    if "text" in block:
        return Raw(encode({**block, "text": Raw(encode(text))}))
    resource = encode(
        {**fields_of(block["resource"]), "text": Raw(encode(text))}
    )
    return Raw(encode({**block, "resource": Raw(resource)}))


# ── structure ────────────────────────────────────────────────────────────────────────────


class _Structure(NamedTuple):
    raw: bytes
    schema: bytes | None
    is_said: bool
    """Whether the text says the same."""


def _says_the_same(structure: bytes, leaves: Sequence[_Leaf]) -> bool:
    """Whether the texts are the structure: as its JSON, or as the one value in it."""
    if not leaves:
        return False
    value = value_of(structure)
    inner = (
        next(iter(value.values()))
        if isinstance(value, dict) and len(value) == 1
        else None
    )
    joined = "\n".join(leaf.text for leaf in leaves)
    if isinstance(inner, str):
        return inner in (joined, leaves[0].text)
    try:
        values = [
            value_of(leaf.text.encode("utf-8", "surrogatepass"))
            for leaf in leaves
        ]
    except UnreadableFrame:
        return False
    return value in (values[0], values) or (
        inner is not None and inner in (values[0], values)
    )


def _with_structure(
    fields: dict[str, Raw],
    content: list[Raw],
    outputs: tuple[Output, ...],
    structure: _Structure,
    height: int,
    words: Words,
    whole_chars: int,
) -> CutResult | None:
    """The result with its structure shortened, where that is needed and possible."""
    original = structure.raw.decode()
    shortened = (
        None if len(original) <= height else _shorter(structure, height)
    )
    is_left_out = shortened is None and len(original) > max(
        height, whole_chars
    )
    if shortened is None and not is_left_out and not outputs:
        return None
    structure_outputs: tuple[Output, ...] = ()
    if (shortened is not None or is_left_out) and not (
        structure.is_said and outputs
    ):
        structure_outputs = (Output(ref_of(original), original),)
    if is_left_out:
        return _as_error(
            fields, content, (*outputs, *structure_outputs), original, words
        )
    changed: dict[str, Any] = {**fields, "content": content}
    if shortened is not None:
        ref = (structure_outputs or outputs)[-1].ref
        notice = words.cut(ref, len(shortened), len(original), 0)
        changed["structuredContent"] = Raw(
            _with_notice(shortened, structure, notice)
        )
        if structure_outputs:
            changed["content"] = [*content, _said(notice)]
    return CutResult(encode(changed), (*outputs, *structure_outputs))


def _with_notice(
    shortened: bytes, structure: _Structure, notice: str
) -> bytes:
    """A structure that was cut, with a notice under the name that its schema has for it."""
    name = _notice_name(structure)
    assert name is not None, "a structure without room for a notice is not cut"
    return encode({**fields_of(shortened), name: Raw(encode(notice))})


def _notice_name(structure: _Structure) -> str | None:
    """The name of the notice in a structure; None if the client allows it none."""
    fields = fields_of(structure.raw) if structure.raw[:1] == b"{" else None
    if fields is None or structure.schema == UNLISTED:
        return None
    declared = (
        None if structure.schema is None else declared_names(structure.schema)
    )
    name = notice_name(fields if declared is None else declared)
    return None if name in fields else name


def _shorter(structure: _Structure, room: int) -> bytes | None:
    """A shorter structure; None if it cannot be shortened, or has no room for a notice."""
    if _notice_name(structure) is None:
        return None
    faults: Sequence[Fault] = faults_of(structure.schema) or ()
    most = max(room - _NOTICE_CHARS, _LEAST_CHARS)
    candidates = (shorter(structure.raw, most, fault) for fault in faults)
    return next(
        (candidate for candidate in candidates if candidate is not None), None
    )


def _as_error(
    fields: dict[str, Raw],
    content: list[Raw],
    outputs: tuple[Output, ...],
    original: str,
    words: Words,
) -> CutResult:
    """What no client could hold: an error may be without the structure that was declared."""
    ref = outputs[-1].ref
    notice = (
        f"[ullage: the call went well. Its structure of {len(original):,} characters cannot "
        f"be shortened under its schema and is left out. Read it: {words.read_on(ref, 0)}]"
    )
    changed = {
        name: raw
        for name, raw in fields.items()
        if name != "structuredContent"
    }
    result = {**changed, "content": [*content, _said(notice)], "isError": True}
    return CutResult(encode(result), outputs)


def _said(text: str) -> Raw:
    return Raw(encode({"type": "text", "text": text}))
