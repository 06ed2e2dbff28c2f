"""The steps of one exchange: from the bytes of a request to the bytes of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.exchange.routes import Route
from ullage.exchange.values import Answer, Upstream
from ullage.session.drivers import Actions

if TYPE_CHECKING:
    from ullage.exchange.exchanges import Exchanges

__all__ = ["Exchange"]


class Exchange:
    """One request and its answer.

    Args and attributes: those of `Exchanges.of`; ``route`` is what is asked at its path, or None.
    """

    def __init__(
        self,
        exchanges: Exchanges,
        method: str,
        path: str,
        body: bytes,
        upstream: Upstream,
        *,
        tenant: str,
        key: str | None,
    ) -> None:
        self.route: Route | None = None

    def steps(self) -> Actions[Answer]:
        """Fit the request, send it, and give the answer once its head is there.

        A request refused as too long is made shorter and sent once more. What cannot be fitted is
        sent as it came.
        """
        raise NotImplementedError
        yield
