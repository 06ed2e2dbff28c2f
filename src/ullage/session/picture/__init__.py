"""A window as a picture: small values, and how they are drawn for a page and for a terminal.

    one_window(window)   what the history holds, and what of it is shown now: `OneWindow`
    OverCalls            the same two sizes over the calls of a run
    svg(picture)         either of them, for a page, a notebook or a slide
    PictureMixin         gives a class its picture in notebooks, and under `rich`

A picture holds sizes and no content.
"""

from ullage.session.picture.drawn import PictureMixin
from ullage.session.picture.svg import svg
from ullage.session.picture.values import OneWindow, OverCalls
from ullage.session.picture.window import one_window

__all__ = ["OneWindow", "OverCalls", "PictureMixin", "one_window", "svg"]
