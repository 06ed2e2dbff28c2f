"""``ullage inspect LEDGER HISTORY``: one session, turn by turn, from its ledger."""

from __future__ import annotations

from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ullage.core.errors import FormatError
from ullage.documents import NAMES
from ullage.session.stored.conversation import StoredConversation, conversation
from ullage.session.stored.why import why_of
from ullage.stores import is_url
from ullage.tools.cli import why
from ullage.tools.cli._choices import NamedChoice
from ullage.tools.cli._options import (
    TokenCount,
    harmless,
    json_option,
    open_kept,
    print_json,
    store_option,
    tenant_in,
    user_tools_option,
)
from ullage.tools.cli._page import page_options, profiles_of, save, typed
from ullage.tools.hand.described import as_page
from ullage.tools.replay.outlined import from_outline, savings_of
from ullage.tools.replay.readers import Run, read
from ullage.tools.replay.report.pages import (
    page_of_conversation,
    page_of_session,
)
from ullage.tools.replay.report.plot import plot_of
from ullage.tools.replay.stored import StoredRun, from_store
from ullage.tools.replay.trace import TracedEdit


@click.command("inspect", short_help="Show what a session did to its history.")
@click.argument(
    "ledger",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.argument(
    "history", required=False, type=click.Path(exists=True, path_type=Path)
)
@store_option
@click.option(
    "--run",
    "run_id",
    help="Which run of the history, or conversation of the store. Default: the largest or newest.",
)
@click.option(
    "--tenant", default="", help="Whose session. Default: the unnamed tenant."
)
@click.option(
    "--window",
    type=TokenCount(),
    help="The window it ran in: 64000, 64k or 1M. Default: the model's.",
)
@click.option(
    "--policy",
    type=NamedChoice(NAMES),
    help="Default: as the ledger names it.",
)
@user_tools_option
@page_options
@json_option
def command(
    ledger: Path | None,
    history: Path | None,
    address: str | None,
    run_id: str | None,
    tenant: str,
    window: int | None,
    policy: str | None,
    user_tools: tuple[str, ...],
    named: tuple[str, ...],
    page: Path | None,
    share: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Show what a session did to its history, from the store it was given: LEDGER.

    Without LEDGER, the store that `ullage run` uses. Without HISTORY, the newest conversation of
    the store, as far as the store itself tells of it; `ullage ls` lists the others for --run.

    HISTORY is the whole conversation as it was given to ullage: a request, a recording of
    `ullage.tools.replay.record`, a session log, or anything else that `ullage replay` reads. The
    ledger is only read.
    """
    if history is None:
        if window or policy or user_tools or named:
            raise click.UsageError(
                "--window, --policy, --user-tool and --cache need LEDGER and HISTORY."
            )
        _from_store(
            ledger or address,
            tenant,
            run_id,
            page,
            plot,
            share=share,
            as_json=as_json,
        )
        return
    run, profiles = _run(history, run_id), profiles_of(named)
    with closing(open_kept(ledger)) as store:
        session = from_store(
            run,
            store,
            profiles=profiles,
            window_tokens=window,
            policy=policy,
            tenant=tenant,
            user_tools=user_tools,
        )
    if page is not None:
        save(
            page,
            page_of_session(
                run.id, session, profiles, command=typed(), share=share
            ),
        )
    if plot is not None:
        save(
            plot,
            plot_of(session.trace, f"A session under {session.policy}"),
            "--plot",
        )
    if as_json:
        print_json(
            {
                "run": run.id,
                "policy": session.policy,
                "trace": session.trace,
                "bills": session.bills,
            }
        )
    else:
        _print(run.id, session)


def _from_store(
    address: str | Path | None,
    tenant: str,
    name: str | None,
    page: Path | None,
    plot: Path | None,
    *,
    share: bool,
    as_json: bool,
) -> None:
    """Show a conversation from its store alone."""
    with closing(open_kept(address)) as store:
        stored = conversation(store, tenant_in(store, tenant), name)
    session, name = from_outline(stored), stored.outline.name
    record = why_of(stored)
    if page is not None:
        savings = savings_of(stored, session.trace)
        save(
            page,
            page_of_conversation(
                name,
                session,
                savings,
                record=record,
                command=typed(),
                share=share,
                hand=_hand(stored, address, tenant),
            ),
        )
    if plot is not None:
        save(plot, plot_of(session.trace, f"Conversation {name}"), "--plot")
    if as_json:
        print_json(
            {
                "run": name,
                "policy": session.policy,
                "trace": session.trace,
                "why": why.as_json(record),
            }
        )
    else:
        _print(name, session)
        why.show(record)


def _hand(
    stored: StoredConversation, address: str | Path | None, tenant: str
) -> dict[str, Any]:
    """What the page says of the window, and the options of the commands that decide about it."""
    options = ["--conversation", stored.outline.name]
    # an address can hold a password: what names it is in the environment then
    if address is not None and not is_url(address):
        options += ["--store", str(address)]
    if tenant:
        options += ["--tenant", tenant]
    return {"live": False, "window": as_page(stored), "options": options}


def _run(history: Path, run_id: str | None) -> Run:
    """The run of this id; of several, or without an id, the longest.

    Raises:
        FormatError: the history holds no such run.
    """
    runs = [run for run in read(history) if run_id in (None, run.id)]
    if not runs:
        raise FormatError(
            "--run",
            f"there is no run {run_id!r}",
            "Leave it out for the largest.",
        )
    return max(runs, key=lambda run: len(run.messages))


def _print(name: str, session: StoredRun) -> None:
    """Every edit under the turn and the reason it was made for, and what the session came to."""
    trace = session.trace
    console = Console(highlight=False)
    console.print(
        f"{harmless(name)} · {session.policy}: {len(trace.lengths):,} requests",
        markup=False,
    )
    for (turn, reason), marks in groupby(
        trace.marks, lambda mark: (mark.turn, mark.reason)
    ):
        console.print(
            f"\nturn {turn + 1:,}: {reason}", style="bold", markup=False
        )
        for mark in marks:
            console.print(
                _line(mark),
                no_wrap=True,
                overflow="ignore",
                crop=False,
                markup=False,
            )
    peak, raw = (
        max(map(sum, trace.sizes), default=0),
        max(trace.raw, default=0),
    )
    console.print(f"\nlargest request {peak:,} tokens instead of {raw:,}")
    if session.unfit:
        console.print(
            f"{session.unfit:,} turns are over the limit and not shown",
            style="yellow",
        )


def _line(mark: TracedEdit) -> str:
    """An edit: of which message or messages, which kind, its tokens, its ref; never cut."""
    place = f"{mark.message + 1}" + (
        f"–{mark.stop}" if mark.stop > mark.message + 1 else ""
    )
    sizes = f"{mark.tokens_before:,} → {mark.tokens_after:,}"
    return f"  {place:<9}{mark.kind:<10} {sizes:<17} {mark.ref}".rstrip()
