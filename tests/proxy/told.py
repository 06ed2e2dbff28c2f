"""Requests that are over, made up."""

from msgspec.structs import replace

from ullage.core.values.cache_breaks import CacheBreak
from ullage.core.values.events import Event
from ullage.core.values.usage import Usage
from ullage.doors.exchange import ExchangeReport
from ullage.doors.proxy.relayed import Relayed

PRUNED = Event(
    kind="pruned",
    where="message 3, bash result",
    why="it was old",
    tokens_before=900,
)
FITTED = ExchangeReport(
    path="/v1/messages",
    wire="anthropic",
    model="claude-opus-4-8",
    conversation="a" * 32,
    is_changed=True,
    tries=1,
    view_tokens=1_000,
    limit_tokens=5_000,
    status=200,
    usage=Usage(fresh_tokens=100, cache_read_tokens=900, output_tokens=10),
    events=(PRUNED,),
)


def relayed(report=FITTED, **fields):
    """One of them: 4,000 bytes came, and 1,000 went on."""
    given = {
        "upstream": "anthropic",
        "tenant": "tenant-of-somebody",
        "began_s": 1_800_000_000.0,
    }
    given |= {
        "came_bytes": 4_000,
        "sent_bytes": 1_000,
        "fit_s": 0.004,
        "head_s": 0.2,
    }
    return Relayed(report=report, **{**given, "whole_s": 0.5, **fields})


def passed(why="path", **fields):
    """One that went on as it came."""
    return relayed(
        ExchangeReport(path="/v1/files", passed=why, status=200),
        came_bytes=0,
        **fields,
    )


def of(conversation, at_s, **fields):
    """One of a conversation, at a time."""
    return relayed(
        replace(FITTED, conversation=conversation, **fields), began_s=at_s
    )


BROKEN = Event(
    kind="cache_broken",
    where="tools (`x` added)",
    why="The tools changed (`x` added), so 900 tokens were billed again.",
    tokens_after=900,
    broken=CacheBreak("tools", "(`x` added)", 900, 0.25, 880, 12),
)


def broke():
    """One that broke the prompt cache."""
    return relayed(replace(FITTED, events=(PRUNED, BROKEN)))
