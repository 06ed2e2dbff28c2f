"""An exchange, as far as it asks for what a provider keeps (OpenAI's Responses, `store`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from ullage.doors.exchange import bodies
from ullage.doors.exchange.answers import UntouchedAnswer, WholeAnswer
from ullage.doors.exchange.claiming import Claiming
from ullage.doors.exchange.routes import Route
from ullage.doors.exchange.values import (
    ClientAnswer,
    Upstream,
    UpstreamReply,
)
from ullage.doors.hidden_turns.stored import (
    rounds_of,
    stored_items,
    stored_replies,
    stored_reply,
)
from ullage.doors.host import Actions
from ullage.wires import FORMATS

if TYPE_CHECKING:
    from ullage.doors.exchange.exchange import Exchange

_PUBLIC = {
    "reply": stored_reply,
    "replies": stored_replies,
    "items": stored_items,
}
"""What a client may see of what a provider keeps."""


class StoredExchange(Claiming):
    """The part of an exchange that reads and deletes what the provider keeps.

    The rounds that the client never saw are left out of it, and deleted with the reply.
    """

    _upstream: Upstream
    _sent: bytes
    _tenant: str
    _name: str | None

    def _stored(self, route: Route) -> Actions[ClientAnswer]:
        """Ask for what the provider keeps, and give it as the client got it."""
        self.passed = "path"
        self._note(wire=route.wire)
        reply: UpstreamReply = yield partial(self._upstream.send, self._sent)
        if reply.status != 200 or "json" not in reply.content_type:
            return UntouchedAnswer(cast("Exchange", self), reply)
        body: bytes = yield reply.read
        value = bodies.read(body)
        if route.kind == "delete":
            yield from self._delete_rounds(route)
        elif isinstance(value, dict):
            steps = _PUBLIC[route.kind](
                value, FORMATS[route.wire], self._owner_of_records
            )
            do = partial(self._exchanges.do, steps, self._owner_of_records)
            public = yield from self._attempt(do)
            if public not in (None, value):
                body = bodies.write(public)
        return WholeAnswer(cast("Exchange", self), reply, reply.status, body)

    def _delete_rounds(self, route: Route) -> Actions[None]:
        """A reply is deleted with the rounds behind it, which the client does not know of."""
        steps = rounds_of(
            route.reply_id, FORMATS[route.wire], self._owner_of_records
        )
        do = partial(self._exchanges.do, steps, self._owner_of_records)
        names = (yield from self._attempt(do)) or ()
        if route.reply_id not in self.report.path:
            return
        for name in names:
            delete = partial(self._upstream.delete, route.reply_id, name)
            reply = yield from self._attempt(delete)
            if reply is not None:
                yield reply.close

    @property
    def _owner_of_records(self) -> str:
        return self._exchanges.tenant(self._tenant, self._name)
