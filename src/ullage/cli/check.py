"""``ullage check FILE``: is this request legal, by the provider's own rules?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import click
import msgspec

from ullage.cli._options import format_option, json_option, print_json, read_whole
from ullage.errors import FormatError
from ullage.wires.rules.checker import problems
from ullage.wires.rules.problem import Problem

_REMEDY = "Give one request as JSON, or one on each line."
_decode = msgspec.json.Decoder().decode


class _Unreadable(click.ClickException):
    """The file is not what the command takes; the status distinguishes it from a broken rule."""

    exit_code = 2


@click.command("check", short_help="Name the rules that a request breaks.")
@click.argument("file", type=click.File("rb"))
@format_option
@json_option
def command(file: BinaryIO, wire: str | None, as_json: bool) -> None:
    """Print every rule of its provider that the request in FILE breaks (or -, standard input).

    FILE is one request as JSON, or one on each line (JSON Lines). Of each broken rule: its
    name, its place, what is there, what to do; "unverified" beside it means that the rule
    is known from memory or by report alone. The status is 1 if there is one, 2 if FILE
    cannot be read, 0 if every request is legal.
    """
    try:
        found = [
            (line, problem)
            for line, request in _requests(read_whole(file))
            for problem in _judged(request, line, wire)
        ]
    except FormatError as error:
        raise _Unreadable(str(error)) from None
    if as_json:
        print_json([_row(line, problem) for line, problem in found])
    for line, problem in () if as_json else found:
        place = f"line {line} {problem.where}" if line else problem.where
        doubt = "" if problem.verified else " (unverified)"
        click.echo(f"{problem.rule:<4} {place}: {problem.sentence}{doubt}. {problem.remedy}")
    sys.exit(1 if found else 0)


def _requests(data: bytes) -> Iterator[tuple[int, Any]]:
    """Each request with the number of its line; 0 if it is the whole file."""
    try:
        yield 0, _decode(data)
        return
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        whole = error
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    for number, line in lines:
        try:
            request = _decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            if number == lines[0][0]:
                raise FormatError("the file", f"not JSON ({whole})", _REMEDY) from None
            raise FormatError(f"line {number}", f"not JSON ({error})", _REMEDY) from None
        yield number, request
    if not lines:
        raise FormatError("the file", "it is empty", _REMEDY)


def _judged(request: Any, line: int, wire: str | None) -> list[Problem]:
    place = f"line {line}" if line else "the file"
    if not isinstance(request, dict):
        kind = "a list" if isinstance(request, list) else f"{request!r:.20}"
        raise FormatError(place, f"a request is an object, not {kind}", _REMEDY)
    try:
        return problems(request, wire)
    except FormatError as error:
        raise FormatError(f"{place}, {error.where}", error.rule, error.remedy) from None


def _row(line: int, problem: Problem) -> dict[str, Any]:
    row = msgspec.structs.asdict(problem)
    return {"line": line, **row} if line else row
