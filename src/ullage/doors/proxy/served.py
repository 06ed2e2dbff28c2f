"""What a model server tells of the window it serves a model with: one reading for each API.

    GET  /v1/models              vLLM, SGLang, OpenRouter, Groq, Mistral, Together, llama.cpp
    GET  /props                  llama.cpp
    GET  /api/v0/models          LM Studio
    GET  /api/ps                 Ollama: models that are loaded
    POST /api/show               Ollama: a model's file
    GET  /model/info             LiteLLM

Some tell the window that is served, others only the most that the model was trained for. The
second bounds the first, and the server may have less.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ullage.wires import FORMATS

# a window is between these, or what was told is none
LEAST_TOKENS = 512
MOST_TOKENS = 100_000_000


class Served(Struct, frozen=True):
    """What a server says of one model.

    Attributes:
        window_tokens: the window; None: what it told cannot be one.
        source: the field it stands in.
        is_loaded: whether the model is served with it. If not, it is the most the model may have.
        is_default: whether it is what the server would load the model with.
    """

    window_tokens: int | None
    source: str
    is_loaded: bool = True
    is_default: bool = False

    @property
    def is_served(self) -> bool:
        """Whether it tells the window that the model is served with."""
        return self.is_loaded and self.window_tokens is not None


_LOADED = (
    "max_model_len",
    "loaded_context_length",
    "context_length",
    "context_window",
)
_LOADED_TOO = (
    "max_context_length",
    "max_input_tokens",
    "max_context_tokens",
    "n_ctx",
)
_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\S+)\s*$", re.MULTILINE)


def from_models(body: Any, model: str) -> Served | None:
    """What ``/v1/models`` says of a model: in the list, or of the one model a server has."""
    entry = _entry(_rows(body, "data"), model, "id")
    if entry is None:
        return None
    provider = entry.get("top_provider")
    if (
        isinstance(provider, Mapping)
        and provider.get("context_length") is not None
    ):
        return _served(
            provider["context_length"],
            "top_provider.context_length of /v1/models",
        )
    for name in (*_LOADED, *_LOADED_TOO):
        if entry.get(name) is not None:
            return _served(entry[name], f"{name} of /v1/models")
    meta = entry.get("meta")
    if not isinstance(meta, Mapping):
        return None
    if meta.get("n_ctx") is not None:
        return _served(meta["n_ctx"], "meta.n_ctx of /v1/models")
    if meta.get("n_ctx_train") is not None:
        return _served(
            meta["n_ctx_train"],
            "meta.n_ctx_train of /v1/models",
            is_loaded=False,
        )
    return None


def from_props(body: Any) -> Served | None:
    """What llama.cpp's ``/props`` says: the window of each of its slots."""
    if not isinstance(body, Mapping):
        return None
    settings = body.get("default_generation_settings")
    if isinstance(settings, Mapping) and settings.get("n_ctx") is not None:
        return _served(
            settings["n_ctx"], "default_generation_settings.n_ctx of /props"
        )
    if body.get("n_ctx") is not None:
        return _served(body["n_ctx"], "n_ctx of /props")
    return None


def from_lm_studio(body: Any, model: str) -> Served | None:
    """What LM Studio's ``/api/v0/models`` says of a model."""
    entry = _entry(_rows(body, "data"), model, "id")
    if entry is None:
        return None
    if entry.get("loaded_context_length") is not None:
        return _served(
            entry["loaded_context_length"],
            "loaded_context_length of /api/v0/models",
        )
    if entry.get("max_context_length") is not None:
        source = "max_context_length of /api/v0/models"
        return _served(entry["max_context_length"], source, is_loaded=False)
    return None


def from_ps(body: Any, model: str) -> Served | None:
    """What Ollama's ``/api/ps`` says of a model that is loaded."""
    entry = _entry(_rows(body, "models"), model, "model", "name", only=False)
    if entry is None or entry.get("context_length") is None:
        return None
    return _served(entry["context_length"], "context_length of /api/ps")


def from_show(body: Any, model: str) -> Served | None:
    """What Ollama's ``/api/show`` says: ``num_ctx`` of the model's file, or how it was trained.

    How it was trained is not what it is served with: without ``num_ctx`` that is the server's
    default until the model is loaded, and ``/api/ps`` tells.
    """
    if not isinstance(body, Mapping):
        return None
    parameters = body.get("parameters")
    match = (
        _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    )
    if match is not None:
        return _served(match[1], "num_ctx of /api/show")
    info = body.get("model_info")
    for name, value in info.items() if isinstance(info, Mapping) else ():
        if isinstance(name, str) and name.endswith(".context_length"):
            trained = _served(
                value, "context_length of /api/show", is_loaded=False
            )
            return _by_default(trained, model)
    return None


def _by_default(trained: Served, model: str) -> Served:
    """The window of a model that is not loaded, and of which only its training is told."""
    default = FORMATS["ollama"].default_window_tokens(model)
    most = trained.window_tokens
    if default is None or most is None or most <= default:
        return trained
    source = "the default, as /api/show has no num_ctx"
    return Served(default, source, is_loaded=False, is_default=True)


def from_model_info(body: Any, model: str) -> Served | None:
    """What LiteLLM's ``/model/info`` says of a model."""
    entry = _entry(_rows(body, "data"), model, "model_name", only=False)
    info = None if entry is None else entry.get("model_info")
    if not isinstance(info, Mapping):
        return None
    for name in ("max_input_tokens", "max_tokens"):
        if info.get(name) is not None:
            return _served(info[name], f"{name} of /model/info")
    return None


def _served(value: Any, source: str, *, is_loaded: bool = True) -> Served:
    """A window, if the value can be one."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool)
    if not is_count or not LEAST_TOKENS <= value <= MOST_TOKENS:
        return Served(None, source, is_loaded)
    return Served(value, source, is_loaded)


def _rows(body: Any, key: str) -> Iterator[Mapping[str, Any]]:
    """The entries of a list in an answer."""
    rows = body.get(key) if isinstance(body, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping):
            yield row


def _entry(
    rows: Iterator[Mapping[str, Any]],
    model: str,
    *names: str,
    only: bool = True,
) -> Mapping[str, Any] | None:
    """The entry of a model; with ``only`` the one that there is, whatever its name."""
    aliases = _known_as(model)
    entries = list(rows)
    for entry in entries:
        for name in names:
            value = entry.get(name)
            if isinstance(value, str) and aliases & _known_as(value):
                return entry
    return entries[0] if only and len(entries) == 1 else None


def _known_as(name: str) -> frozenset[str]:
    """The names that mean one model: as it is, without Ollama's default tag, without its owner."""
    plain = name.strip().lower().removesuffix(":latest")
    return frozenset((plain, plain.rpartition("/")[2]))
