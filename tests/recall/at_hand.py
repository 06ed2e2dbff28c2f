"""The readers of a source, over a string."""

from ullage.recall.grep import search
from ullage.recall.read import characters, lines
from ullage.recall.source import Source
from ullage.session.drivers import run
from ullage.values.effects import Output


def grep(text, pattern, **options):
    return run(search(Source(Output("", text)), pattern, **options), None, "")


def by_character(text, ref, *given):
    return run(characters(Source(Output(ref, text)), *given), None, "")


def by_line(text, ref, *given):
    return run(lines(Source(Output(ref, text)), *given), None, "")
