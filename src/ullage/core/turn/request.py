"""The door: a provider's request is read once, into one value.

After that nothing looks at the raw request until the view is rendered from it. What does not
change from turn to turn (system text, tools, settings) is read again only when it changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.core.contract.choice import Choice
from ullage.core.contract.format import (
    Format,
    Formats,
    HeldHistory,
    RequestHead,
)
from ullage.core.errors import FormatError
from ullage.core.history import canon
from ullage.core.history.raw import field, text_at
from ullage.core.history.snapshots import snapshot_at
from ullage.core.tokens.models import family_of as token_family
from ullage.core.values.edits import without_surrogates
from ullage.core.values.messages import ReasoningRule


class Envelope(Struct, frozen=True):
    """What of a request stands around its history.

    Attributes:
        model: the model it is for.
        head: system text, tools and schemas as text to be counted.
        detail: how finely it has media looked at, where a medium does not say.
        tools: its own tool definitions.
        takes_tools: whether functions may be added to them.
        uses_tools: whether it has any, and the model may call them.
        choice: which of them the model may call.
        reasoning: what an edit means for the reasoning behind it.
        thinks_first: whether an open turn must begin with thinking (A14).
        family: whose rules of reasoning hold, and whose tokeniser is estimated.
        window_tokens: the window that it asks its server for, or None.
        default_tokens: the window that its server has if nobody says otherwise, or None.
        bars_tools: why no functions may be added, beside what its wire says: its provider refused
            them (``"refused"``), or it has as many as its wire takes (``"full"``).
    """

    model: str
    head: RequestHead
    detail: str
    tools: Sequence[Any]
    takes_tools: bool
    uses_tools: bool
    choice: Choice
    reasoning: ReasoningRule
    thinks_first: bool
    family: str
    window_tokens: int | None = None
    default_tokens: int | None = None
    bars_tools: Literal["", "refused", "full"] = ""


class Request(Struct, frozen=True):
    """A request, read.

    Attributes:
        wire: its format.
        raw: the caller's request, never changed.
        history: its raw messages, system text included.
        envelope: what stands around them.
        elsewhere: the field that names what comes before it and is held by the provider, or ``""``.
        before: what it names that by.
        is_thread: whether the next request may go on from the reply by its id alone.
    """

    wire: Format
    raw: Mapping[str, Any]
    history: Sequence[Any]
    envelope: Envelope
    elsewhere: str = ""
    before: str = ""
    is_thread: bool = False

    def root(self, tenant: str) -> bytes:
        """The chain before the first message, 16 bytes.

        What follows on a history that the provider holds is no history of its own: two requests
        that say the same are at the same place only if they go on from the same reply.
        """
        root = canon.root(self.wire.name, tenant)
        if not self.elsewhere:
            return root
        return canon.extend(
            root,
            canon.content_digest(f"{self.elsewhere} {self.before}", "held"),
        )


Header: TypeAlias = tuple[Any, Any, str, str, Envelope]
"""Copies of what stood around a request's messages and of its leading system text, the names of its
format and model, and the envelope that was read of these."""


class Envelopes:
    """The envelope read last (``last``), behind what it was read from."""

    def __init__(self) -> None:
        self.last: Header | None = None

    def read(
        self, request: Mapping[str, Any], wire: Format, model: str
    ) -> Envelope:
        """The envelope of a request, read again only if anything of it changed.

        Raises:
            FormatError: something in it is not what the format says it is.
        """
        leading = wire.leading(request)
        outside = {
            key: value for key, value in request.items() if key != wire.key
        }
        last = self.last
        if last is not None and last[:4] == (
            outside,
            leading,
            wire.name,
            model,
        ):
            return last[4]
        kept = {
            key: snapshot_at(value, str(key)) for key, value in outside.items()
        }
        known = snapshot_at(leading, wire.key)
        envelope = _read_envelope(request, wire, model)
        self.last = (kept, known, wire.name, model, envelope)
        return envelope


def read(
    request: Mapping[str, Any],
    model: str,
    wire: Format | None,
    formats: Formats,
    envelopes: Envelopes,
) -> Request:
    """Read a request.

    Args:
        request: the keyword arguments of the provider call, with the whole history.
        model: the model, where the request names none.
        wire: its format; None: it is recognised.
        formats: the formats that there are.
        envelopes: what was read last.

    Raises:
        FormatError: it is not what its format says it is, or it names a history held elsewhere
            in a way that its wire does not have.
    """
    if not isinstance(request, Mapping):
        raise FormatError(
            "request",
            f"expected a dict, got {type(request).__name__}",
            "Give the keyword arguments of the provider call as one dict.",
        )
    held = _held_history(request, formats)
    wire = wire or formats.recognise(request, model)
    if held is not None and held not in wire.held_histories:
        raise FormatError(
            held.field,
            "the history is held by the provider, not in this request",
            "Send the whole history in the request, or send this request unfitted.",
        )
    named = without_surrogates(
        text_at(
            request.get(wire.model_field) or request.get("model") or model,
            "model",
        )
    )
    history = wire.history(request)
    envelope = envelopes.read(request, wire, named)
    before = wire.previous(request)
    if held is not None and not before:
        before = _id_of(_name_of(request, held))
    return Request(
        wire=wire,
        raw=request,
        history=history,
        envelope=envelope,
        elsewhere="" if held is None else held.field,
        before=before,
        is_thread=wire.is_thread(request),
    )


def _held_history(
    request: Mapping[str, Any], formats: Formats
) -> HeldHistory | None:
    """The field that names a history which the provider holds; None if there is none."""
    for held in formats.held_histories:
        if _name_of(request, held):
            return held
    return None


def _name_of(request: Mapping[str, Any], held: HeldHistory) -> Any:
    """What a field names a held history by: a string or an object with an id."""
    for path in held.paths:
        value: Any = request
        for name in path.split("."):
            value = field(value, name) if value else None
        if value:
            return value
    return None


def _id_of(name: Any) -> str:
    """The id in the name of a history: the name itself, or its field ``id``."""
    if isinstance(name, str):
        return name
    return str(field(name, "id") or "")


def _read_envelope(
    request: Mapping[str, Any], wire: Format, model: str
) -> Envelope:
    tools = wire.tools(request)
    choice = wire.choice(request)
    return Envelope(
        model=model,
        head=wire.head(request),
        detail=wire.media_detail(request),
        tools=tools,
        takes_tools=wire.takes_tools(request, model),
        uses_tools=bool(tools) and not choice.forbids,
        choice=choice,
        reasoning=wire.reasoning(request, model),
        thinks_first=wire.thinks_first(request),
        family=f"{wire.family(model)}/{token_family(model)}",
        window_tokens=wire.window_tokens(request),
        default_tokens=wire.default_window_tokens(model),
    )
