"""The policy of a replay: a preset by its name, or one of the user's own as ``module:name``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from ullage.core.contract.policy import Policy
from ullage.core.errors import ConfigError, did_you_mean
from ullage.documents import preset
from ullage.policy.stages.fingerprints import fingerprint

_REMEDY = (
    "Write the name of a preset, or module:name of a Policy of yours. A stage becomes one so, in "
    'mine.py: policy = ullage.Policy(name="mine", on_arrival=(stage,)). It is mine:policy.'
)


def policy_named(name: str) -> Policy:
    """The policy that a user names.

    Args:
        name: of a preset; or ``module:name`` of a `Policy`, or of a function without arguments
            that makes one. The module is also looked for in the current folder.

    Raises:
        ConfigError: there is none, its module cannot be imported, or it is something else, such
            as a stage.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon:
        return preset(name)
    is_dotted_name = all(
        part.isidentifier() for part in module_name.split(".")
    )
    if not is_dotted_name or not attribute.isidentifier():
        raise _unusable(name, "this is not of the form module:name")
    module = _imported(name, module_name)
    missing = object()
    value = getattr(module, attribute, missing)
    if value is missing:
        question = did_you_mean(attribute, vars(module)).strip()
        problem = f"the module {module_name} has no {attribute!r}"
        raise _unusable(name, problem, question)
    if isinstance(value, Policy):
        return value
    if not callable(value):
        raise _unusable(
            name, f"its type is {type(value).__name__}, not Policy"
        )
    return _made_by(value, name)


def _imported(name: str, module_name: str) -> ModuleType:
    """The module; the current folder is searched first."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(
            f"{error.name}."
        ):
            problem = f"the module {module_name} imports {error.name}, which is not there"
            raise _unusable(name, problem) from None
        problem = f"there is no module {error.name} in this folder or in what is installed"
        raise _unusable(name, problem) from None
    except (Exception, SystemExit) as error:  # whatever a user's module does
        raise _failing(
            name, f"the module {module_name} fails when it is imported", error
        ) from error


def _made_by(function: Callable[[], object], name: str) -> Policy:
    """The policy that a function of the user's makes."""
    kind = "class" if isinstance(function, type) else "function"
    fails = f"the {kind} fails when it is called"
    try:
        value = function()
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next:
            raise _failing(name, fails, error) from error
        problem = f"it is a {kind} that needs arguments, not a Policy"
        raise _unusable(name, problem) from None
    except (Exception, SystemExit) as error:  # whatever a user's code does
        raise _failing(name, fails, error) from error
    if isinstance(value, Policy):
        return value
    returned = type(value).__name__
    raise _unusable(name, f"the {kind} makes a {returned}, not a Policy")


def _failing(name: str, problem: str, error: BaseException) -> ConfigError:
    """The error of a name whose code, the user's, raises another."""
    return _unusable(name, f"{problem} ({_kind_of(error)})")


def _kind_of(error: BaseException) -> str:
    """What went wrong in code of the user's, and in which line; its words may hold anything."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{kind} in line {error.lineno}"
    trace = error.__traceback__
    line = 0
    while trace is not None:
        line = trace.tb_lineno
        trace = trace.tb_next
    return f"{kind} in line {line}" if line else kind


@lru_cache(maxsize=64)
def key_of(name: str) -> str:
    """What names a policy beside results that are kept: for the user's own, what it does too."""
    if ":" not in name:
        return name
    return f"{name} {fingerprint(policy_named(name))}"


def _unusable(name: str, problem: str, question: str = "") -> ConfigError:
    remedy = f"{question} {_REMEDY}".strip()
    return ConfigError("--policy", f"{name!r}: {problem}", remedy)
