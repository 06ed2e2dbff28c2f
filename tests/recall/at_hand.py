"""The readers of a source, over a string."""

from ullage.core.values.effects import Output
from ullage.session.drivers import run
from ullage.session.recall.grep import search
from ullage.session.recall.read import characters, lines
from ullage.session.recall.source import OutputReader


def grep(text, pattern, **options):
    return run(
        search(OutputReader(Output("", text)), pattern, **options), None, ""
    )


def by_character(text, ref, *given):
    return run(characters(OutputReader(Output(ref, text)), *given), None, "")


def by_line(text, ref, *given):
    return run(lines(OutputReader(Output(ref, text)), *given), None, "")
