"""Replays as a Parquet file: a row for each, for DuckDB and notebooks.

The columns are the fields of what was replayed (`Replayed`, lists and structs as they are) after
``file``. DuckDB writes it, the extra ``parquet``: one package that also reads it.
"""

from __future__ import annotations

import os
import tempfile
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from ullage import __version__
from ullage.core.errors import ConfigError
from ullage.core.installing import install_remedy
from ullage.tools.replay.run import Replayed

_Type: TypeAlias = Any
_PLAIN = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR", bool: "BOOLEAN"}


def write_parquet(
    path: Path,
    replays: Iterable[tuple[str, Replayed]],
    kind: type[Replayed] = Replayed,
) -> None:
    """Write replays, each with the name of its file. The file is there whole, or as it was before.

    Raises:
        ConfigError: DuckDB is not installed, or the file cannot be written.
    """
    duckdb = _duckdb()
    part = path.with_name(f".{path.name}.part")
    columns = {"file": "VARCHAR", **_columns(kind)}
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "replays.jsonl"
        with lines.open("wb") as out:
            for name, replayed in replays:
                row = {"file": name, **msgspec.to_builtins(replayed)}
                out.write(msgspec.json.encode(row) + b"\n")
        typed = ", ".join(
            f"{_quoted(name)}: {_quoted(sql)}" for name, sql in columns.items()
        )
        rows = f"read_json({_quoted(lines)}, format = 'newline_delimited', columns = {{{typed}}})"
        options = (
            f"FORMAT parquet, KV_METADATA {{ullage: {_quoted(__version__)}}}"
        )
        try:
            with duckdb.connect(
                config={"autoinstall_known_extensions": "false"}
            ) as db:
                db.execute(
                    f"COPY (SELECT * FROM {rows}) TO {_quoted(part)} ({options})"
                )
            part.replace(path)
        except (duckdb.IOException, OSError) as error:
            part.unlink(missing_ok=True)
            reason = f"the file cannot be written ({type(error).__name__})"
            raise ConfigError(
                "--out", reason, "Give a path in a folder that is there."
            ) from None


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        reason = "DuckDB, which writes Parquet, is not installed"
        raise ConfigError(
            "--out", reason, f"{install_remedy('parquet')}."
        ) from None
    return duckdb


def _columns(kind: type[Struct]) -> dict[str, str]:
    """The fields of a struct, each with its type in SQL."""
    return {
        name: _sql(annotation)
        for name, annotation in typing.get_type_hints(kind).items()
    }


def _sql(annotation: _Type) -> str:
    origin: Any = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        fields = (
            f'"{name}" {sql}' for name, sql in _columns(annotation).items()
        )
        return f"STRUCT({', '.join(fields)})"
    if origin is Literal:
        return "VARCHAR"
    # Only unions with None occur, and every column may be null.
    if origin in (types.UnionType, typing.Union):
        (value,) = (
            argument
            for argument in arguments
            if argument is not types.NoneType
        )
        return _sql(value)
    if origin in (list, tuple, Sequence):
        return f"{_sql(arguments[0])}[]"
    if origin in (dict, Mapping):
        return f"MAP({_sql(arguments[0])}, {_sql(arguments[1])})"
    raise TypeError(f"{annotation} has no type in SQL")


def _quoted(text: str | os.PathLike[str]) -> str:
    return "'" + str(text).replace("'", "''") + "'"
