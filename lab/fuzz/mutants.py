"""Seeded mutants: each guard taken away in turn. The fuzzer must notice every one.

A mutant is data: what is replaced, by what, and in which formats that shows. `caught` tries
histories of these until something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lab.fuzz.histories import NUMBERED, case
from lab.fuzz.stages import policy_of
from lab.fuzz.trial import try_case
from ullage.core.contract.repaired import Repaired
from ullage.core.history import builder, canon, shown, transcript, window
from ullage.core.turn import engine, rendering
from ullage.core.values import notices
from ullage.core.values.edits import Drop, ProposedEdit
from ullage.core.values.messages import Reasoning
from ullage.wires.anthropic import format as anthropic
from ullage.wires.gemini import fields as _gemini_fields
from ullage.wires.gemini import format as gemini
from ullage.wires.ollama import format as ollama
from ullage.wires.openai_chat import format as openai_chat
from ullage.wires.openai_responses import format as openai_responses
from ullage.wires.repair import apply

Changed: TypeAlias = Callable[[Any], Any]
"""The mutated thing, made from the right one."""

emergency = import_module("ullage.policy.stages.emergency")
ranges = import_module("ullage.core.contract.ranges")
_A, _C, _R, _G = (
    ("anthropic",),
    ("openai-chat",),
    ("openai-responses",),
    ("gemini",),
)
_O = ("ollama",)


class Mutant(Struct, frozen=True):
    """One guard taken away.

    Attributes:
        name: what does not hold any more.
        place: the class or module that holds the guard.
        attribute: its name there.
        changed: makes the mutated one from the right one.
        formats: where that can be seen.
    """

    name: str
    place: Any
    attribute: str
    changed: Changed
    formats: tuple[str, ...] = NUMBERED


def _whole(_: Any) -> Any:
    """Every message, and no summary."""
    return lambda view: list(range(view.size))


def _always(value: Any) -> Changed:
    return lambda right: lambda *_, **__: value


def _is(value: Any) -> Changed:
    return lambda right: value


def _is_reply_edge(self: Any, index: int) -> bool:
    return self.starts_turn(index) or self.messages[index].role != "assistant"


def _all_counted(right: Any) -> Any:
    """`WindowBuilder.extend` that goes on counting what a compaction of the provider supersedes."""

    def extend(self: Any, length: int, *more: Any) -> None:
        sums = self.window._sums
        tokens, counted = list(sums.tokens), sums.counted
        right(self, length, *more)
        if sums.tokens[: len(tokens)] != tokens:
            sums.tokens[: len(tokens)] = tokens
            sums.counted += counted

    return extend


def _unlinked(right: Any) -> Any:
    """Opaque parts neither open anything nor close it."""
    return lambda *given, opens="", closes="", **more: right(
        *given[:4], **more
    )


def _not_late(right: Any) -> Any:
    return lambda *given: replace(right(*given), deferred=False)


def _without(*names: str) -> Changed:
    """`edit` of a format, whose blocks come out without these fields."""

    def strip(thing: Any) -> Any:
        if isinstance(thing, dict):
            return {
                key: strip(value)
                for key, value in thing.items()
                if key not in names
            }
        return (
            [strip(item) for item in thing]
            if isinstance(thing, list)
            else thing
        )

    return lambda right: lambda *given, **more: strip(right(*given, **more))


def _loud(right: Any) -> Any:
    """`edit` that leaves reasoning where it was."""
    return lambda self, raw, message, changes, drop_reasoning=False: right(
        self, raw, message, changes
    )


def _hollow(right: Any) -> Any:
    """`edit` that leaves nothing in the place of a message of nothing but reasoning."""

    def edit(
        self: Any,
        raw: Any,
        message: Any,
        changes: Any,
        drop_reasoning: bool = False,
    ) -> Any:
        new = right(self, raw, message, changes, drop_reasoning=drop_reasoning)
        only = drop_reasoning and all(
            isinstance(part, Reasoning) for part in message.parts
        )
        return {**new, "content": []} if only else new

    return edit


def _emptied(right: Any) -> Any:
    """`edit` that shows an empty text wherever it shows another."""
    return lambda self, raw, message, changes, drop_reasoning=False: right(
        self,
        raw,
        message,
        [(number, item, "") for number, item, _ in changes],
        drop_reasoning=drop_reasoning,
    )


def _from_the_edit(right: Any) -> Any:
    """Only the reasoning behind the first edit goes, the newest included."""

    def dropped(shown: Any, first: int, made: Any) -> Any:
        cuts, chain = right(shown, first, made), shown.transcript.chain
        return [
            ProposedEdit(
                Drop(chain[first + 1], cut.edit.upto, cut.edit.why), ()
            )
            for cut in cuts
        ]

    return dropped


def _unsigned_parts(right: Any) -> Any:
    def parts(self: Any, raws: Any, where: str) -> Any:
        found = right(self, raws, where)
        return [p for p in found if not (isinstance(p, Reasoning) and p.bound)]

    return parts


def _split(right: Any) -> Any:
    """The window may end between a call and its result: the account begins too early."""
    return lambda seen: (max(1, right(seen)[0] - 1), right(seen)[1])


def _bare_index(right: Any) -> Any:
    return lambda *_: "Index of messages"


MUTANTS: tuple[Mutant, ...] = (
    # where a history may be cut
    Mutant(
        "a cut may be anywhere",
        transcript.Transcript,
        "may_cut",
        _always(True),
    ),
    Mutant(
        "a run may begin anywhere",
        transcript.Transcript,
        "may_split",
        _always(True),
    ),
    Mutant(
        "open calls do not count",
        transcript.Transcript,
        "may_split",
        lambda _: _is_reply_edge,
    ),
    Mutant(
        "a run may begin within a reply",
        transcript.Transcript,
        "may_split",
        lambda _: lambda self, index: self._closed[index],
        (*_A, *_C, *_R),
    ),
    Mutant(
        "a system message may be parted from what follows",
        transcript.Transcript,
        "may_split",
        lambda _: (
            lambda self, index: (
                self._closed[index] and _is_reply_edge(self, index)
            )
        ),
        _A,
    ),
    Mutant(
        "nothing ever waits", transcript.Transcript, "closed", _always(True)
    ),
    Mutant(
        "late calls are as others", openai_responses, "_call", _not_late, _R
    ),
    Mutant("server tools open nothing", anthropic, "Opaque", _unlinked, _A),
    Mutant(
        "hosted calls open nothing", openai_responses, "Opaque", _unlinked, _R
    ),
    Mutant(
        "a reply is one message",
        transcript.Transcript,
        "reply",
        lambda right: lambda self, index, stop: range(index, index + 1),
        _R,
    ),
    # what is signed
    Mutant("nothing is signed", shown.ShownHistory, "signed", _always(False)),
    Mutant(
        "Gemini's calls are not signed",
        gemini.Gemini,
        "_parts",
        _unsigned_parts,
        _G,
    ),
    Mutant(
        "no call is signed in Chat",
        openai_chat,
        "_is_signed",
        _always(False),
        _C,
    ),
    Mutant(
        "a cut text keeps its signature",
        _gemini_fields,
        "unsigned",
        lambda _: dict,
        _G,
    ),
    Mutant(
        "edits lose the signature",
        anthropic.Anthropic,
        "edit",
        _without("signature"),
        _A,
    ),
    Mutant(
        "edits lose sealed text",
        anthropic.Anthropic,
        "edit",
        _without("encrypted_content"),
        _A,
    ),
    Mutant(
        "edits lose Gemini's signature",
        gemini.Gemini,
        "edit",
        _without("thoughtSignature"),
        _G,
    ),
    # what is bound
    Mutant(
        "reasoning is free",
        anthropic.Anthropic,
        "reasoning",
        _always("free"),
        _A,
    ),
    Mutant("bound reasoning stays", engine, "left_out", _always([]), _A),
    Mutant(
        "no bound reasoning is seen",
        shown.ShownHistory,
        "bound_reasoning",
        _always(False),
        _A,
    ),
    Mutant(
        "what another model left stays",
        engine,
        "_drop_stale",
        _always(None),
        _A,
    ),
    Mutant(
        "the newest thinking goes alone",
        engine,
        "left_out",
        _from_the_edit,
        _A,
    ),
    Mutant(
        "a manual turn may be parted",
        window.Window,
        "may_go_on",
        _always(True),
        _A,
    ),
    Mutant(
        "left out reasoning is shown", anthropic.Anthropic, "edit", _loud, _A
    ),
    Mutant(
        "nothing in place of reasoning",
        anthropic.Anthropic,
        "edit",
        _hollow,
        _A,
    ),
    # the window and the engine
    Mutant("summarised messages are visible", rendering, "layout", _whole),
    Mutant("everything fits", window.Window, "within", _always(True)),
    Mutant("nothing is settled", engine, "_settled", _always(0)),
    Mutant("what does not fit is sent", engine, "_check_limit", _always(None)),
    # the emergency
    Mutant("the guard sleeps", emergency, "_plan", _always(((), 0))),
    Mutant("a run begins one message early", emergency, "reach", _split),
    Mutant(
        "a compaction may go",
        transcript.Transcript,
        "compaction",
        _always(None),
        (*_A, *_R),
    ),
    Mutant(
        "what the provider reads no more is counted",
        builder.WindowBuilder,
        "extend",
        _all_counted,
        _A,
    ),
    Mutant("the index is empty", ranges, "index_of", _bare_index),
    Mutant(
        "no notice names what reads on", notices.Words, "read_on", _always("")
    ),
    # what is shown instead
    Mutant(
        "a placeholder is empty", notices.Words, "placeholder", _always("")
    ),
    Mutant(
        "arguments name no ref", notices.Words, "arguments", _always("gone")
    ),
    Mutant("arguments are no object", canon, "canonical_json", _always("[]")),
    Mutant("cuts are empty", anthropic.Anthropic, "edit", _emptied, _A),
    Mutant(
        "cuts are empty in Chat", openai_chat.OpenAIChat, "edit", _emptied, _C
    ),
    Mutant(
        "cuts are empty in Responses",
        openai_responses.OpenAIResponses,
        "edit",
        _emptied,
        _R,
    ),
    Mutant("cuts are empty in Gemini", gemini.Gemini, "edit", _emptied, _G),
    Mutant("cuts are empty in Ollama", ollama.Ollama, "edit", _emptied, _O),
    Mutant(
        "nothing is repaired",
        apply,
        "repair",
        lambda _: lambda wire, raws, *_, **__: Repaired(raws),
    ),
)


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The mutant in its place, and the right thing again afterwards."""
    right = mutant.place.__dict__[mutant.attribute]
    setattr(mutant.place, mutant.attribute, mutant.changed(right))
    policy_of.cache_clear()
    try:
        yield
    finally:
        setattr(mutant.place, mutant.attribute, right)
        policy_of.cache_clear()


def caught(mutant: Mutant, seed: int, histories: int, first: int = 0) -> str:
    """What the fuzzer says of a mutant; empty if it notices nothing. One is tried ``first``."""
    with planted(mutant):
        formats = (
            NUMBERED
            if set(mutant.formats) <= set(NUMBERED)
            else mutant.formats
        )
        for number in (first, *range(histories * len(formats))):
            if formats[number % len(formats)] in mutant.formats:
                tried = try_case(case(seed, number, formats))
                if tried.wrong:
                    return f"history {number}: {tried.wrong[0]}"
    return ""
