"""What a reader gives: runs, and word of what it could not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ullage.wires import FormatName, model_in

__all__ = ["Damage", "DamageReport", "FormatName", "Grade", "OnDamage", "Run"]


class Run(Struct, frozen=True):
    """One recorded session of an agent, in its provider's wire format.

    Attributes:
        id: its name in the recording, or the file's name and the line.
        format: the provider's format of ``messages``.
        request: everything of the request but its messages (model, system, tools, …);
            what the recording does not hold is left out.
        messages: the full history. What comes before an assistant message is the request
            that produced it.
        stamps: seconds since 1970 by message index, where recorded.
        sent_whole: whether the whole history was sent too, as a request whose reply is not in it:
            there was none, or its calls were never answered.
        line: the line of the file it begins at, from 1; 0 if not known.
        task: what distinguishes the task from others, where recorded; several runs may share it.
    """

    id: str
    format: FormatName
    request: dict[str, Any]
    messages: list[dict[str, Any]]
    stamps: dict[int, float] = {}
    sent_whole: bool = False
    line: int = 0
    task: str = ""

    @property
    def model(self) -> str:
        """The model the recording names, or ""."""
        return str(model_in(self.request) or "")


Grade: TypeAlias = Literal["skipped", "foreign", "repaired"]


class Damage(Struct, frozen=True):
    """Something in a file that was skipped, or that its run was read without.

    Attributes:
        file: base name of the file.
        line: line number from 1; in a JSON list, the number of the element.
        problem: what was wrong, in one phrase; never content.
        grade: ``"skipped"``: it is lost; ``"foreign"``: nothing in the file is of a kind
            known here; ``"repaired"``: its run was read anyway.
    """

    file: str
    line: int
    problem: str
    grade: Grade = "skipped"


OnDamage: TypeAlias = Callable[[Damage], None]


class DamageReport:
    """Gathers the damage of one file, and passes it on when the file is at its end.

    A file in which nothing can be read (a log of a kind unknown to us, a picture) is one
    damage, not a thousand; in a readable file the first hundred are reported one by one.

    Attributes:
        is_readable: whether something in the file is of a kind known here.
    """

    MOST = 100

    def __init__(self, file: str, on_damage: OnDamage | None) -> None:
        self.file = file
        self.is_readable = False
        self._pass_on = on_damage or (lambda _: None)
        self._found: list[Damage] = []
        self._counts = Counter[Grade]()

    def add(self, line: int, problem: str, grade: Grade = "skipped") -> None:
        """Note what is lost; or foreign, which is no loss in a file of another kind."""
        self._counts[grade] += 1
        if len(self._found) < self.MOST:
            self._found.append(Damage(self.file, line, problem, grade))

    def repaired(self, line: int, problem: str) -> None:
        """Note what a run was read without, or with."""
        self.add(line, problem, "repaired")

    @contextmanager
    def guarded(self, line: int) -> Iterator[None]:
        """What has another shape than its kind has ends here, as damage of the line."""
        try:
            yield
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            self.add(
                line, f"is not as its kind has it ({type(error).__name__})"
            )

    def close(self, *, has_runs: bool) -> None:
        """The file is at its end. That it gave nothing is damage, unless some says why."""
        if not self.is_readable and not self._found:
            self.add(0, "the file is empty", "foreign")
        if self.is_readable and not has_runs and not self._lost(self._counts):
            self.add(0, "there is no run in it in which a model replies")
        if self.is_readable:
            self._pass_on_each()
        elif self._found:
            damage = self._found[0]
            count = self._counts.total()
            more = (
                f" (and {count - 1:,} more in this file)" if count > 1 else ""
            )
            grade: Grade = "skipped" if self._counts["skipped"] else "foreign"
            self._pass_on(
                Damage(
                    self.file, damage.line, f"{damage.problem}{more}", grade
                )
            )

    def _pass_on_each(self) -> None:
        """Each damage; what is foreign in a file that is readable is lost."""
        for damage in self._found:
            is_foreign = damage.grade == "foreign"
            self._pass_on(
                replace(damage, grade="skipped") if is_foreign else damage
            )
        rest = self._counts - Counter(damage.grade for damage in self._found)
        if rest:
            grade: Grade = "skipped" if self._lost(rest) else "repaired"
            problem = f"{rest.total():,} more damaged lines"
            self._pass_on(Damage(self.file, 0, problem, grade))

    @staticmethod
    def _lost(counts: Counter[Grade]) -> int:
        return counts["skipped"] + counts["foreign"]
