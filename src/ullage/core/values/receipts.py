"""Receipts: what requests cost, what they would have cost, and what recall cost, summed by day.

A receipt is a row of a ledger that outlives the conversations it is about: no content, no ref, no
id of a conversation. *Measured* is what a provider reported. *Reckoned* is what the same requests
would have come to without ullage (`ullage.session.receipts.writer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import add, sub
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

By: TypeAlias = Literal["day", "tenant", "model", "client"]
LAST_DAY = "9999-12-31"
NAME_CHARS = 100
"""A name in a receipt is cut here: a model or a client may call itself anything."""


def _by_field(
    function: Callable[[Any, Any], Any], left: Struct, right: Struct
) -> dict[str, Any]:
    """A function of each field of two values of a kind, by the name of the field."""
    results = map(function, astuple(left), astuple(right))
    return dict(zip(left.__struct_fields__, results, strict=True))


class TokenCounts(Struct, frozen=True, kw_only=True):
    """Tokens by class, as of `ullage.core.values.usage.Usage`: each is in one."""

    fresh: int = 0
    read: int = 0
    written: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        """Tokens of prompts: fresh, read from a cache and written to one."""
        return self.fresh + self.read + self.written

    def __add__(self, other: TokenCounts) -> TokenCounts:
        return TokenCounts(**_by_field(add, self, other))

    def __sub__(self, other: TokenCounts) -> TokenCounts:
        return TokenCounts(**_by_field(sub, self, other))


class ReceiptTotals(Struct, frozen=True, kw_only=True):
    """What some requests came to. They can be added.

    Attributes:
        requests: how many, those that only opened what was set aside included.
        conversations: how many began with one of them.
        unreported: of the requests those whose usage no provider reported: our estimate of the
            prompt counts for them.
        unpriced: of the requests those without a known price; they are in no sum of dollars.
        unbilled: of the requests those that nobody bills, of a model on a machine of one's own:
            they cost nothing, with ullage and without.
        sent: measured: tokens that were sent, and their answers.
        raw: reckoned: tokens that would have been sent without ullage.
        recalls: how often something set aside was opened again.
        recall_tokens: reckoned: prompt tokens spent on that, the pages carried along included.
        sent_usd: what was sent, at list price.
        raw_usd: what would have been sent, at list price.
        recall_usd: of what was sent, the part that recall took.
        counted: of the requests those whose prompt without ullage a provider counted itself.
        counted_tokens: measured: tokens of these prompts, as it counted them.
        counted_raw_tokens: reckoned: tokens of the same prompts.
    """

    requests: int = 0
    conversations: int = 0
    unreported: int = 0
    unpriced: int = 0
    unbilled: int = 0
    sent: TokenCounts = TokenCounts()
    raw: TokenCounts = TokenCounts()
    recalls: int = 0
    recall_tokens: int = 0
    sent_usd: float = 0.0
    raw_usd: float = 0.0
    recall_usd: float = 0.0
    counted: int = 0
    counted_tokens: int = 0
    counted_raw_tokens: int = 0

    def __str__(self) -> str:
        """What was sent, and what that saved, in a sentence."""
        sent = self.sent.prompt
        raw = self.raw.prompt
        requests = f"{self.requests:,} request{'s' * (self.requests != 1)}"
        text = f"{requests}: {sent:,} prompt tokens, {raw:,} without ullage"
        if raw:
            word = "less" if sent <= raw else "more"
            text += f" ({abs(raw - sent) / raw:.0%} {word})"
        if self.raw_usd or self.sent_usd:
            text += f"; ${self.sent_usd:,.4f}, ${self.raw_usd:,.4f} without"
        return text

    @property
    def saved_usd(self) -> float:
        """What was saved, recall paid for."""
        return self.raw_usd - self.sent_usd

    @property
    def saved_share(self) -> float | None:
        """The same as a share of what would have been paid; None where that is nothing."""
        return self.saved_usd / self.raw_usd if self.raw_usd else None

    def __add__(self, other: ReceiptTotals) -> ReceiptTotals:
        return ReceiptTotals(**_by_field(add, self, other))

    def __sub__(self, other: ReceiptTotals) -> ReceiptTotals:
        return ReceiptTotals(**_by_field(sub, self, other))


class ReceiptKey(Struct, frozen=True, order=True):
    """Whose requests a receipt sums up.

    Attributes:
        day: in UTC, as ``2026-11-27``.
        tenant: the tenant, without the names of its conversations; ``""`` for the unnamed one.
        model: the model that was asked.
        client: the agent or program that asked, as far as it is known.
        is_held_out: whether its conversations pass unfitted, to be compared with.
    """

    day: str
    tenant: str = ""
    model: str = ""
    client: str = ""
    is_held_out: bool = False


class Receipt(Struct, frozen=True, kw_only=True, rename={"key": "place"}):
    """What one process has summed up of one place so far.

    A process writes its newest sums in place of its earlier ones, so that a write that is done
    twice counts once.

    Attributes:
        key: whose requests.
        writer: names the process; 16 characters.
        sums: what they came to.
        is_open: whether more may come; a process that ended without saying so leaves it open.
        written_s: when it was written, in seconds since 1970.
    """

    key: ReceiptKey
    writer: str
    sums: ReceiptTotals
    is_open: bool = True
    written_s: int = 0


def in_order(receipt: Receipt) -> tuple[ReceiptKey, str]:
    """What receipts are in the order of; there is one receipt of each."""
    return receipt.key, receipt.writer


def name_of(text: str) -> str:
    """A name as it stands in a receipt: on one line, no longer than `NAME_CHARS`."""
    plain = text.encode("utf-8", "replace").decode()
    if plain.isprintable():
        return plain[:NAME_CHARS]
    return "".join(c if c.isprintable() else "?" for c in plain)[:NAME_CHARS]


def summed(
    receipts: Iterable[Receipt], by: Sequence[By] = ()
) -> dict[tuple[str, ...], ReceiptTotals]:
    """Receipts summed by some of what they name, in the order of the names."""
    totals: dict[tuple[str, ...], ReceiptTotals] = {}
    for receipt in receipts:
        group = tuple(str(getattr(receipt.key, name)) for name in by)
        totals[group] = totals.get(group, ReceiptTotals()) + receipt.sums
    return dict(sorted(totals.items()))
