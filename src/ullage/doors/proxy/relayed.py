"""One request that is over, as a value: the source of metrics, pages, logs and spans."""

from __future__ import annotations

import re

from msgspec import Struct

from ullage.doors.exchange.values import ExchangeReport, Passed
from ullage.doors.host import cost_of, lookup

_OF_CREDENTIAL = re.compile(r"[0-9a-f]{32}")
_PLAIN = re.compile(r"[A-Za-z0-9._:/@+\[\]-]{1,100}")


class Relayed(Struct, frozen=True, kw_only=True):
    """One request and its reply. No content, no credential.

    Attributes:
        report: of its exchange.
        upstream: the upstream's name.
        tenant: the tenant's name.
        client: the program that asked, as it calls itself.
        traceparent: the header of that name (W3C Trace Context), or an empty text.
        began_s: when it came, in seconds since 1970.
        came_bytes: of its body, as it came and decoded; 0 if it was not read.
        sent_bytes: of the body that was sent on.
        fit_s: from when it was read until it was sent on.
        head_s: from then until the reply's head was there.
        whole_s: from when it came until its reply was over.
        is_dry: whether what was fitted was not sent.
        is_broken: whether the reply ended before its end, or there was none.
        own_status: of the answer that the proxy gave in the place of a reply; 0: a reply came.
    """

    report: ExchangeReport
    upstream: str
    tenant: str = ""
    client: str = ""
    traceparent: str = ""
    began_s: float = 0.0
    came_bytes: int = 0
    sent_bytes: int = 0
    fit_s: float = 0.0
    head_s: float = 0.0
    whole_s: float = 0.0
    is_dry: bool = False
    is_broken: bool = False
    own_status: int = 0


def raw_tokens(relayed: Relayed) -> int:
    """About how many tokens the request had as it came: as many a byte as what was sent."""
    report = relayed.report
    if not (report.is_changed and relayed.sent_bytes):
        return report.view_tokens
    return round(
        report.view_tokens * max(relayed.came_bytes / relayed.sent_bytes, 1.0)
    )


def cost_in_usd(relayed: Relayed) -> float | None:
    """What the request cost at list price; None: nothing was reported, or no price is known."""
    report = relayed.report
    if report.usage is None:
        return None
    return cost_of(report.usage, report.model, report.wire)


def raw_cost_in_usd(relayed: Relayed) -> float | None:
    """What it would have cost without ullage: reckoned, or the same where nothing was fitted."""
    cost = cost_in_usd(relayed)
    raw = relayed.report.raw_usd
    return cost if cost is None or raw is None else raw


def model_in_logs(model: str) -> str:
    """A model's name where it is a known one: any other is a text of the client's."""
    return (
        model if lookup(model).known and _PLAIN.fullmatch(model) else "unknown"
    )


def client_shown(client: str) -> str:
    """A program's name where people read it: of one that is no plain name nothing but that."""
    return client if not client or _PLAIN.fullmatch(client) else "other"


def tenant_shown(tenant: str) -> str:
    """A tenant's name where people read it: of one made of a credential the first characters."""
    return tenant[:8] if _OF_CREDENTIAL.fullmatch(tenant) else tenant[:64]


def treatment_of(
    passed: Passed | None,
    *,
    is_changed: bool = False,
    is_dry: bool = False,
    report: ExchangeReport | None = None,
) -> str:
    """What the header of a reply says was done to its request.

    Args:
        passed: why it was not fitted, or None.
        is_changed: whether what was sent is other than what came.
        is_dry: whether what was fitted was not sent.
        report: of the exchange: whether its conversation is held out or was met under way, whether
            the upstream seems to cut prompts without saying so, what it refused of our additions,
            and how far its budget is used.
    """
    if is_dry:
        return "dry-run"
    if report is not None and report.is_stopped:
        return f"stopped{budget_used(report)}"
    if passed is not None:
        return f"passed; {passed}{budget_used(report)}"
    treatment = "fitted" if is_changed else "unchanged"
    if report is None:
        return treatment
    return (
        f"{treatment}{held_out(report)}{joined(report)}{undercounted(report)}{without(report)}"
        f"{budget_used(report)}"
    )


def budget_used(report: ExchangeReport | None) -> str:
    """What the header says of a budget that is nearly spent, or leaves no room; else nothing."""
    use = None if report is None else report.budget
    if report is None or use is None:
        return ""
    is_worth_telling = report.is_stopped or use.state != "within"
    return f"; budget={use.percent}%" if is_worth_telling else ""


def held_out(report: ExchangeReport) -> str:
    """What the header says of a conversation that passes unfitted, to be compared with."""
    return "; held-out" if report.is_held_out else ""


def undercounted(report: ExchangeReport) -> str:
    """What the header says where the upstream seems to cut prompts silently; else nothing."""
    return "; undercounted" if report.is_undercounted else ""


def without(report: ExchangeReport) -> str:
    """What the header says of additions that the upstream refuses; else nothing."""
    return f"; without={','.join(report.without)}" if report.without else ""


def joined(report: ExchangeReport) -> str:
    """What the header says of a conversation that was met under way; else nothing.

    ``; joined`` where it is offered the recall tools and cut from this request on, and
    ``; waits=price`` and the like (`ullage.core.turn.standing.Reason`) where it is not yet.
    """
    standing = report.standing
    if standing is not None and standing.was_joined:
        return f"; waits={standing.reason}"
    is_now = any(
        event.kind == "joined" and event.tokens_before
        for event in report.events
    )
    return "; joined" if is_now else ""
