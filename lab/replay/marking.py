"""What cache markers win: ``python -m lab.replay.marking PATH…``.

Recorded runs on Anthropic's wire, fitted by the default policy, with its cache simulated from the
markers that really stand in each request: an entry ends at a marker of an earlier request, and is
found only within 20 blocks before a marker of this one (`provider-rules` §3.4). Tokens are
bytes / 4; all caches are warm.

    none       no marker: nothing is cached
    newest     one at the end of each request
    usual      after the head, at the end, and where the two requests before ended
    ours       `ullage.doors.exchange.markers.marked`
    every      at each block: more than the four that are allowed, so a bound
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import click
import msgspec

from lab.replay.carried.__main__ import is_wanted, window_of
from lab.replay.carried.policies import POLICIES
from lab.replay.split import SIDES, Side
from lab.replay.wires import on_wire
from ullage.core.errors import OverLimitError
from ullage.core.tokens.catalog import lookup
from ullage.core.values.usage import Usage
from ullage.doors.exchange.markers import marked
from ullage.session.view import View
from ullage.tools.cli.replay import runs_in
from ullage.tools.replay.calls import (
    boundaries,
    model_of,
    request_of,
    session_for,
)
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Damage, Run

_WRITE, _BACK, _LEAST_TOKENS, _BYTES_PER_TOKEN = 1.25, 20, 1_024, 4
READS = (0.1, 0.05, 0.025)


class Blocks:
    """A request as a cache sees it: of each block the size, its prefix, and whether it is marked.

    Attributes:
        ends: bytes up to the end of each block.
        prefixes: what stands up to there, as a hash.
        marks: the numbers of the blocks with a marker.
    """

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.ends, self.prefixes, self.marks = (
            list[int](),
            list[bytes](),
            list[int](),
        )
        end, prefix = 0, b""
        for number, (place, block) in enumerate(_blocks(request)):
            bare = msgspec.json.encode(
                {k: v for k, v in block.items() if k != "cache_control"}
            )
            end += len(bare)
            prefix = blake2b(
                prefix + place.encode() + bare, digest_size=16
            ).digest()
            self.ends.append(end)
            self.prefixes.append(prefix)
            if "cache_control" in block:
                self.marks.append(number)


class Bill:
    """What the requests of a run came to under one way to mark them, in tokens."""

    def __init__(self) -> None:
        self.read = self.written = self.fresh = 0
        self._entries = set[bytes]()

    def take(self, blocks: Blocks, marks: Sequence[int]) -> None:
        """Take in one request with markers at these blocks."""
        hit = self._hit(blocks, marks)
        last = blocks.ends[max(marks)] if marks else 0
        total = blocks.ends[-1] if blocks.ends else 0
        self.read += hit
        self.written += max(last - hit, 0)
        self.fresh += total - max(last, hit)
        self._entries |= {blocks.prefixes[at] for at in marks}

    def _hit(self, blocks: Blocks, marks: Sequence[int]) -> int:
        found = (
            blocks.ends[at]
            for mark in sorted(marks, reverse=True)
            for at in range(mark, max(mark - _BACK, -1), -1)
            if blocks.prefixes[at] in self._entries
        )
        reach = max(found, default=0)
        return reach if reach >= _LEAST_TOKENS * _BYTES_PER_TOKEN else 0

    def cost(self, read_price: float) -> float:
        """In tokens of input."""
        units = self.fresh + _WRITE * self.written + read_price * self.read
        return units / _BYTES_PER_TOKEN


Scheme = Callable[[Blocks, int, Sequence[int]], list[int]]
SCHEMES: Mapping[str, Scheme] = {
    "none": lambda blocks, head, ends: [],
    "newest": lambda blocks, head, ends: [len(blocks.ends) - 1],
    "usual": lambda blocks, head, ends: _within(
        blocks, [head, *ends[-2:], len(blocks.ends) - 1]
    ),
    "ours": lambda blocks, head, ends: blocks.marks,
    "every": lambda blocks, head, ends: list(range(len(blocks.ends))),
}
"""Where markers stand: from a request, the last block of its head, and the ends of those before."""


def _within(blocks: Blocks, marks: Sequence[int]) -> list[int]:
    return [mark for mark in marks if 0 <= mark < len(blocks.ends)]


def bills_of(run: Run, window_tokens: int | None = None) -> dict[str, Bill]:
    """What each scheme comes to over a run on Anthropic's wire."""
    window = window_tokens or lookup(model_of(run)).window_tokens
    session, judge = session_for(run, POLICIES["default"](), window)(), Judge()
    bills = {name: Bill() for name in SCHEMES}
    ends = list[int]()
    for length in boundaries(run):
        try:
            view: View = session.fit(request_of(run, run.messages[:length]))
        except OverLimitError:
            continue
        blocks = Blocks(marked(view))
        head = sum(place == "" for place, _ in _blocks(view)) - 1
        for name, scheme in SCHEMES.items():
            bills[name].take(blocks, scheme(blocks, head, ends))
        ends.append(len(blocks.ends) - 1)
        tokens = judge.tokens(view["messages"]) + judge.text(head_of(view))
        session.observe(Usage(fresh_tokens=tokens))
    return bills


def _blocks(
    request: Mapping[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each block with the role it stands in; those of the head in none."""
    for part in (request.get("tools"), request.get("system")):
        yield from (("", block) for block in _listed(part))
    for message in request["messages"]:
        yield from (
            (message["role"], block) for block in _listed(message["content"])
        )


def _listed(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content or ())


@click.command("lab.replay.marking")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--window", "windows", multiple=True, callback=window_of, default=("own",)
)
@click.option(
    "--split",
    "side",
    type=click.Choice(SIDES),
    default="dev",
    show_default=True,
)
@click.option(
    "--least-tokens",
    default=60_000,
    show_default=True,
    help="Of the largest request.",
)
def command(
    paths: tuple[Path, ...],
    windows: tuple[int | None, ...],
    side: Side,
    least_tokens: int,
) -> None:
    """Print what each way to mark requests costs, in percent of the usual one."""
    damage, wanted = (
        list[Damage](),
        partial(is_wanted, side, least_tokens, None),
    )
    sums: dict[int | None, dict[str, list[float]]] = {}
    runs = 0
    for _, run, _ in runs_in(paths, damage, is_wanted=wanted):
        on_anthropic = on_wire(run, "anthropic")
        runs += 1
        for window in windows:
            of = sums.setdefault(
                window, {name: [0.0] * len(READS) for name in SCHEMES}
            )
            for name, bill in bills_of(on_anthropic, window).items():
                of[name] = [
                    sum_ + bill.cost(at)
                    for sum_, at in zip(of[name], READS, strict=True)
                ]
    print(
        f"{runs} runs; cost where reads cost {', '.join(map(str, READS))}, in % of the usual"
    )
    for window, of in sums.items():
        for name, costs in of.items():
            shares = " / ".join(
                f"{100 * cost / usual:.1f}"
                for cost, usual in zip(costs, of["usual"], strict=True)
            )
            print(f"{window or 'own':>8}  {name:8} {shares}")


if __name__ == "__main__":
    command()
