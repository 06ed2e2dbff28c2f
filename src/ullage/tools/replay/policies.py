"""The policy of a replay: a preset by its name, or one of the user's own as ``module:name``."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from ullage.core.contract.policy import Policy
from ullage.core.errors import ConfigError
from ullage.documents import preset
from ullage.policy.stages.fingerprints import fingerprint


def policy_named(name: str) -> Policy:
    """The policy that a user names.

    Args:
        name: of a preset; or ``module:name`` of a `Policy`, or of a function without arguments
            that makes one. The module is also looked for in the current folder.

    Raises:
        ConfigError: there is none, or its module cannot be imported.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon:
        return preset(name)
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise _unusable(name, f"it cannot be imported ({error})") from None
    value = getattr(module, attribute, None)
    if value is None:
        raise _unusable(name, f"the module has no {attribute!r}")
    if not isinstance(value, Policy) and callable(value):
        value = value()
    if not isinstance(value, Policy):
        raise _unusable(name, f"it is a {type(value).__name__}, no Policy")
    return value


@lru_cache(maxsize=64)
def key_of(name: str) -> str:
    """What names a policy beside results that are kept: for the user's own, what it does too."""
    if ":" not in name:
        return name
    return f"{name} {fingerprint(policy_named(name))}"


def _unusable(name: str, problem: str) -> ConfigError:
    remedy = "Write a preset's name, or module:name of a Policy: mine.py has it as mine:policy."
    return ConfigError("--policy", f"{name!r}: {problem}", remedy)
