"""A provider's client whose conversations stay within their windows, and that is else the same.

    client = ullage.wrap(anthropic.Anthropic())
    client.messages.create(...)

What comes back is a client of the very class that was given, made by the SDK's own ``copy``, with
an HTTP client around the one that was there. So everything that the SDK does with requests and
replies goes on as before: streams, ``parse``, raw responses, retries, helpers.
"""

from __future__ import annotations

from ullage.doors.wrapping._clients import wrap, wrapped
from ullage.doors.wrapping.wrapped import Wrapped

__all__ = ["Wrapped", "wrap", "wrapped"]
