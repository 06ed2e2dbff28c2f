"""What a wire is, as one object: all that any room asks about a provider's API hangs here.

A wire is a folder, ``wires/NAME/``, and a line in `ullage.wires.WIRES`. ``NAME/wire.py`` makes its
`Wire`; the other modules of the folder are its parts. What every session needs, the format, loads
at once. The other parts load when they are first asked for: most processes never judge a request,
repair a history, convert one, hide a turn or stand between a client and a provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from ullage.wires.format import WireFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ullage.core.contract.format import Format
    from ullage.core.history.pairing import Pairing
    from ullage.wires.convert.read import Reader
    from ullage.wires.convert.turns import Conversion
    from ullage.wires.convert.write import Writer
    from ullage.wires.hidden_turns.dialect import Dialect
    from ullage.wires.http import Http
    from ullage.wires.repair.base import HistoryRepair
    from ullage.wires.rules.problem import Check


class Signs(Struct, frozen=True, kw_only=True):
    """What a request shows that is of one wire and of no other; see `ullage.wires.recognise`.

    Attributes:
        fields: of the request.
        not_beside: fields beside which those say nothing.
        tool_fields: of a tool's definition.
        roles: of a message.
        message_fields: of a message, where they are not empty.
        bare_blocks: of a block that does not say of what type it is.
        models: a regular expression that is looked for in the plain name of the model; ``""``: a
            model's name alone does not show this wire.
    """

    fields: tuple[str, ...] = ()
    not_beside: tuple[str, ...] = ()
    tool_fields: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    message_fields: tuple[str, ...] = ()
    bare_blocks: tuple[str, ...] = ()
    models: str = ""


def _is_any(_: str) -> bool:
    """Whether a model is one at all."""
    return True


class Wire(Struct, frozen=True, kw_only=True):
    """One wire of a provider, whole.

    Attributes:
        home: the ``__name__`` of the module that makes it: the parts stand beside that module.
        format: how its requests, messages and replies are read and written.
        signs: what a request is recognised by.
        provider: who speaks it, by the names of OpenTelemetry's ``gen_ai.provider.name``. Wires of
            one provider share its files.
        upstreams: the provider's own addresses, by the names that they have in the proxy's
            configuration.
        example_model: a model that is asked on it, where a recorded or a made-up run names none.
        price_profile: the name of the profile in ``replay/cost/prices`` with the terms of its
            cache, for models of unknown vendors.
        summary_role: in whose message a summary stands among the others.
        reply_field: the field of a reply with what the model said.
        reply_message_fields: of a message in a reply, the fields that a request takes back; none:
            all of them.
        is_billed: whether anybody bills a call of a model: nobody does what runs on a machine of
            one's own.
        types_blocks: whether each block names its kind in ``type``, as frameworks hand them on.
        takes_cache_markers: whether a block may say that the prompt is to be cached up to it
            (``cache_control``), and nothing is cached without one.
    """

    home: str
    format: WireFormat
    signs: Signs
    provider: str
    upstreams: Mapping[str, str]
    example_model: str
    price_profile: str
    summary_role: Literal["system", "user"]
    reply_field: str
    reply_message_fields: tuple[str, ...] = ()
    is_billed: Callable[[str], bool] = _is_any
    types_blocks: bool = True
    takes_cache_markers: bool = False

    @property
    def name(self) -> str:
        """What it is called; the name of its format."""
        return self.format.name

    def check(self, head: dict[str, Any] | None = None) -> Check:
        """A judge of an empty history: ``CHECK`` in ``rules.py``.

        Args:
            head: the request without its messages, as plain JSON, to be judged with them.
        """
        check: Check = self._part("rules", "CHECK")(head)
        return check

    def repair(self, raws: Sequence[Any], pairs: Pairing) -> HistoryRepair:
        """What repairs a history: ``REPAIR`` in ``repair.py``.

        Args:
            raws: the raw messages.
            pairs: which results answer which calls in the part of it that is known.
        """
        repair: HistoryRepair = self._part("repair", "REPAIR")(raws, pairs)
        return repair

    def reader(self, conversion: Conversion) -> Reader:
        """What reads a conversation out of this wire: ``READER`` in ``convert.py``."""
        reader: Reader = self._part("convert", "READER")(conversion)
        return reader

    def writer(self, conversion: Conversion) -> Writer:
        """What writes a conversation into this wire: ``WRITER`` in ``convert.py``."""
        writer: Writer = self._part("convert", "WRITER")(conversion)
        return writer

    def dialect(self, format: Format, owns: Callable[[Any], bool]) -> Dialect:
        """How turns are hidden from a client and put back: ``DIALECT`` in ``hidden_turns.py``.

        Args:
            format: of the history: this wire's own, or a host's that stands on it.
            owns: whether a call is private.
        """
        dialect: Dialect = self._part("hidden_turns", "DIALECT")(format, owns)
        return dialect

    @property
    def http(self) -> Http:
        """Its paths and bodies over HTTP: ``HTTP`` in ``http.py``."""
        http: Http = self._part("http", "HTTP")
        return http

    def _part(self, module: str, name: str) -> Any:
        return getattr(_module_beside(self.home, module), name)


@cache
def _module_beside(home: str, name: str) -> ModuleType:
    """A module of a wire's folder. It is asked for many times a request."""
    folder = home.rpartition(".")[0]
    return import_module(f"{folder}.{name}")
