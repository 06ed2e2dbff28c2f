"""The shapes of Anthropic's blocks: where each may stand, its fields and its ids (A0, A8, A23)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ullage.wires.anthropic.blocks import BLOCKS, THOUGHTS
from ullage.wires.block import Block
from ullage.wires.rules.problem import Report, Wire, kind_of, name_in

__all__ = ["is_tool_name", "judge_block", "judge_content"]

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z").match
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z").match


def is_tool_name(name: str) -> bool:
    """Whether a tool may be called so (A8)."""
    return _NAME(name) is not None


def judge_block(block: Wire, kind: str, role: str, where: str, report: Report) -> None:
    """Note where a block may not stand so, and what is wrong with its fields."""
    row = BLOCKS.get(kind)
    if row is None:
        return
    if role not in row.roles:
        report.add("A0", where, f"a {kind} block may not stand in a {role} message")
    _fields(block, row, where, report)
    if row.becomes == "call":
        _named(block, "id", where, report)
        name = name_in(block, "name")
        if name is not None and not is_tool_name(name):
            report.add("A8", where, "the tool's name is not allowed")
    elif row.becomes == "result":
        _named(block, "tool_use_id", where, report)


def judge_content(content: Any, where: str, report: Report) -> None:
    """Note what may not stand in a tool_result."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        report.add("A0", where, f"text or a list, and it is {kind_of(content)}")
        return
    for index, block in enumerate(content):
        row = BLOCKS.get(name_in(block, "type") or "")
        if row is None or not row.in_result:
            sentence = "a block of this type may not stand in a tool_result"
            report.add("A0", f"{where}[{index}]", sentence)
        else:
            _fields(block, row, f"{where}[{index}]", report)


def _named(block: Wire, field: str, where: str, report: Report) -> None:
    name = name_in(block, field)
    if name is not None and not _ID(name):
        report.add("A8", where, f"the {field} has characters not allowed in it")


def _fields(block: Wire, row: Block, where: str, report: Report) -> None:
    extra = row.unknown_fields(block)
    if row.kind in THOUGHTS and block.get("cache_control") is not None:
        extra.remove("cache_control")  # A21 says so
    _unknown(extra, where, report, row.unknown or "A23")
    if not report.fields("A0", block, row.needs.items(), where):
        return
    for name, types in row.inner.items():
        _source(block[name], types, f"{where}.{name}", report)


def _source(source: Wire, types: Mapping[str, tuple[str, ...]], where: str, report: Report) -> None:
    needed = types.get(name_in(source, "type") or "")
    if needed is None:
        report.add("A0", f"{where}.type", f"one of {', '.join(types)} is asked for")
        return
    for name in needed:
        held = source.get(name) is not None
        report.need(held, "A0", where, f"a source of this type has the field {name!r}")
    known = ("type", *needed)
    _unknown([name for name in source if name not in known], where, report, "A23")


def _unknown(extra: list[Any], where: str, report: Report, rule: str) -> None:
    if extra:
        names = ", ".join(map(repr, extra))
        report.add(rule, where, f"fields the API does not know: {names[:200]}")
