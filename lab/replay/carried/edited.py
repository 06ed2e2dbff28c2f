"""Which reads are edited after a batch took them: ``python -m lab.replay.carried.edited PATH…``.

Of each file the newest read that a batch of the default makes a digest of. It is *edited* if the
old text of a later edit stands in it whole; *before the next batch*, if that comes so soon that the
read could have been left whole until then; *read again first*, if the agent reads the file anew
before that. By what is known when the batch is made: how many calls ago it was read, whether whole,
whether the model named the file since, whether it was edited before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click
from msgspec import Struct

from lab.replay.carried.__main__ import is_wanted
from lab.replay.carried.reads import PARTS, is_named, path_of
from lab.replay.carried.wants import unnumbered
from lab.replay.split import SIDES, Side
from lab.replay.story import Story
from ullage.core.contract.kinds import fields_of, kind_of
from ullage.core.errors import OverLimitError
from ullage.core.values.messages import Text, ToolCall, ToolResult
from ullage.core.values.usage import Usage
from ullage.policy import DEFAULT
from ullage.tools.cli.replay import runs_in
from ullage.tools.replay.calls import boundaries, request_of, session_for
from ullage.tools.replay.cost.prefix import head_of
from ullage.tools.replay.evidence.atoms import atoms_of
from ullage.tools.replay.gates import Judge
from ullage.tools.replay.readers import Damage, Run
from ullage.wires import FORMATS

_NEVER = 1 << 30


class FileRead(Struct, frozen=True):
    """A read of a file.

    Attributes:
        index: its message.
        path: of the file.
        text: what it gave, without line numbers.
        is_whole: whether it was asked for from the first line to the last.
    """

    index: int
    path: str
    text: str
    is_whole: bool


class TakenRead(Struct, frozen=True):
    """A read that a batch took, as it is known then, and what came of it.

    Attributes:
        age: calls since.
        chars: how long it is.
        is_whole: see `FileRead`.
        is_named: whether the model named the file since.
        was_edited: whether the file was edited before.
        edited: whether it is edited later.
        is_soon: before the next batch.
        is_reread: only behind another read of the file.
    """

    age: int
    chars: int
    is_whole: bool
    is_named: bool
    was_edited: bool
    edited: bool
    is_soon: bool
    is_reread: bool


def taken_reads(run: Run, window_tokens: int) -> Iterator[TakenRead]:
    """The newest read of each file that each batch took."""
    story = Story(FORMATS[run.format], run.messages)
    reads, edits = list(_reads(story)), list(_edits(story))
    lengths = boundaries(run)
    batches = list(_batches(run, story, reads, window_tokens))
    for number, (length, taken) in enumerate(batches):
        following = (
            batches[number + 1][0] if number + 1 < len(batches) else _NEVER
        )
        for read in taken:
            same = [each for each in reads if each.path == read.path]
            if any(read.index < each.index < length for each in same):
                continue
            reread = min(
                (each.index for each in same if each.index >= length),
                default=_NEVER,
            )
            edit = next(
                (
                    at
                    for at, path, old in edits
                    if at >= length and path == read.path and old in read.text
                ),
                _NEVER,
            )
            yield TakenRead(
                age=bisect_left(lengths, length)
                - bisect_left(lengths, read.index),
                chars=len(read.text),
                is_whole=read.is_whole,
                is_named=is_named(
                    story.transcript, read.path, read.index + 1, length
                ),
                was_edited=any(
                    at < length and path == read.path for at, path, _ in edits
                ),
                edited=edit < _NEVER,
                is_soon=edit < following,
                is_reread=reread < edit < _NEVER,
            )


def _reads(story: Story) -> Iterator[FileRead]:
    for index, message in enumerate(story.transcript.messages):
        for number, part in enumerate(message.parts):
            call = story.call_for(index, number)
            if not isinstance(part, ToolResult) or call is None:
                continue
            fields = fields_of(call.arguments) or {}
            path = path_of(fields)
            if kind_of(call.name) != "read" or not path:
                continue
            text = "\n".join(
                leaf.text for leaf in part.content if isinstance(leaf, Text)
            )
            is_whole = not any(name in fields for name in PARTS)
            yield FileRead(index, path, unnumbered(text), is_whole)


def _edits(story: Story) -> Iterator[tuple[int, str, str]]:
    """The message, the path and the old text of each edit."""
    for index, message in enumerate(story.transcript.messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                path = path_of(fields_of(part.arguments) or {})
                for atom in atoms_of(part.arguments):
                    if atom.kind == "quote":
                        yield index, path, atom.text


def _batches(
    run: Run, story: Story, reads: Sequence[FileRead], window_tokens: int
) -> Iterator[tuple[int, list[FileRead]]]:
    """Where a request shows less of some reads than the one before it, and of which."""
    session, judge = session_for(run, DEFAULT, window_tokens)(), Judge()
    gone = set[int]()
    for length in boundaries(run):
        try:
            fitted = session.fit(request_of(run, run.messages[:length]))
        except OverLimitError:
            continue
        window = session.window
        taken = [
            read
            for read in reads
            if read.index < length
            and read.index not in gone
            and window.hidden(read.index)
        ]
        if taken:
            yield length, taken
        gone.update(read.index for read in taken)
        raws = story.wire.history(fitted)
        tokens = judge.tokens(raws) + judge.text(head_of(fitted))
        session.observe(Usage(fresh_tokens=tokens))


_GROUPS: Sequence[tuple[str, Callable[[TakenRead], bool]]] = (
    ("all", lambda read: True),
    ("read whole", lambda read: read.is_whole),
    ("named since", lambda read: read.is_named),
    ("named since, read whole", lambda read: read.is_named and read.is_whole),
    ("edited before", lambda read: read.was_edited),
    ("read less than 5 calls ago", lambda read: read.age < 5),
    ("5 to 9", lambda read: 5 <= read.age < 10),
    ("10 to 19", lambda read: 10 <= read.age < 20),
    ("20 and more", lambda read: read.age >= 20),
)


@click.command("lab.replay.carried.edited")
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--window", "window_tokens", default=64_000, show_default=True)
@click.option(
    "--split",
    "side",
    type=click.Choice(SIDES),
    default="dev",
    show_default=True,
)
@click.option("--least-tokens", default=60_000, show_default=True)
def command(
    paths: tuple[Path, ...], window_tokens: int, side: Side, least_tokens: int
) -> None:
    """Print, for reads that are alike, how many of them are edited."""
    damage = list[Damage]()
    wanted = partial(is_wanted, side, least_tokens, None)
    by_file: dict[str, list[TakenRead]] = {}
    for file, run, _ in runs_in(paths, damage, is_wanted=wanted):
        by_file.setdefault(file, []).extend(taken_reads(run, window_tokens))
    for file, reads in by_file.items():
        print(f"{file}, {window_tokens:,} tokens")
        for name, has in _GROUPS:
            group = [read for read in reads if has(read)]
            edited = [read for read in group if read.edited]
            print(
                f"  {name:27} {len(group):5,} of {sum(r.chars for r in group):10,} characters; "
                f"edited {_percent(len(edited), len(group))}, before the next batch "
                f"{_percent(sum(read.is_soon for read in group), len(group))}, of these read "
                f"again first {_percent(sum(read.is_reread for read in edited), len(edited))}"
            )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


if __name__ == "__main__":
    command()
