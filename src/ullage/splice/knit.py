"""Knitting: the turns that a client never saw go back into its history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ullage.values.effects import Steps
from ullage.wires import Format

__all__ = ["Knitted", "knit"]


class Knitted(Struct, frozen=True):
    """A client's request with the hidden turns in it.

    Attributes:
        request: what is to be fitted; the client's very object where nothing was hidden.
        client: what the client sent.
        root: the chain of the empty history of this format and tenant, 16 bytes.
        chain: the chain of the client's history, 16 bytes: what its reply is recorded under.
        takes: whether a reply can be made of several rounds; where it cannot (``n`` over 1)
            the recall tools should not be offered, and a private call is left out.
    """

    request: Mapping[str, Any]
    client: Mapping[str, Any]
    root: bytes
    chain: bytes
    takes: bool = True


def knit(request: Mapping[str, Any], wire: Format, tenant: str) -> Steps[Knitted]:
    """Put back what was hidden from the client: its turns, and the results that waited.

    Asks for the records of every reply in the history, in one `Find`. Where nothing is found the
    request stays as it is, and legal.

    Args:
        request: as the client sent it, as JSON; never changed.
        wire: its format.
        tenant: whose history it is, as of the session.

    Raises:
        FormatError: it is not what its format says it is.
    """
    raise NotImplementedError
