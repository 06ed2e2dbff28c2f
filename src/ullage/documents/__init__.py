"""The five design documents as policies: the same stages, each with a document's settings.

    token_budget     token-budget-compaction.md      old results to 500 characters over a budget
    multi_stage      multi-stage-strategy.md         typed truncation, budget, emergency brake
    continuation     tool-result-continuation.md     4,000 characters, then get_continuation
    three_layer      three-layer-management.md       limits by tool, prune, spill
    output_cache     output-cache-and-compaction.md  views, placeholders with refs

A preset is a function from its document's settings to a `Policy`: data, and no code of its
own. Settings are given by Python name, or read under the document's own keys: from TOML, JSON
or a mapping (`load`), or from environment variables where the document names some (`from_env`).

Beside the presets stand the services of a document (`services`), its figures (`metrics`) and a
chat service's conversations (`conversation`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ullage.core.contract.policy import Policy
from ullage.core.errors import ConfigError
from ullage.documents.presets._files import Source, values_of
from ullage.documents.presets._settings import DocumentSettings, read
from ullage.documents.presets.continuation import (
    ContinuationSettings,
    continuation,
)
from ullage.documents.presets.multi_stage import (
    MultiStageSettings,
    multi_stage,
)
from ullage.documents.presets.output_cache import (
    ToolOutputCacheConfig,
    output_cache,
)
from ullage.documents.presets.three_layer import (
    ThreeLayerSettings,
    three_layer,
)
from ullage.documents.presets.token_budget import (
    TokenBudgetSettings,
    token_budget,
)
from ullage.policy.stages.named import NAMES, PolicyName, preset, unknown
from ullage.session.spend.environment import TOKEN_BUDGET, whole_number

__all__ = [
    "NAMES",
    "TOKEN_BUDGET",
    "PolicyName",
    "continuation",
    "from_env",
    "load",
    "multi_stage",
    "output_cache",
    "preset",
    "three_layer",
    "token_budget",
    "whole_number",
]

_PRESETS: Mapping[
    str, tuple[type[DocumentSettings], Callable[..., Policy]]
] = {
    "continuation": (ContinuationSettings, continuation),
    "multi_stage": (MultiStageSettings, multi_stage),
    "output_cache": (ToolOutputCacheConfig, output_cache),
    "three_layer": (ThreeLayerSettings, three_layer),
    "token_budget": (TokenBudgetSettings, token_budget),
}


def load(name: str, source: Source) -> Policy:
    """A preset with settings read under its document's own keys.

    Args:
        name: one of `NAMES` but ``default``, which has no settings.
        source: a TOML or JSON file, or a mapping as one holds it. Other sections of an
            application's file are left alone; a key the section should not have is refused.

    Raises:
        ConfigError: the preset is not known, the file cannot be read, or a key or a value
            is not what the document says.
    """
    settings_type, build = _named(name)
    return build(read(settings_type, values_of(source)))


def from_env(name: str) -> Policy:
    """A preset with the settings its document's environment variables hold; read now, once.

    A variable that is unset or empty leaves the document's default.

    Args:
        name: a preset whose document names environment variables.

    Raises:
        ConfigError: the preset is not known or names none, or a variable holds no number.
    """
    settings_type, build = _named(name)
    if not settings_type.environment:
        raise ConfigError(
            "policy",
            f"{name!r} names no environment variables",
            "Use presets.load(name, …).",
        )
    numbers = {
        variable: whole_number(variable)
        for variable in settings_type.environment
    }
    return build(
        settings_type(
            **{
                key: value
                for key, value in numbers.items()
                if value is not None
            }
        )
    )


def _named(name: str) -> tuple[type[DocumentSettings], Callable[..., Policy]]:
    if name in _PRESETS:
        return _PRESETS[name]
    if name == "default":
        raise ConfigError(
            "policy",
            "default has no settings",
            f"Use one of {', '.join(_PRESETS)}.",
        )
    raise unknown(name)
