"""What a reader gives: runs, and word of what it could not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.values.usage import Usage

__all__ = ["Damage", "FormatName", "Grade", "OnDamage", "Report", "Run"]

FormatName: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]


class Run(Struct, frozen=True):
    """One recorded session of an agent, in its provider's wire format.

    Attributes:
        id: its name in the recording, or the file's name and the line.
        format: the provider's format of ``messages``.
        request: everything of the request but its messages (model, system, tools, …);
            what the recording does not hold is left out.
        messages: the full history. What stands before an assistant message is the request
            that produced it.
        usage: by the index of an assistant message, the tokens the provider reported for
            the request that produced it. The index may equal ``len(messages)``: then the
            reply itself was left off, because its calls were never answered.
        source: what kind of recording this was, such as ``"trajectory"``.
        stamps: seconds since 1970 by message index, where recorded.
        line: the line of the file it begins at, from 1; 0 if not known.
        task: what distinguishes the task from others, where recorded; several runs may share it.
    """

    id: str
    format: FormatName
    request: dict[str, Any]
    messages: list[dict[str, Any]]
    usage: dict[int, Usage]
    source: str
    stamps: dict[int, float]
    line: int = 0
    task: str = ""


Grade: TypeAlias = Literal["skipped", "foreign", "repaired"]


class Damage(Struct, frozen=True):
    """Something in a file that was skipped, or that its run was read without.

    Attributes:
        file: base name of the file.
        line: line number from 1; in a JSON list, the number of the element.
        problem: what was wrong, in one phrase; never content.
        grade: ``"skipped"``: it is lost; ``"foreign"``: nothing in the file is of a kind
            known here; ``"repaired"``: its run was read all the same.
    """

    file: str
    line: int
    problem: str
    grade: Grade = "skipped"


OnDamage: TypeAlias = Callable[[Damage], None]


class Report:
    """Passes on the damage of one file, and keeps quiet files quiet.

    A file in which nothing can be read (a log of a kind unknown to us, a picture) is one
    damage, not a thousand; in a readable file the first hundred are reported one by one.
    """

    MOST = 100

    def __init__(self, file: str, on_damage: OnDamage | None) -> None:
        self.file = file
        self._pass_on = on_damage or (lambda _: None)
        self._held: list[Damage] = []
        self._count = 0
        self._readable = False
        self._lost = self._unsaid = False

    def readable(self) -> None:
        """Something in this file could be read: report what was held back."""
        if not self._readable:
            self._readable = True
            for damage in self._held:
                self._pass_on(_skipped(damage))
            self._held = []

    def add(self, line: int, problem: str) -> None:
        """Note what is lost."""
        self._note(Damage(self.file, line, problem))

    def foreign(self, line: int, problem: str) -> None:
        """Note what is nothing known here: no loss in a file of another kind, else one."""
        self._note(Damage(self.file, line, problem, "foreign"))

    def repaired(self, line: int, problem: str) -> None:
        """Note what a run was read without, or with."""
        self._note(Damage(self.file, line, problem, "repaired"))

    def _note(self, damage: Damage) -> None:
        self._count += 1
        self._lost = self._lost or damage.grade != "repaired"
        if self._count > self.MOST:
            self._unsaid = self._unsaid or damage.grade != "repaired"
            return
        if self._readable:
            self._pass_on(_skipped(damage))
        else:
            self._held.append(damage)

    @contextmanager
    def guarded(self, line: int) -> Iterator[None]:
        """What has another shape than its kind has ends here, as damage of the line."""
        try:
            yield
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            self.add(line, f"is not as its kind has it ({type(error).__name__})")

    def empty(self) -> None:
        """The file holds no value at all; say so, unless something said why."""
        if not self._count:
            self.foreign(0, "the file is empty")

    def fruitless(self) -> None:
        """The file gave no run; say so, unless something said why."""
        if self._readable and not self._lost:
            self.add(0, "there is no run in it in which a model replies")

    def close(self) -> None:
        """The file is at its end: report what was summed up."""
        if self._held:
            first = self._held[0]
            more = f" (and {self._count - 1:,} more in this file)" if self._count > 1 else ""
            lost = any(damage.grade == "skipped" for damage in self._held)
            grade: Grade = "skipped" if lost else "foreign"
            self._pass_on(Damage(self.file, first.line, f"{first.problem}{more}", grade))
        elif self._count > self.MOST:
            problem = f"{self._count - self.MOST:,} more damaged lines"
            self._pass_on(Damage(self.file, 0, problem, "skipped" if self._unsaid else "repaired"))


def _skipped(damage: Damage) -> Damage:
    """The damage in a file that was readable: what is foreign there is lost."""
    return replace(damage, grade="skipped") if damage.grade == "foreign" else damage
