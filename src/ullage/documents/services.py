"""Layers 1 and 2 of the three-layer document one by one, for a service without sessions.

    truncate_output(output, tool)                       one output as it is to be shown
    retrieve_spilled(path)                              the whole of it, from its file
    prune_messages(messages, tokens, window)            old outputs cut to their beginning

They are the stages of the preset, and their answers the document's records. A session does all
of it by itself, at the right moments, and remembers what it did.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from ullage.core.errors import FormatError, SpillNotFound
from ullage.core.history import canon
from ullage.core.history.builder import WindowBuilder
from ullage.core.history.transcript import Transcript
from ullage.core.history.window import Window
from ullage.core.redaction import Redact, checked
from ullage.core.tokens.meter import Meter
from ullage.core.turn.batches import cuts_of
from ullage.core.values.authors import KNOWN_USER_TOOLS, plain_tool_name
from ullage.core.values.edits import ProposedEdit, Replace, storable
from ullage.core.values.effects import Output
from ullage.core.values.notices import Words
from ullage.documents.presets.three_layer import (
    ThreeLayerSettings,
    output_shape,
    pruning,
)
from ullage.policy.stages.prune import rough_won
from ullage.policy.stages.shapes import text_size
from ullage.policy.stages.truncate import ShownExtent, Source
from ullage.stores import MemoryStore, SpillStore
from ullage.wires import Format, format_of

_DEFAULTS = ThreeLayerSettings()


class TruncationResult(Struct, frozen=True, kw_only=True):
    """One output as it is to be shown (three-layer document, "Truncation Service").

    Attributes:
        output: what is shown.
        was_truncated: whether it was over a limit. A line that is cut to its length alone is
            not, as in the document.
        original_lines: lines of the original.
        original_bytes: its bytes of UTF-8.
        truncated_lines: lines of it that are shown.
        truncated_bytes: bytes of it that are shown.
        spill_path: the file that holds the original, or None.
        truncation_message: the notice at the end of ``output``, or None.
        ref: what a line in ``output`` calls the original, where something was cut; else None.
    """

    output: str = ""
    was_truncated: bool = False
    original_lines: int = 0
    original_bytes: int = 0
    truncated_lines: int = 0
    truncated_bytes: int = 0
    spill_path: str | None = None
    truncation_message: str | None = None
    ref: str | None = None


def truncate_output(
    output: str,
    tool_name: str,
    settings: ThreeLayerSettings = _DEFAULTS,
    *,
    spill_directory: str | os.PathLike[str] | None = None,
    redact: Redact | None = None,
) -> TruncationResult:
    """What layer 1 shows of an output. Pure where no file is asked for.

    Args:
        output: what the tool gave.
        tool_name: its name; its limit of characters is found by it. What the user answers stays.
        settings: the limits.
        spill_directory: where the original of what is cut is kept; None: where ``settings``
            name it. Nothing is written without either, nor with spillover switched off.
        redact: takes secrets out of what is cut and kept; None: nothing does.

    Raises:
        FormatError: the output is no text.
        StoreError: the file could not be written.
    """
    if not isinstance(output, str):
        kind = type(output).__name__
        raise FormatError(
            "output", f"expected text, got {kind}", "Decode or serialise it."
        )
    place = None
    if settings.enable_disk_spillover is not False:
        place = (
            spill_directory
            if spill_directory is not None
            else settings.spill_directory
        )
    words = Words(
        spill_directory=None if place is None else Path(place).as_posix()
    )
    source = Source(
        output if redact is None else checked(redact)(output), tool_name
    )
    is_answer = plain_tool_name(tool_name) in KNOWN_USER_TOOLS
    cut = None if is_answer else output_shape(settings)(source, words)
    if cut is not None and place is not None:
        SpillStore(MemoryStore(), place).commit(
            "", [Output(source.ref, source.text)], ()
        )
    extent = cut.extent if cut is not None else None
    if extent is None or extent.notice is None:
        extent = ShownExtent(text_size(output), text_size(output))
    return TruncationResult(
        output=output if cut is None else cut.text,
        was_truncated=extent.notice is not None,
        original_lines=extent.original.lines,
        original_bytes=extent.original.bytes,
        truncated_lines=extent.excerpt.lines,
        truncated_bytes=extent.excerpt.bytes,
        spill_path=None if cut is None else words.file_of(source.ref),
        truncation_message=extent.notice,
        ref=None if cut is None else source.ref,
    )


def retrieve_spilled(path: str | os.PathLike[str]) -> str:
    """The text of a spill file, its integrity checked.

    Args:
        path: as `TruncationResult.spill_path` or a notice names it.

    Raises:
        SpillNotFound: there is no such file.
        StoreError: it cannot be read, or does not hold what was written.
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise SpillNotFound("spill", Path(path).name)
    return SpillStore(MemoryStore(), folder).retrieve(path)


