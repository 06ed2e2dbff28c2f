"""What is done to a history: every way of editing it, each as far as it can be taken.

first sight    every result shown in part before it is first sent
prune          every result and every call's arguments set aside, but for the newest turn's
account        the longest run of messages condensed that may be
repair         one result lost, doubled, late or parted from its call; the session mends it
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from lab.enumerate.letters import Message, said
from ullage.core.contract.policy import Policy
from ullage.core.history.transcript import leaves_of
from ullage.core.history.window import Window
from ullage.core.values.edits import ProposedEdit
from ullage.core.values.messages import Text, ToolCall, ToolResult
from ullage.core.values.notices import Words
from ullage.policy.stages.condense import AccountRoom, Range, condense
from ullage.policy.stages.emergency import emergency, reach
from ullage.policy.stages.placeholders import placeholder
from ullage.policy.stages.shorten import shorten
from ullage.policy.stages.truncate import ResultView, Source, truncate
from ullage.wires import FORMATS

_SHOWN_CHARS = 300
_ACCOUNT = AccountRoom(600, 200, 10_000, "every run is condensed")


class Treatment(Struct, frozen=True):
    """One way of editing.

    Attributes:
        name: see the module.
        policy: what makes the edits.
        kinds: the kinds of the events that tell of them.
        repair: whether it is histories with a fault that are tried, by sessions that repair.
    """

    name: str
    policy: Policy
    kinds: frozenset[str]
    repair: bool = False


def _part(source: Source, words: Words, /) -> ResultView | None:
    if len(source.text) <= _SHOWN_CHARS:
        return None
    shown = shorten(source.text, _SHOWN_CHARS, source.ref, words)
    return (
        ResultView(shown, "every result is shown in part") if shown else None
    )


def _prune_all(window: Window, /) -> Sequence[ProposedEdit]:
    """Every result and every call's arguments behind the newest turn, set aside."""
    cuts = []
    for index in range(window.turn_start):
        message = window.transcript.messages[index]
        for number, item, leaf in (
            leaves_of(message) if not window.hidden(index) else ()
        ):
            is_result = isinstance(message.parts[number], ToolResult)
            is_call = isinstance(leaf, ToolCall) and not window.signed(index)
            if (is_result or is_call) and isinstance(leaf, Text | ToolCall):
                cuts.append(placeholder(window, (index, number, item)))
    return [cut for cut in cuts if cut is not None]


def _condense_all(window: Window, /) -> Sequence[ProposedEdit]:
    """The longest run that may be condensed."""
    first, end = reach(window)
    stops = [
        at
        for at in range(first + 1, min(end + 1, window.size))
        if window.may_cut(at)
    ]
    if not stops:
        return ()
    made = condense(window, Range(first, stops[-1]), _ACCOUNT)
    return () if made is None else made.cuts


TREATMENTS = (
    Treatment(
        "first sight",
        Policy(
            name="first-sight", on_arrival=(partial(truncate, shape=_part),)
        ),
        frozenset(("truncated",)),
    ),
    Treatment(
        "prune",
        Policy(name="prune-all", under_pressure=(_prune_all,)),
        frozenset(("pruned",)),
    ),
    Treatment(
        "account",
        Policy(
            name="condense-all",
            under_pressure=(_condense_all,),
            guard=partial(emergency),
        ),
        frozenset(("condensed",)),
    ),
    Treatment(
        "repair", Policy(name="repair"), frozenset(("repaired",)), repair=True
    ),
)


def faults(
    format: str, messages: Sequence[Message]
) -> Iterator[list[Message]]:
    """The history with one thing wrong: each fault at each message that answers a call."""
    answers = [
        at for at, message in enumerate(messages) if _answers(format, message)
    ]
    for at in answers:
        for fault in _FAULTS:
            broken = [*messages]
            fault(format, broken, at)
            yield broken


def _answers(format: str, message: Message) -> bool:
    parts = FORMATS[format].parse(message, "message").parts
    return any(isinstance(part, ToolResult) for part in parts)


def _lose(format: str, messages: list[Message], at: int) -> None:
    del messages[at]


def _double(format: str, messages: list[Message], at: int) -> None:
    messages.insert(at, copy.deepcopy(messages[at]))


def _delay(format: str, messages: list[Message], at: int) -> None:
    messages.append(messages.pop(at))


def _part_by_words(format: str, messages: list[Message], at: int) -> None:
    messages.insert(at, said(format, "wait"))


def _lose_call(format: str, messages: list[Message], at: int) -> None:
    del messages[at - 1]


_Fault = Callable[[str, list[Message], int], None]
_FAULTS: tuple[_Fault, ...] = (
    _lose,
    _double,
    _delay,
    _part_by_words,
    _lose_call,
)
