"""``ullage pin``, ``drop``, ``restore``, ``undo`` and ``note``: decide beside the agent."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import click

from ullage.core.turn.hand import described
from ullage.core.values.decisions import Verb
from ullage.session.stored.conversation import (
    conversation,
    decide,
    decision_of,
)
from ullage.session.stored.estimate import estimate_of
from ullage.tools.cli._choices import NamedChoice
from ullage.tools.cli._options import (
    open_kept,
    print_json,
    store_options,
    tenant_in,
)
from ullage.tools.hand.described import sentence, told_of_left

F = TypeVar("F", bound=Callable[..., Any])
_LINES = re.compile(r"(\d+)-(\d+)")


def _options(command: F) -> F:
    """What all of these commands take."""
    conversation = click.option(
        "--conversation",
        "name",
        metavar="NAME",
        help="The conversation, as `ullage window` names it. Default: the newest of the store.",
    )
    reason = click.option("--reason", default="", help="Why, for the record.")
    author = click.option(
        "--author", default="", help="Who decides, for the record."
    )
    preview = click.option(
        "--dry-run",
        "is_dry",
        is_flag=True,
        help="Say what it would change, and decide nothing.",
    )
    return conversation(reason(author(preview(store_options(command)))))


_lines_option = click.option(
    "--lines", metavar="FIRST-LAST", help="Some lines of a text, from 1."
)


@click.command("pin", short_help="Keep a text whole in every view.")
@click.argument("target")
@_lines_option
@_options
def pin(target: str, lines: str | None, **options: Any) -> None:
    """Keep TARGET whole in every view from the next request on, as long as it fits.

    TARGET is a short name that `ullage window` shows (m12 for a message, m12.2 for one text of
    it), a ref, or the id of a tool call.
    """
    _decide("pin", target, lines=_span(lines), **options)


@click.command("drop", short_help="Take a text out of the view.")
@click.argument("target")
@_options
def drop(target: str, **options: Any) -> None:
    """Take TARGET out of the view from the next request on; its ref still opens it.

    See `ullage pin` for TARGET.
    """
    _decide("drop", target, **options)


@click.command("restore", short_help="Bring back what left the view.")
@click.argument("target")
@click.option(
    "--when",
    type=NamedChoice(["batch", "end", "now"]),
    default="batch",
    show_default=True,
    help="In its place with the next batch; as a copy at the end; in its place now.",
)
@_lines_option
@_options
def restore(target: str, when: str, lines: str | None, **options: Any) -> None:
    """Bring TARGET back, whole. See `ullage pin` for TARGET."""
    _decide("restore", target, when=when, lines=_span(lines), **options)


@click.command("undo", short_help="Take back a batch or a decision.")
@click.argument("target", metavar="[WHAT]", required=False)
@_options
def undo(target: str | None, **options: Any) -> None:
    """Take back WHAT: a batch (b…) or a decision (d…) that `ullage window` names, or a ref.

    Without WHAT, what was done last and stands is taken back. To take back an undo, name it.
    """
    _decide("undo", target, **options)


@click.command("note", short_help="Add a text to every view.")
@click.argument("text")
@_options
def note(text: str, **options: Any) -> None:
    """Have TEXT stand in every view of the conversation from the next request on."""
    _decide("note", None, text=text, **options)


def _span(lines: str | None) -> tuple[int, int] | None:
    """A range of lines as it was typed."""
    if lines is None:
        return None
    span = _LINES.fullmatch(lines.strip())
    if span is None:
        raise click.BadParameter("give it as 10-40.", param_hint="--lines")
    return int(span[1]), int(span[2])


def _decide(
    verb: Verb,
    target: str | None,
    *,
    name: str | None,
    is_dry: bool,
    address: str | None,
    tenant: str,
    as_json: bool,
    **fields: Any,
) -> None:
    """Decide, and say what the next request shows otherwise."""
    with closing(open_kept(address)) as store:
        stored = conversation(store, tenant_in(store, tenant), name)
        decision = decision_of(stored, verb, target, **fields)
        description = described(decision, stored.transcript)
        estimate = estimate_of(stored, decision)
        decision_name = "" if is_dry else decide(store, stored, decision)
    if as_json:
        record = {
            "conversation": stored.outline.name,
            "decision": decision_name,
            "what": description,
        }
        print_json(
            {
                **record,
                "about_tokens_more": estimate.added_tokens,
                "about_tokens_rewritten": estimate.rewritten_tokens,
                "about_usd_now": estimate.cost_now_usd,
                "about_usd_per_call": estimate.cost_per_call_usd,
            }
        )
        return
    click.echo(sentence(stored, decision_name, description, estimate))
    if stored.left_for:
        click.echo(told_of_left(stored), err=True)
    if decision_name:
        click.echo(f"Take it back: ullage undo {decision_name}")
