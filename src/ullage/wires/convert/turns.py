"""What a conversation says, apart from any wire: turns of plain parts.

A turn is one reply of the model, one batch of results, or one message of the user or the
system. It is what the wires have in common; what one of them has alone is named as lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from ullage.core.errors import UnsupportedPart
from ullage.core.history.pairing import At
from ullage.core.values.messages import Text

NOWHERE: At = (-1, -1)
Who: TypeAlias = Literal["system", "user", "assistant", "results"]


class Medium(Struct, frozen=True):
    """An image, document or sound: as base64 ``data``, by ``url``, or by a vendor's file id."""

    kind: Literal["image", "document", "audio"]
    where: str
    mime: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    name: str = ""
    detail: str = ""


class TurnCall(Struct, frozen=True):
    """A tool call. ``value`` is None where its arguments are no JSON object.

    ``at`` is where it stands in the history that was read, and what its results name it by.
    """

    id: str
    name: str
    arguments: str
    value: Mapping[str, Any] | None
    where: str
    is_free_text: bool = False
    at: At = NOWHERE


class Result(Struct, frozen=True):
    """What a tool answered; ``is_free_text`` that it was asked in free text.

    ``call`` is the `TurnCall.at` of the call it belongs to.
    """

    call_id: str
    name: str
    content: tuple[Text | Medium, ...]
    is_error: bool
    where: str
    is_free_text: bool = False
    call: At = NOWHERE


Piece: TypeAlias = Text | Medium | TurnCall | Result


class Turn(Struct, frozen=True):
    """Who speaks, and what."""

    who: Who
    pieces: tuple[Piece, ...]
    where: str


class Conversion(Struct, frozen=True):
    """From which wire to which, and what to do with a part that the target cannot hold.

    Attributes:
        source: the format that was given.
        target: the format to be written.
        model: the model to be asked, where it is known.
        describe: whether a line of text may stand in the place of such a part.
    """

    source: str
    target: str
    model: str | None
    describe: bool

    def lose(
        self, path: str, description: str, remedy: str = "Leave it out."
    ) -> str:
        """The text to stand in the part's place, where the caller accepts one.

        Raises:
            UnsupportedPart: the caller does not.
        """
        if self.describe:
            return f"[ullage: {description} stood here; {self.target} has no place for it]"
        raise UnsupportedPart(
            path,
            f"{description} has no place in {self.target} and would be lost",
            f'{remedy} Or give lossy="describe" to have a line of text in its place.',
        )
