"""The five design documents as policies: the same stages, each with a document's settings.

    token_budget     token-budget-compaction.md      old results to 500 characters over a budget
    multi_stage      multi-stage-strategy.md         typed truncation, budget, emergency brake
    continuation     tool-result-continuation.md     4,000 characters, then get_continuation
    three_layer      three-layer-management.md       limits by tool, prune, spill
    output_cache     output-cache-and-compaction.md  views, placeholders with refs

A preset is a function from its document's settings to a `Policy`: data, and no code of its
own. Settings are given by Python name, or read from TOML, JSON or a mapping under the
document's own keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ullage.errors import ConfigError
from ullage.policy import Policy
from ullage.presets._settings import Settings, read
from ullage.presets.continuation import ContinuationSettings, continuation
from ullage.presets.multi_stage import MultiStageSettings, multi_stage
from ullage.presets.output_cache import ToolOutputCacheConfig, output_cache
from ullage.presets.three_layer import ThreeLayerSettings, three_layer
from ullage.presets.token_budget import TokenBudgetSettings, token_budget
from ullage.stages import DEFAULT

__all__ = [
    "NAMES",
    "continuation",
    "load",
    "multi_stage",
    "output_cache",
    "preset",
    "three_layer",
    "token_budget",
]

_PRESETS: Mapping[str, tuple[type[Settings], Callable[..., Policy]]] = {
    "continuation": (ContinuationSettings, continuation),
    "multi_stage": (MultiStageSettings, multi_stage),
    "output_cache": (ToolOutputCacheConfig, output_cache),
    "three_layer": (ThreeLayerSettings, three_layer),
    "token_budget": (TokenBudgetSettings, token_budget),
}
NAMES = ("default", *_PRESETS)


def preset(name: str, settings: Settings | None = None) -> Policy:
    """The policy of this name.

    Args:
        name: one of `NAMES`.
        settings: a preset's settings; None for its document's defaults.

    Raises:
        ConfigError: there is no policy of this name.
    """
    if name == "default":
        return DEFAULT
    if name not in _PRESETS:
        raise ConfigError("policy", f"{name!r} is not known", f"Use one of {', '.join(NAMES)}.")
    of, build = _PRESETS[name]
    return build(settings or of())


def load(name: str, source: str | os.PathLike[str] | Mapping[str, Any]) -> Policy:
    """A preset with settings read under its document's own keys.

    Args:
        name: one of `NAMES` but ``default``, which has no settings.
        source: a TOML or JSON file, or a mapping as one holds it. Other sections of an
            application's file are left alone; a key the section should not have is refused.

    Raises:
        ConfigError: the preset is not known, the file cannot be read, or a key or a value
            is not what the document says.
    """
    if name not in _PRESETS:
        raise ConfigError(
            "policy", f"{name!r} has no settings to load", f"Use one of {', '.join(_PRESETS)}."
        )
    of, build = _PRESETS[name]
    return build(read(of, source))
