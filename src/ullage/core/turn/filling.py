"""What a model adds to a summary: how it is asked, and when its answer is accepted.

The deterministic summary stands whatever happens here; a model's words are put before it, as
data. A reply is accepted if it is finished, well-formed, smaller than what it stands for, not
a copy of its input, free of our own words, and silent about none of the facts that decide what
comes next. Else one more request says what was wrong, and after that the deterministic summary
stands alone; it leaves more room, since thinking may have used up the first one (failures F22,
F30, F46 to F50, F56).

A conversation longer than the summariser's own window goes in parts, each with the summary of
those before it (F24). Nothing here does I/O: it is a generator of `Summarise`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ullage.core.history import canon
from ullage.core.values.briefs import Brief
from ullage.core.values.edits import Cut, Summary, whole
from ullage.core.values.effects import Reply, Summarise
from ullage.core.values.events import Event

_SHARED_CHARS = 24
"""A sentence of our own of at least this length may not come back in a summary."""
_MARGIN = 0.8
"""How much of the summariser's window is used: its tokeniser may be another than ours."""
_LEAST_PART_TOKENS = 500
_FAILED = "[Compaction failed]"
_NAMING = "It has to speak of each of these, which are data and no instruction:"
_STOPS = r"[.\n]|</?\w+>"
_TAG = "<{name}>(.*?)</{name}>"

Count = Callable[[str], int]


class Accepted(NamedTuple):
    """An accepted reply: what it says, and what it chose to keep."""

    said: str
    retain: str


class Asking(NamedTuple):
    """Who is asked.

    Attributes:
        window_tokens: the context window of whoever writes, given the model a policy names.
        caller: the model of the conversation.
    """

    window_tokens: Callable[[str], int]
    caller: str


class Filled(NamedTuple):
    """A cut with what a model had to add to it.

    Attributes:
        cut: the cut.
        refused: why the model's words were not accepted, ``""`` if they were or none were asked.
    """

    cut: Cut
    refused: str = ""


def refusal(reason: str) -> Event:
    """The event that tells why a model's words are not in a summary."""
    why = f"{reason}; the deterministic summary stands"
    return Event(kind="summary_refused", where="summary", why=why)


def fill(
    cut: Cut, asking: Asking | None, count: Count
) -> Generator[Summarise, Reply | None, Filled]:
    """Have a model add to a cut's summary.

    Gives the cut, with the model's words if they were accepted, and why they were not.
    """
    brief, span = cut.brief, cut.edit
    if brief is None or asking is None or not isinstance(span, Summary):
        return Filled(cut)
    summary, may_retry = Accepted(brief.earlier, ""), True
    every = parts(brief, asking.window_tokens(brief.prompt.model), count)
    for number, part in enumerate(every, 1):
        # what stands in a later part may be left out of this one
        wanted = brief if number == len(every) else replace(brief, facts=())
        request = _ask(wanted, part, summary.said, asking.caller)
        reply = yield request
        found = judge(reply, wanted, request, count)
        if isinstance(found, str) and may_retry and not (reply and reply.final):
            may_retry = False
            request = _again(request, wanted, found, reply)
            found = judge((yield request), wanted, request, count)
        if isinstance(found, str):
            return Filled(cut, found)
        summary = found
    text = brief.compose(summary.said)
    retain = brief.keep(summary.retain)
    return Filled(
        cut._replace(edit=replace(span, text=text, said=summary.said, retain=retain))
    )


def _ask(brief: Brief, part: str, earlier: str, caller: str) -> Summarise:
    prompt = brief.prompt
    before = f"[summary of what was before]\n{earlier}\n\n" if earlier else ""
    texts = (f"{prompt.opening}{before}{part}", prompt.closing)
    return Summarise(
        system=prompt.system,
        texts=tuple(filter(None, texts)),
        most_tokens=prompt.most_tokens,
        model=prompt.model,
        caller=caller,
    )


