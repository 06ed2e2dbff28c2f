"""Policies that would cheat a weak metric; each must rank below plain recency (`metrics` N3).

    identifier_dump   every name ever seen, in one heap
    hash_list         a digest of every result
    giant_ref         one ref that returns everything
    line_refs         a ref for every single line
    call_tails        a ref a result, told only by the tail of its call
    repeat_all        everything over again in a summary, as far as it goes
    hidden_in_ids     results hidden in the ids of their calls
    last_call         the last call and its results, nothing else
    names_only        half the budget for the newest, half for the names in what is older

All keep what is said first, and the last call with its results. What users say later stays only
where a policy takes the newest messages (`hidden_in_ids`, `names_only`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any

from lab.replay.frame import newest, with_note
from lab.replay.past import Frame, Past, Shown
from ullage.tools.replay.evidence.atoms import atoms_in, plain

_ID_KEYS = frozenset(("id", "tool_call_id", "tool_use_id", "call_id"))
_TAIL_CHARS = 30


def last_call(past: Past, budget_tokens: int) -> Shown:
    """Only the last call and its results."""
    return Shown(newest(past, 0, {}))


def identifier_dump(past: Past, budget_tokens: int) -> Shown:
    """Every name in the older results, sorted, without the lines they stood in."""
    names = {name for text in _older(past) for name in _names(text)}
    return _noted(past, budget_tokens, " ".join(sorted(names)))


def names_only(past: Past, budget_tokens: int) -> Shown:
    """The newest messages in half the budget; of older results the names, newest first."""
    view = newest(past, budget_tokens // 2, {})
    shown = {id(raw) for raw in view}
    lines = []
    for index, part in reversed(past.results):
        if id(past.story.messages[index]) not in shown:
            texts = past.result_texts(index, part)
            lines.append(
                " ".join(name for text in texts for name in _names(text))
            )
    room = budget_tokens - past.tokens(view) - 8
    return Shown(with_note(past, view, _within(past, "\n".join(lines), room)))


def hash_list(past: Past, budget_tokens: int) -> Shown:
    """A digest of every older result."""
    return _noted(past, budget_tokens, "\n".join(map(_ref, _older(past))))


def giant_ref(past: Past, budget_tokens: int) -> Shown:
    """One ref; opening it returns everything."""
    everything = "\n".join(_older(past))
    ref = _ref(everything)
    return _noted(
        past,
        budget_tokens,
        f"Everything is under ref={ref}",
        {ref: everything},
    )


def line_refs(past: Past, budget_tokens: int) -> Shown:
    """A ref for every single line of the older results."""
    lines = (
        line for text in _older(past) for line in text.splitlines() if line
    )
    most = max(budget_tokens, 0) // 8
    pages = {_ref(line): line for line in islice(dict.fromkeys(lines), most)}
    return _noted(
        past, budget_tokens, "\n".join(f"ref={ref}" for ref in pages), pages
    )


def call_tails(past: Past, budget_tokens: int) -> Shown:
    """A ref for every older result, beside it the last 30 characters of its call."""
    pages: dict[str, str] = {}
    lines = []
    for index, part in past.results:
        call = past.story.call_for(index, part)
        text = "\n".join(past.result_texts(index, part))
        pages[_ref(text)] = text
        tail = call.arguments[-_TAIL_CHARS:] if call else ""
        lines.append(f"{tail} ref={_ref(text)}")
    return _noted(past, budget_tokens, "\n".join(lines), pages)


def repeat_all(past: Past, budget_tokens: int) -> Shown:
    """The older results over again in one summary, until the budget is full."""
    return _noted(past, budget_tokens, "\n".join(_older(past)))


def hidden_in_ids(past: Past, budget_tokens: int) -> Shown:
    """Results are "ok"; what they said stands in the ids of their calls, where nobody counts."""
    hidden: dict[str, str] = {}
    for index, _ in past.results:
        for piece in past.story.pieces[index]:
            hidden[piece.call_id] = (
                f"{hidden.get(piece.call_id, piece.call_id)} {piece.text}"
            )
    view = newest(
        past, budget_tokens, past.with_results(lambda _: "ok", past.results)
    )
    return Shown([_renamed(raw, hidden) for raw in view])


ADVERSARIES: Mapping[str, Frame] = {
    "identifier_dump": identifier_dump,
    "hash_list": hash_list,
    "giant_ref": giant_ref,
    "line_refs": line_refs,
    "call_tails": call_tails,
    "repeat_all": repeat_all,
    "hidden_in_ids": hidden_in_ids,
    "last_call": last_call,
    "names_only": names_only,
}
"""The adversaries by name."""


def _older(past: Past) -> Iterator[str]:
    """The texts of all recorded results but those behind the last call."""
    last = past.blocks[-1] if past.blocks else range(0)
    for index, part in past.results:
        if index not in last and past.story.origins[index] >= 0:
            yield from past.result_texts(index, part)


def _noted(
    past: Past,
    budget_tokens: int,
    text: str,
    pages: Mapping[str, str] | None = None,
) -> Shown:
    """The last call and its results behind a note, as much of it as fits."""
    view = newest(past, 0, {})
    kept = _within(past, text, budget_tokens - past.tokens(view) - 8)
    return Shown(with_note(past, view, kept), pages or {})


def _within(past: Past, text: str, tokens: int) -> str:
    """The beginning of a text, of no more than so many tokens."""
    text = text[: max(tokens, 0) * 8]
    while text and (size := past.text_tokens(text)) > tokens:
        text = text[: int(len(text) * max(tokens, 0) / size * 0.98)]
    return text


@lru_cache(maxsize=4096)
def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(atom.text for atom in atoms_in(plain(text))))


@lru_cache(maxsize=65536)
def _ref(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _renamed(value: Any, hidden: Mapping[str, str]) -> Any:
    """A copy with what is hidden in place of the ids."""
    if isinstance(value, list):
        return [_renamed(item, hidden) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: hidden.get(item, item)
        if key in _ID_KEYS and isinstance(item, str)
        else _renamed(item, hidden)
        for key, item in value.items()
    }
