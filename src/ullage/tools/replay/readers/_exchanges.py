"""Logs of requests and what came back, as proxies write them, and our own.

    {"request": {…}, "response": {…}}       one exchange a line; a body may be JSON text,
                                            or be under "body"
    {"request": {…}, "reply": {…}}          the same, of `ullage.tools.replay.record`
    {"messages": […], "response": {…}}      a request alone, with or without its reply

An agent sends its whole history again with every request. Exchanges whose histories grow out
of each other are one run: the longest. A few conversations may go on at the same time; of them
only the newest request is held.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ullage.tools.replay.readers._request import is_request, run_of
from ullage.tools.replay.readers._run import DamageReport, Run

_MOST_AT_ONCE = 16


def is_line(value: dict[str, Any]) -> bool:
    """Whether the value is an exchange, or a request alone."""
    return _is_exchange(value) or is_request(value)


def _is_exchange(value: dict[str, Any]) -> bool:
    body = _body(value.get("request"))
    return body is not None and is_request(body)


class ExchangeLog:
    """Joins the exchanges of one file to runs."""

    def __init__(self, name: str, report: DamageReport) -> None:
        self._name = name
        self._open: list[tuple[int, Run]] = []

    def add(self, value: dict[str, Any], line: int) -> Iterator[Run]:
        """Take one line; gives the runs that are surely over."""
        body = value
        reply = _body(value.get("response"))
        if _is_exchange(value):
            body = _body(value["request"]) or {}
            reply = reply or _body(value.get("reply"))
        body = {key: item for key, item in body.items() if key != "response"}
        request_length = len(run_of(body, self._name, line).messages)
        run = run_of(
            {**body, "response": reply} if reply else body, self._name, line
        )
        for at in range(len(self._open) - 1, -1, -1):
            earlier_length, earlier = self._open[at]
            if _goes_on(earlier, earlier_length, run, request_length):
                run = replace(run, id=earlier.id)
                del self._open[at]
                break
        self._open.append((request_length, run))
        if len(self._open) > _MOST_AT_ONCE:
            yield self._open.pop(0)[1]

    def runs(self) -> Iterator[Run]:
        """The runs that were still going on."""
        for _, run in self._open:
            yield run


def _goes_on(
    earlier: Run, earlier_length: int, later: Run, later_length: int
) -> bool:
    """Whether the later request holds all that the earlier one sent, and more."""
    if earlier.format != later.format or later_length <= earlier_length:
        return False
    return earlier.messages[:earlier_length] == later.messages[:earlier_length]


def _body(value: Any) -> dict[str, Any] | None:
    """The body of a request or of a response: itself, its JSON text, or what is in its body."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if not isinstance(value, dict):
        return None
    for key in ("body", "json"):
        if key in value:
            return _body(value[key])
    return value
