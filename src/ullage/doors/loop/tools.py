"""Tools for the loop: plain functions, or anything that answers a dict of arguments with text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from ullage.core.errors import ConfigError
from ullage.doors.host import jsonable


def _plain(value: Any) -> Any:
    """A value that JSON does not have: as plain data if it can be, else as its string."""
    try:
        return jsonable(value)
    except TypeError:
        return str(value)


_JSON = msgspec.json.Encoder(enc_hook=_plain).encode


class Returned(Struct, frozen=True):
    """What a tool may return to say that it failed; anything else it returns is a success.

    Attributes:
        text: what the model reads.
        is_error: whether it is an error.
    """

    text: str
    is_error: bool = False


class Tool(Struct, frozen=True):
    """Something the model may call.

    Attributes:
        name: what the model calls it.
        description: what the model reads of it.
        parameters: a JSON schema of an object.
        run: takes the arguments as a dict; may be a coroutine function in `arun_turn`. What it
            returns is shown as it is if it is text, as JSON if not. What it raises is shown to
            the model as an error.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[dict[str, Any]], Any]


def tool(function: Callable[..., Any]) -> Tool:
    """A plain function as a tool: its name, its docstring, its signature.

    Parameters have the types that JSON and msgspec know; ``Annotated[str, Meta(description=…)]``
    says more of one. A parameter without a type takes anything. Arguments are checked and
    converted before the call (``"5"`` is taken for an int).

    Args:
        function: a function, or a coroutine function for `arun_turn`.

    Raises:
        ConfigError: its signature cannot be a schema (``*args``, ``**kwargs``,
            positional-only parameters, a type that JSON does not have).
    """
    types = _types_of(function)
    try:
        schemas, parts = msgspec.json.schema_components(
            types.values(), ref_template="#/$defs/{name}"
        )
    except TypeError as error:
        raise _no_schema(function, str(error)) from None
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": dict(zip(types, schemas, strict=True)),
        "required": [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.default is parameter.empty
        ],
        **({"$defs": parts} if parts else {}),
    }

    def prepared(arguments: dict[str, Any]) -> dict[str, Any]:
        unknown = arguments.keys() - types.keys()
        if unknown:
            raise TypeError(f"no such parameter: {', '.join(sorted(unknown))}")
        return {
            name: msgspec.convert(value, types[name], strict=False)
            for name, value in arguments.items()
        }

    def call(arguments: dict[str, Any]) -> Any:
        return function(**prepared(arguments))

    async def acall(arguments: dict[str, Any]) -> Any:
        return await function(**prepared(arguments))

    run = acall if inspect.iscoroutinefunction(function) else call
    return Tool(
        function.__name__, inspect.getdoc(function) or "", parameters, run
    )


def by_name(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """The tools under their names, functions made into tools.

    Raises:
        ConfigError: two have the same name, or a function has no schema.
    """
    named: dict[str, Tool] = {}
    for candidate in tools:
        entry = candidate if isinstance(candidate, Tool) else tool(candidate)
        if entry.name in named:
            raise ConfigError(
                "tools",
                f"two are called {entry.name!r}",
                "Give each tool a name of its own.",
            )
        named[entry.name] = entry
    return named


def outcome_of(result: Any) -> Returned:
    """What the model reads of what a tool returned or raised."""
    if isinstance(result, Returned):
        return result
    if isinstance(result, Exception):
        return Returned(f"{type(result).__name__}: {result}", is_error=True)
    if result is None or isinstance(result, str):
        return Returned(result or "")
    try:
        return Returned(_JSON(result).decode())
    except (TypeError, ValueError, RecursionError) as error:
        return Returned(
            f"the tool returned what is not JSON: {error}", is_error=True
        )


def _types_of(function: Callable[..., Any]) -> dict[str, Any]:
    hints = get_type_hints(function, include_extras=True)
    types = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            raise _no_schema(
                function,
                f"its parameter {parameter.name!r} has no name to call by",
            )
        types[parameter.name] = hints.get(parameter.name, Any)
    return types


def _no_schema(function: Callable[..., Any], problem: str) -> ConfigError:
    name = getattr(function, "__name__", "a tool")
    remedy = "Give a Tool with parameters of its own."
    return ConfigError("tools", f"{name}: no schema ({problem})", remedy)
