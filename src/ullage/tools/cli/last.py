"""``ullage last``: the page of the newest conversation in a store."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from ullage.session.stored.conversation import conversation
from ullage.tools.cli._options import (
    one_store,
    open_kept,
    print_json,
    store_argument,
    store_options,
    tenant_in,
)
from ullage.tools.cli._page import save, typed
from ullage.tools.replay.outlined import Savings, from_outline, savings_of
from ullage.tools.replay.report.pages import page_of_conversation

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@click.command("last", short_help="Open the page of the newest conversation.")
@click.option(
    "--browser/--no-browser",
    "opens",
    default=True,
    help="Open the page, or print only where it is. Without a display it is only printed.",
)
@store_argument
@store_options
def command(
    opens: bool,
    place: str | None,
    address: str | None,
    tenant: str,
    as_json: bool,
) -> None:
    """Show what ullage did in the newest conversation, request by request, as a page.

    The page is written to a new folder that only you can read. It loads nothing from elsewhere.
    """
    with closing(open_kept(one_store(place, address))) as store:
        stored = conversation(store, tenant_in(store, tenant))
    session = from_outline(stored)
    savings, name = savings_of(stored, session.trace), stored.outline.name
    page = page_of_conversation(name, session, savings, command=typed())
    path = Path(tempfile.mkdtemp(prefix="ullage-")) / f"{name}.html"
    save(path, page)
    if as_json:
        print_json(_as_json(name, path, savings))
        return
    click.echo(sentence(name, savings))
    click.echo(f"Page: {path}")
    if opens and has_display(os.environ):
        webbrowser.open(path.as_uri())


def sentence(name: str, savings: Savings) -> str:
    """What a conversation sent, and would have sent, in words.

    Args:
        name: its short name.
        savings: what it comes to.
    """
    plural = "s" * (savings.requests != 1)
    return (
        f"{name}: {savings.requests:,} request{plural}, {savings.sent_tokens:,} tokens sent, "
        f"{savings.raw_tokens:,} without ullage (reckoned): {savings.saved_share:.0%} less."
    )


def has_display(environment: Mapping[str, str]) -> bool:
    """Whether a browser can show a page to the user of this terminal.

    Args:
        environment: of this process.
    """
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in environment
    return any(map(environment.get, _DISPLAYS))


def _as_json(name: str, path: Path, savings: Savings) -> dict[str, Any]:
    return {
        "name": name,
        "page": str(path),
        "requests": savings.requests,
        "sent_tokens": savings.sent_tokens,
        "raw_tokens": savings.raw_tokens,
    }
