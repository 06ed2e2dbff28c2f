"""How an object shows its picture: in a notebook, and on a terminal under `rich`."""

from __future__ import annotations

import base64
import html
from typing import Any

from ullage.session.picture.svg import svg
from ullage.session.picture.values import OneWindow, OverCalls


class PictureMixin:
    """Shows a class as a picture in notebooks and under `rich`."""

    __slots__ = ()

    def _picture(self) -> OneWindow | OverCalls | None:
        """What is to be drawn; None if there is nothing yet."""
        raise NotImplementedError

    def _repr_html_(self) -> str | None:
        """For a notebook: an image, so that its style stays its own."""
        picture = self._picture()
        if picture is None:
            return None
        data = base64.b64encode(svg(picture).encode()).decode()
        alt = html.escape(f"{picture.title}: {picture.summary}")
        return f'<img style="max-width:100%" alt="{alt}" src="data:image/svg+xml;base64,{data}"/>'

    def __rich__(self) -> Any:
        """For `rich`: the same in characters."""
        # rich is loaded only for who uses it
        from ullage.session.picture.terminal import text

        picture = self._picture()
        return repr(self) if picture is None else text(picture)
