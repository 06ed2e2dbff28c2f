"""``ullage pin``, ``drop``, ``restore``, ``undo`` and ``note``: decide beside the agent."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeVar

import click

from ullage.core.turn.hand import described
from ullage.core.values.decisions import Verb
from ullage.session.stored import (
    StoredConversation,
    about_tokens,
    conversation,
    decide,
    decision_of,
)
from ullage.tools.cli._options import open_kept, print_json, store_options

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
    author = click.option("--author", default="", help="Who decides, for the record.")
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
def pin(target: str, lines: str | None, **given: Any) -> None:
    """Keep TARGET whole in every view from the next request on, as long as it fits.

    TARGET is a short name that `ullage window` shows (m12 for a message, m12.2 for one text of
    it), a ref, or the id of a tool call.
    """
    _decide("pin", target, lines=_span(lines), **given)


@click.command("drop", short_help="Take a text out of the view.")
@click.argument("target")
@_options
def drop(target: str, **given: Any) -> None:
    """Take TARGET out of the view from the next request on; its ref still opens it.

    See `ullage pin` for TARGET.
    """
    _decide("drop", target, **given)


@click.command("restore", short_help="Bring back what left the view.")
@click.argument("target")
@click.option(
    "--when",
    type=click.Choice(["batch", "end", "now"]),
    default="batch",
    show_default=True,
    help="In its place with the next batch; as a copy at the end; in its place now.",
)
@_lines_option
@_options
def restore(target: str, when: str, lines: str | None, **given: Any) -> None:
    """Bring TARGET back, whole. See `ullage pin` for TARGET."""
    _decide("restore", target, when=when, lines=_span(lines), **given)


@click.command("undo", short_help="Take back a batch or a decision.")
@click.argument("what", required=False)
@_options
def undo(what: str | None, **given: Any) -> None:
    """Take back WHAT: a batch (b…) or a decision (d…) that `ullage window` names, or a ref.

    Without WHAT, what was done last and stands is taken back. To take back an undo, name it.
    """
    _decide("undo", what, **given)


@click.command("note", short_help="Add a text to every view.")
@click.argument("text")
@_options
def note(text: str, **given: Any) -> None:
    """Have TEXT stand in every view of the conversation from the next request on."""
    _decide("note", None, text=text, **given)


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
    wanted: str | None,
    *,
    name: str | None,
    is_dry: bool,
    store: str | None,
    tenant: str,
    as_json: bool,
    **fields: Any,
) -> None:
    """Decide, and say what the next request shows otherwise."""
    with closing(open_kept(store)) as kept:
        stored = conversation(kept, tenant, name)
        decision = decision_of(stored, verb, wanted, **fields)
        what = described(decision, stored.transcript)
        more, anew = about_tokens(stored, decision)
        made = "" if is_dry else decide(kept, stored, decision)
    if as_json:
        told = {"conversation": stored.outline.name, "decision": made, "what": what}
        print_json({**told, "about_tokens_more": more, "about_tokens_rewritten": anew})
        return
    click.echo(_told(stored, made, what, more, anew))


def _told(
    stored: StoredConversation, made: str, what: str, more: int, anew: int
) -> str:
    """What a decision comes to, in words."""
    begins = f"{made}: {what}" if made else f"{what} would be decided"
    size = f"the view has about {abs(more):,} tokens {'more' if more >= 0 else 'fewer'}"
    cache = f"about {anew:,} tokens are written to the prompt cache anew"
    price = f"{size}; {cache if anew else 'no cache is broken'}"
    undo = f"\nTake it back: ullage undo {made}" if made else ""
    return f"{stored.outline.name}, {begins}. With the next request {price}.{undo}"