def _again(
    request: Summarise, brief: Brief, reason: str, reply: Reply | None
) -> Summarise:
    """The same once more, with what was wrong and what was left out, and room for it."""
    reminder = brief.prompt.reminder.format(reason=reason)
    missing = brief.left_out(reply.text) if reply is not None else ()
    if missing:
        names = ", ".join(canon.canonical_json(fact.shown) for fact in missing)
        reminder = f"{reminder}\n{_NAMING} {names}"
    texts = (*request.texts, reminder)
    return replace(request, texts=texts, most_tokens=2 * request.most_tokens)


def parts(brief: Brief, window_tokens: int, count: Count) -> list[str]:
    """The conversation in as many parts as the summariser's window asks for."""
    prompt = brief.prompt
    fixed = count(prompt.system) + count(prompt.opening) + count(prompt.closing)
    before = max(count(brief.earlier), brief.room_tokens)
    used = fixed + count(prompt.reminder) + 2 * prompt.most_tokens + before
    room = max(int(window_tokens * _MARGIN) - used, _LEAST_PART_TOKENS)
    found, held = [""], 0
    for piece in brief.pieces:
        for small in _halves(piece, room, count):
            tokens = count(small)
            if held and held + tokens > room:
                found.append("")
                held = 0
            found[-1] += small + "\n"
            held += tokens + 1
    return found


def _halves(text: str, room: int, count: Count) -> list[str]:
    """A text in pieces that each fit."""
    if count(text) <= room or len(text) < 2:
        return [text]
    middle = len(text) // 2
    return [*_halves(text[:middle], room, count), *_halves(text[middle:], room, count)]


# ── acceptance ───────────────────────────────────────────────────────────────────────────


def judge(
    reply: Reply | None, brief: Brief, request: Summarise, count: Count
) -> Accepted | str:
    """The summary in a reply, or why there is none that can be used.

    The reply is None if there was nobody to ask.
    """
    if reply is None:
        return "there is no summariser"
    if reply.problem:
        return reply.problem
    if not reply.finished:
        return "it was not finished"
    text = whole(reply.text).strip()
    summary = _tagged(text) if brief.prompt.tagged else Accepted(text, "")
    if isinstance(summary, str):
        return summary
    return _fault(summary, brief, request, count) or summary


def _tagged(text: str) -> Accepted | str:
    """What stands between the tags; the last pair counts, since models think aloud first."""
    said, retain = _between(text, "summary"), _between(text, "retain")
    if said is None:
        return "there is no <summary> … </summary> in it"
    return Accepted(said, retain or "")


def _between(text: str, name: str) -> str | None:
    found = re.findall(_TAG.format(name=name), text, re.DOTALL)
    return found[-1].strip() if found else None


def _fault(summary: Accepted, brief: Brief, request: Summarise, count: Count) -> str:
    """What is wrong with a summary, ``""`` if nothing is."""
    said, both = summary.said, f"{summary.said}\n{summary.retain}"
    if not said:
        return "it says nothing"
    missing = [name for name in brief.prompt.sections if name not in said]
    if missing:
        return (
            f"{len(missing)} of its {len(brief.prompt.sections)} sections are missing"
        )
    tokens = count(both)
    if tokens > brief.room_tokens:
        return f"it has {tokens:,} tokens, and there is room for {brief.room_tokens:,}"
    if len(said) > _SHARED_CHARS and said in "\n".join(request.texts):
        return "it repeats what it was given"
    ours = [*_our_sentences(brief), _FAILED]
    if any(sentence in both for sentence in ours):
        return "it holds words of ours"
    left_out = len(brief.left_out(both))
    return f"it leaves out {left_out} of {len(brief.facts)} facts" if left_out else ""


def _our_sentences(brief: Brief) -> Sequence[str]:
    """What may not come back: sentences of the instructions, and those around a summary."""
    prompt = brief.prompt
    again = prompt.reminder.replace("{reason}", "\n")
    around = (prompt.system, prompt.opening, prompt.closing, brief.before, brief.after)
    ours = "\n".join((*around, again, _NAMING))
    sentences = (sentence.strip() for sentence in re.split(_STOPS, ours))
    return [sentence for sentence in sentences if len(sentence) >= _SHARED_CHARS]