class PruneResult(Struct, frozen=True, kw_only=True):
    """What one pruning did (three-layer document, "Pruning Service").

    Attributes:
        pruned_parts: the messages, old outputs in them cut to their first characters. One
            that was not touched is the caller's own object.
        is_pruned: of each of them, whether it was touched.
        tokens_before: what the request held.
        tokens_after: what it holds now, by the document's estimate: four characters a token,
            markers not counted.
        parts_pruned: how many outputs were cut.
        was_pruned: whether that won anything.
        outputs: the originals of what was cut, for a store.
    """

    pruned_parts: tuple[Any, ...] = ()
    is_pruned: tuple[bool, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    parts_pruned: int = 0
    was_pruned: bool = False
    outputs: tuple[Output, ...] = ()


def prune_messages(
    messages: Sequence[Any],
    current_tokens: int,
    context_limit: int,
    settings: ThreeLayerSettings = _DEFAULTS,
    *,
    format: str | Format = "openai-chat",
    redact: Redact | None = None,
) -> PruneResult:
    """Cut old tool outputs to their first characters, if the window is nearly full.

    Pure, and without a memory: it knows nothing of reasoning that a vendor binds to what
    stands before it, as a session does.

    Args:
        messages: the history in a wire format. Never changed.
        current_tokens: what the whole request holds.
        context_limit: the model's context window, in tokens.
        settings: the document's.
        format: the wire format of the messages.
        redact: takes secrets out of what is cut, and of its original; None: nothing does.

    Raises:
        ConfigError: the format is not known.
        FormatError: a message is not what its format says it is.
    """
    wire = format_of(format)
    builder = window_of(messages, wire, redact=redact)
    builder.limit(context_limit, context_limit)
    window = builder.window
    cuts = cuts_of(pruning(settings, held_tokens=current_tokens), window)
    won = sum(map(partial(_won, window, settings), cuts))
    for cut in cuts:
        builder.apply(storable(cut.edit))
    edited = list(messages)
    parsed = window.transcript.messages
    for index, changes in window.changed.items():
        edited[index] = wire.edit(messages[index], parsed[index], changes)
    return PruneResult(
        pruned_parts=tuple(edited),
        is_pruned=tuple(
            index in window.changed for index in range(len(edited))
        ),
        tokens_before=current_tokens,
        tokens_after=current_tokens - won,
        parts_pruned=len(cuts),
        was_pruned=won > 0,
        outputs=tuple(output for cut in cuts for output in cut.outputs),
    )


def window_of(
    messages: Sequence[Any],
    wire: Format,
    words: Words | None = None,
    *,
    leading: int = 0,
    tenant: str = "",
    meter: Meter | None = None,
    redact: Redact | None = None,
    user_tools: frozenset[str] = KNOWN_USER_TOOLS,
) -> WindowBuilder:
    """A window over messages of a wire format as they are, without a session.

    Args:
        messages: the messages, which are not changed.
        wire: their format.
        words: the wording of notices; None: the default one.
        leading: how many of the first messages are left out.
        tenant: whose history it is, for the refs.
        meter: what counts tokens; None: as for a model that is not known.
        redact: takes secrets out of what is set aside; None: nothing does.
        user_tools: plain names of the tools by which the user answers.

    Raises:
        FormatError: a message is not what its format says it is.
    """
    transcript = Transcript(canon.root(wire.name, tenant), redact, user_tools)
    for index in range(leading, len(messages)):
        message = wire.parse(messages[index], f"{wire.key}[{index}]")
        transcript.append(message, canon.digest_of(message))
    builder = WindowBuilder(transcript, meter or Meter(""), words or Words())
    builder.extend(len(transcript))
    return builder


def _won(
    window: Window, settings: ThreeLayerSettings, cut: ProposedEdit
) -> int:
    spot = (
        window.transcript.locate(cut.edit.address)
        if isinstance(cut.edit, Replace)
        else None
    )
    retain_chars = settings.prune_output_retain_chars
    return (
        0
        if spot is None
        else rough_won(window, spot, cut, retain_chars=retain_chars)
    )
