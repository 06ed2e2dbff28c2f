"""Policies by name: the default, and the preset of each document.

A preset stands above the session, in a package of its own that is loaded for who names one. So
what is below it knows its name and its address, and does not import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Literal, TypeAlias

from ullage.core.contract.policy import Policy
from ullage.core.errors import ConfigError, did_you_mean
from ullage.policy.stages.default import DEFAULT

PolicyName: TypeAlias = Literal[
    "default",
    "continuation",
    "multi_stage",
    "output_cache",
    "three_layer",
    "token_budget",
]
"""The names of the policies, for editors and type checkers."""

PRESETS: Mapping[str, str] = dict.fromkeys(
    (
        "continuation",
        "multi_stage",
        "output_cache",
        "three_layer",
        "token_budget",
    ),
    "ullage.documents",
)
"""The package of each preset: there it is a function of its name."""

NAMES = ("default", *PRESETS)
"""Every name of a policy."""


def preset(name: str) -> Policy:
    """The policy of a name in `NAMES`, a preset with its document's defaults.

    Raises:
        ConfigError: there is no policy of this name.
    """
    if name == "default":
        return DEFAULT
    if name not in PRESETS:
        raise unknown(name)
    policy: Policy = getattr(import_module(PRESETS[name]), name)()
    return policy


def unknown(name: str) -> ConfigError:
    """The error for a name that no policy has."""
    remedy = f"{did_you_mean(name, NAMES)}Use one of {', '.join(NAMES)}."
    return ConfigError("policy", f"{name!r} is not known", remedy)
