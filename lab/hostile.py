"""Interrupts and bad inputs, every one of them: what the tests draw by chance, in turn.

    python -m lab.hostile interrupts    a KeyboardInterrupt at each line of fit, observe, compact
    python -m lab.hostile inputs        each odd value in each place of a request that holds every
                                        block of its format, to sessions that repair and that not

An AssertionError names what did not hold.
"""

from __future__ import annotations

import click

from lab.fuzz.tally import be_quiet
from tests.oddities import EVERYTHING, with_odd
from tests.session.test_interrupts import ACTS, interrupted
from tests.session.test_malformed import ODD_ONES, new_session, withstands


def bad_inputs(format: str) -> tuple[int, int]:
    """Give every bad input of a format to a session; how many there were, and got a view."""
    tried = shown = 0
    for path, odd in ODD_ONES[format]:
        for repair in (False, True):
            request = with_odd(EVERYTHING[format], path, odd)
            shown += withstands(
                new_session(format, repair=repair), format, request
            )
            tried += 1
    return tried, shown


@click.command()
@click.argument("what", type=click.Choice(("interrupts", "inputs")))
def main(what: str) -> None:
    """Try all of one kind, and print how many there were."""
    be_quiet()
    if what == "interrupts":
        counts = {act: interrupted(act) for act in ACTS}
        click.echo(
            ", ".join(f"{count:,} in {act}" for act, count in counts.items())
        )
        click.echo(f"{sum(counts.values()):,} interrupts survived")
        return
    tried = 0
    for format in EVERYTHING:
        count, shown = bad_inputs(format)
        tried += count
        click.echo(
            f"{count:>8,}  in {format}: {shown:,} got a view, the others a typed error"
        )
    click.echo(f"{tried:,} bad inputs withstood")


if __name__ == "__main__":
    main()
