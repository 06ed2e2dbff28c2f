"""Writes the package's list of prices anew, from the genai-prices that is installed.

    python -m lab.prices                    (make prices)

A model a line, so that a change of price reads as one. Left out: hosts that are told by their
address alone, what is priced by other things than tokens, and prices that are of the past.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from genai_prices import types as theirs
from genai_prices.data_snapshot import get_snapshot

import ullage.tokens
from ullage.tokens.price_list import Dated, Listed, Maker, Match, PriceList, Prices

PATH = Path(ullage.tokens.__file__).with_name("prices.json")
COLUMNS = {
    "input_usd": "input_mtok",
    "output_usd": "output_mtok",
    "cache_read_usd": "cache_read_mtok",
    "cache_write_usd": "cache_write_mtok",
    "long_write_usd": "cache_write_1h_mtok",
    "audio_input_usd": "input_audio_mtok",
    "audio_cache_read_usd": "cache_audio_read_mtok",
    "audio_output_usd": "output_audio_mtok",
}
"""Our prices, and what genai-prices calls them."""
KINDS = {
    theirs.ClauseEquals: ("equals", "equals"),
    theirs.ClauseStartsWith: ("starts", "starts_with"),
    theirs.ClauseEndsWith: ("ends", "ends_with"),
    theirs.ClauseContains: ("contains", "contains"),
    theirs.ClauseRegex: ("regex", "regex"),
}


def matched(clause: Any) -> Match:
    """A clause of theirs as ours: alternatives, by their kind."""
    found: dict[str, list[Any]] = {}
    for kind, value in alternatives(clause):
        found.setdefault(kind, []).append(value)
    return Match(**{kind: tuple(values) for kind, values in found.items()})


def alternatives(clause: Any) -> Iterator[tuple[str, Any]]:
    """Each alternative of a clause, and its kind."""
    if isinstance(clause, theirs.ClauseOr):
        for each in clause.or_:
            yield from alternatives(each)
    elif isinstance(clause, theirs.ClauseAnd):
        yield "all_of", tuple(matched(each) for each in clause.and_)
    else:
        kind, field = KINDS[type(clause)]
        value = getattr(clause, field)
        yield kind, value if kind == "regex" else value.lower()


def dated(listed: Any, constraint: Any = None) -> Dated:
    """One set of prices, its tiers told apart."""
    columns = {ours: getattr(listed, theirs, None) for ours, theirs in COLUMNS.items()}
    starts = {tier.start for column in columns.values() for tier in getattr(column, "tiers", ())}
    priced = columns["input_usd"] is not None and columns["output_usd"] is not None
    hours = isinstance(constraint, theirs.TimeOfDateConstraint)
    return Dated(
        prices=prices_above(columns, 0),
        tiers=tuple((start, prices_above(columns, start)) for start in sorted(starts) if priced),
        since=getattr(constraint, "start_date", None),
        hours=(constraint.start_time, constraint.end_time) if hours else None,
    )


def prices_above(columns: dict[str, Any], start: int) -> Prices:
    """The prices of prompts just over so many tokens."""
    return Prices(**{name: above(column, start) for name, column in columns.items()})


def above(column: Any, start: int) -> float | None:
    """One price of prompts just over so many tokens."""
    if column is None:
        return None
    price = getattr(column, "base", column)
    for tier in getattr(column, "tiers", ()):
        if tier.start <= start:
            price = tier.price
    return float(price)


def listed(model: Any, today: date) -> Listed | None:
    """A model of theirs; None if nothing of it is told in tokens."""
    each = model.prices if isinstance(model.prices, list) else [model.prices]
    found = [dated(getattr(p, "prices", p), getattr(p, "constraint", None)) for p in each]
    begun = [at for at, p in enumerate(found) if p.since and p.since <= today]
    found = found[begun[-1] :] if begun else found
    window = model.context_window or 0
    if not window and all(p.prices == Prices() for p in found):
        return None
    return Listed(id=model.id, match=matched(model.match), window=window, prices=tuple(found))


def built(today: date) -> PriceList:
    """The list as it is today."""
    makers = []
    for provider in get_snapshot().providers:
        if provider.model_match is None:
            continue
        models = [model for each in provider.models if (model := listed(each, today)) is not None]
        makers.append(
            Maker(id=provider.id, match=matched(provider.model_match), models=tuple(models))
        )
    source = (
        f"genai-prices {version('genai-prices')} (MIT licence, github.com/pydantic/genai-prices)"
    )
    return PriceList(source=source, as_of=today, makers=tuple(makers))


def written(found: PriceList) -> str:
    """The list as JSON, a model a line."""
    lines = [f'{{"source":{text(found.source)},"as_of":{text(found.as_of)},"makers":[']
    for maker in found.makers:
        lines.append(f'{{"id":{text(maker.id)},"match":{text(maker.match)},"models":[')
        lines += [text(model) + "," for model in maker.models[:-1]]
        lines += [text(model) for model in maker.models[-1:]]
        lines.append("]}," if maker is not found.makers[-1] else "]}")
    return "\n".join([*lines, "]}", ""])


def text(value: object) -> str:
    """A value as JSON."""
    return msgspec.json.encode(value).decode()


if __name__ == "__main__":
    found = built(datetime.now(UTC).date())
    PATH.write_text(written(found), encoding="utf-8")
    models = sum(len(maker.models) for maker in found.makers)
    print(f"{models} models of {len(found.makers)} makers, {PATH.stat().st_size / 1000:.0f} kB")
