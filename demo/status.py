"""The line in which the investigator notes how far it is.

Each of its messages ends with one, so that any view which shows its last message, or an
account that quotes it, tells it where to go on. It is short because it stays in the window:

    [status call=12 question=3 step=read tries=0 | def=stdlib/a.py:7 | 1=stdlib/b.py:139,95]
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["Address", "Answered", "Status"]

_STATUS = re.compile(
    r"\[status call=(\d+) question=(\d+) step=(\w+) tries=(\d+) \|([^|\]\n]*)\|([^|\]\n]*)\]"
)
_PLACE = re.compile(r"(\w+)=([^\s:,]+):(\d+)")
_ANSWERED = re.compile(r"(\d+)=([^\s:,]+):(\d+),(\d+)")


class Address(Struct, frozen=True):
    """A line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Answered(Struct, frozen=True):
    """Where the evidence of a finished question is: one file, the lines of the definition
    and of an import (0 for none).
    """

    question: int
    path: str
    definition: int
    imported: int


class Status(Struct, frozen=True, kw_only=True):
    """Where the investigator is.

    Attributes:
        call: how many replies it has given, this one included.
        question: the question at hand, from 0; the number of questions for the last answer.
        step: what it has just asked for.
        tries: how many replies in a row it has spent looking for the same evidence.
        found: places found for the question at hand, by what they are.
        answered: the questions done.
    """

    call: int = 0
    question: int = 0
    step: str = "start"
    tries: int = 0
    found: tuple[tuple[str, Address], ...] = ()
    answered: tuple[Answered, ...] = ()

    @property
    def places(self) -> Mapping[str, Address]:
        """``found`` as a mapping."""
        return dict(self.found)

    def keep(self, name: str, place: Address | None) -> Status:
        """The same status with one more place, if there is one."""
        return (
            self
            if place is None
            else replace(self, found=(*self.found, (name, place)))
        )

    def __str__(self) -> str:
        found = " ".join(f"{name}={place}" for name, place in self.found)
        answered = " ".join(
            f"{a.question + 1}={a.path}:{a.definition},{a.imported}"
            for a in self.answered
        )
        return (
            f"[status call={self.call} question={self.question + 1} step={self.step} "
            f"tries={self.tries} | {found} | {answered}]"
        )

    @classmethod
    def read(cls, text: str) -> Status | None:
        """The last status line in a text, or None."""
        lines = _STATUS.findall(text)
        if not lines:
            return None
        call, question, step, tries, found, answered = lines[-1]
        return cls(
            call=int(call),
            question=int(question) - 1,
            step=step,
            tries=int(tries),
            found=tuple(
                (name, Address(path, int(n)))
                for name, path, n in _PLACE.findall(found)
            ),
            answered=tuple(
                Answered(int(n) - 1, path, int(definition), int(imported))
                for n, path, definition, imported in _ANSWERED.findall(
                    answered
                )
            ),
        )
