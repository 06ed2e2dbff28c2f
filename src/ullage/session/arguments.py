"""What a session is given, checked where it is given and not at the first request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ullage.core.errors import ConfigError, did_you_mean
from ullage.core.values.limits import Limits
from ullage.session.spend.budget import Budget


def check_arguments(model: Any, limits: Any, recall: Any, budget: Any) -> None:
    """Refuse arguments of another type, with what to write in their place.

    Policies, formats and stores are checked where they are opened.

    Args:
        model: the name of the model; an empty one is taken from the request.
        limits: of the session, or None.
        recall: whether the recall tools are offered.
        budget: of the session, or None.

    Raises:
        ConfigError: one of them is of another type.
    """
    if not isinstance(model, str):
        remedy = "Give its name: model='gpt-4.1'."
        raise ConfigError("model", f"{_type_of(model)} names no model", remedy)
    if limits is not None and not isinstance(limits, Limits):
        tokens = (
            limits
            if isinstance(limits, int) and not isinstance(limits, bool)
            else 64_000
        )
        remedy = f"Give limits=ullage.Limits(window_tokens={tokens})."
        raise ConfigError(
            "limits", f"{_type_of(limits)} is not Limits", remedy
        )
    if not isinstance(recall, bool) and recall not in ("auto", "host"):
        remedy = "Give recall=True, False, 'auto' or 'host'."
        raise ConfigError("recall", f"{recall!r} is not known", remedy)
    if budget is not None and not isinstance(budget, Budget):
        remedy = "Give budget=ullage.Budget(tokens=…) or ullage.Budget(usd=…)."
        raise ConfigError(
            "budget", f"{_type_of(budget)} is not a Budget", remedy
        )


def check_names(settings: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a setting that no session has, with the one that may be meant.

    Args:
        settings: names of settings, as they were given.
        known: the names that there are.

    Raises:
        ConfigError: one of them is not known.
    """
    names = sorted({*known} - {"self"})
    for name in settings:
        if name in names:
            continue
        limits = Limits.__struct_fields__
        if hint := did_you_mean(name, limits).removesuffix("? "):
            remedy = f"{hint} in limits=ullage.Limits(…)?"
        else:
            listed = ", ".join(names)
            remedy = f"{did_you_mean(name, names)}There are: {listed}."
        raise ConfigError(name, "no session has such a setting", remedy)


def _type_of(value: Any) -> str:
    """The type of a value, for people. Never the value: it may be a secret."""
    name = type(value).__name__
    article = "an" if name[:1].lower() in "aeiou" else "a"
    return f"{article} {name}"
