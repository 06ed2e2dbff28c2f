"""Our own JSON Lines: what an agent asked and what it got, for `ullage replay` to read.

    with Recorder("runs.jsonl") as record:
        reply = client.messages.create(**session.fit(request))
        record(request, reply)

Give the request with the whole history, as it was before ``fit``. Each line is
``{"request": …, "reply": …}`` in the provider's own fields; requests whose histories grow out
of each other become one run (`ullage.tools.replay.readers`). The file holds the conversation as it
is: keep it as you keep your logs. What is of the client and not of the conversation
(headers, time limits) is left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ullage.doors.host import Closing, plain

_OF_THE_CLIENT = frozenset(("extra_headers", "extra_query", "timeout"))


class Recorder(Closing):
    """Appends exchanges to a file. A context manager; each line is on disk when it returns."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = Path(path).open("ab")  # noqa: SIM115 - closed by close

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __call__(self, request: Mapping[str, Any], reply: Any = None) -> None:
        """Record a request, and the reply if there is one. Dicts or SDK objects.

        Raises:
            FormatError: something in them is neither plain data nor an SDK object.
        """
        body = {
            key: value
            for key, value in request.items()
            if key not in _OF_THE_CLIENT
        }
        line = (
            {"request": body}
            if reply is None
            else {"request": body, "reply": reply}
        )
        hook = partial(plain, path="request or reply")
        self._file.write(msgspec.json.encode(line, enc_hook=hook) + b"\n")
        self._file.flush()
