"""``ullage check FILE``: is this request legal, by the provider's own rules?"""

from __future__ import annotations

import sys
from typing import BinaryIO

import click
import msgspec

from ullage import problems
from ullage.core.errors import FormatError
from ullage.tools.cli._options import (
    format_option,
    json_option,
    print_json,
    read_whole,
)


class _Unreadable(click.ClickException):
    """The file is not what the command takes; the status distinguishes it from a broken rule."""

    exit_code = 2


@click.command("check", short_help="Name the rules that a request breaks.")
@click.argument("file", type=click.File("rb"))
@format_option
@json_option
def command(file: BinaryIO, wire: str | None, as_json: bool) -> None:
    """Print every rule of its provider that the request in FILE breaks (or -, standard input).

    FILE is one request as JSON. Of each broken rule: its name, its place, what is there, what to
    do; "unverified" beside it means that the rule is known from memory or by report alone. The
    status is 1 if there is one, 2 if FILE cannot be read, 0 if the request is legal.
    """
    try:
        violations = problems(msgspec.json.decode(read_whole(file)), wire)
    except FormatError as error:
        raise _Unreadable(str(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _Unreadable(
            f"the file: not JSON ({error}). Give one request as JSON."
        ) from None
    if as_json:
        print_json(violations)
    for problem in () if as_json else violations:
        doubt = "" if problem.verified else " (unverified)"
        click.echo(
            f"{problem.rule:<4} {problem.where}: {problem.sentence}{doubt}. {problem.remedy}"
        )
    sys.exit(1 if violations else 0)
