"""Ask an upstream which window it serves a model with: in the background, once, and again later.

No request waits for it. The first request of a model goes with what is known by its name; what
the upstream tells holds from then on. An upstream is asked if the configuration says so, or if it
is on this machine; with no credential but the one that the client sent for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from ullage import Event
from ullage.doors.host import ServedWindow, lookup
from ullage.doors.proxy.config import UPSTREAMS, Config, is_loopback
from ullage.doors.proxy.routes import UpstreamRoute
from ullage.doors.proxy.served import (
    Served,
    from_lm_studio,
    from_model_info,
    from_models,
    from_props,
    from_ps,
    from_show,
)

_CREDENTIALS = ("authorization", "x-api-key", "api-key")
_PATHS = ("/chat/completions", "/responses", "/messages", "/completions")
_OLLAMAS = "/api/chat"
_OWN_HOSTS = frozenset(urlsplit(url).hostname for url in UPSTREAMS.values())
_MOST_MODELS = 256
_MOST_NAME_CHARS = 256
_MOST_ASKED_AT_ONCE = 4
_MOST_BYTES = 8 << 20
_ANSWER_S = 5.0
_ALL_S = 20.0

# how long an answer holds
_SERVED_S = 3_600.0
"""One that tells the window that is served."""
_AGAIN_S = 60.0
"""One that tells less than that: the model may be loaded by then."""
_NOTHING_S = 600.0
"""One of an upstream that tells nothing."""
_LOADING_S = 5.0
"""One for a model that the present request has loaded."""
_UNANSWERED = (401, 403, 408, 425, 429)


class _Unanswered(Exception):
    """An upstream that may answer later, or somebody else."""


class _Known(Struct):
    """What is known of one model at one upstream.

    Attributes:
        window: what is told to its conversations, or None.
        until_s: when it is asked for again, by the clock of the loop.
        is_asked: whether it is being asked for.
    """

    window: ServedWindow | None = None
    until_s: float = 0.0
    is_asked: bool = False


class Discovery:
    """The windows that upstreams serve their models with. One for each worker.

    Args:
        config: the proxy's settings.
        client: who speaks to the upstreams.
        proxies: the system's proxy for each upstream that is reached through one.
    """

    def __init__(
        self,
        config: Config,
        client: aiohttp.ClientSession,
        proxies: Mapping[str, str],
    ) -> None:
        self._config = config
        self._client = client
        self._proxies = proxies
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def of(
        self, route: UpstreamRoute, headers: Mapping[str, str], model: str
    ) -> ServedWindow | None:
        """What is known of a model at the upstream of a request; asks for it if it is due.

        Args:
            route: of the request.
            headers: of the request: its credential is the one that is used, if any.
            model: as the request names it.
        """
        if not self._may_ask(route, model):
            return None
        key = route.upstream, model
        entry = self._known.setdefault(key, _Known())
        self._known.move_to_end(key)
        if len(self._known) > _MOST_MODELS:
            self._known.popitem(last=False)
        is_due = asyncio.get_running_loop().time() >= entry.until_s
        if (
            is_due
            and not entry.is_asked
            and len(self._tasks) < _MOST_ASKED_AT_ONCE
        ):
            entry.is_asked = True
            credentials = {
                name: headers[name] for name in _CREDENTIALS if name in headers
            }
            task = asyncio.create_task(
                self._ask(entry, route, credentials, model)
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return entry.window

    async def close(self) -> None:
        """Give up what is being asked."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _may_ask(self, route: UpstreamRoute, model: str) -> bool:
        """Whether an upstream is asked about a model at all."""
        choice = self._config.discover
        url = urlsplit(route.url)
        if (
            self._config.window_tokens is not None
            or not 0 < len(model) <= _MOST_NAME_CHARS
        ):
            return False
        if url.hostname in _OWN_HOSTS or choice is False:
            return False
        if isinstance(choice, list) and route.upstream in choice:
            return True
        is_near = choice is True or is_loopback(url.hostname or "")
        return is_near and not lookup(model).has_one_window

    async def _ask(
        self,
        entry: _Known,
        route: UpstreamRoute,
        credentials: dict[str, str],
        model: str,
    ) -> None:
        """Ask everything that servers are asked, until one answer says which window is served."""
        best: Served | None = None
        holds_s = _NOTHING_S
        try:
            async with asyncio.timeout(_ALL_S):
                for ask in self._questions(route, credentials, model):
                    try:
                        served = await ask()
                    except (
                        aiohttp.ClientError,
                        _Unanswered,
                        TimeoutError,
                        OSError,
                    ):
                        holds_s = _AGAIN_S
                        continue
                    best = _better(best, served)
                    if best is not None and best.is_served:
                        break
        except TimeoutError:
            holds_s = _AGAIN_S
        finally:
            entry.is_asked = False
            if best is not None:
                entry.window = _told(best, route.upstream, model)
                holds_s = _SERVED_S if best.is_served else _AGAIN_S
                holds_s = _LOADING_S if best.is_default else holds_s
            entry.until_s = asyncio.get_running_loop().time() + holds_s

    def _questions(
        self, route: UpstreamRoute, credentials: dict[str, str], model: str
    ) -> list[Callable[[], Awaitable[Served | None]]]:
        """What is asked, in order: what most servers understand first."""
        api = _api_of(route.url)
        root = api.removesuffix("/v1")
        get = partial(self._answer, route.upstream, credentials, "GET")
        show = partial(
            self._answer,
            route.upstream,
            credentials,
            "POST",
            f"{root}/api/show",
        )

        async def ask(
            url: str, read: Callable[[Any], Served | None]
        ) -> Served | None:
            return read(await get(url))

        async def ask_show() -> Served | None:
            return from_show(await show({"model": model}), model)

        return [
            partial(ask, f"{api}/models", partial(from_models, model=model)),
            partial(ask, f"{root}/props", from_props),
            partial(
                ask,
                f"{root}/api/v0/models",
                partial(from_lm_studio, model=model),
            ),
            partial(ask, f"{root}/api/ps", partial(from_ps, model=model)),
            ask_show,
            partial(
                ask,
                f"{root}/model/info",
                partial(from_model_info, model=model),
            ),
        ]

    async def _answer(
        self,
        upstream: str,
        credentials: dict[str, str],
        method: str,
        url: str,
        body: dict[str, str] | None = None,
    ) -> Any:
        """The JSON that an upstream answers; None for anything else."""
        headers = {
            "Accept": "application/json",
            "User-Agent": "ullage",
            **credentials,
        }
        async with (
            asyncio.timeout(_ANSWER_S),
            self._client.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                json=body,
                allow_redirects=False,
                proxy=self._proxies.get(upstream),
            ) as reply,
        ):
            if reply.status in _UNANSWERED or reply.status >= 500:
                raise _Unanswered
            if reply.status != 200 or "Content-Encoding" in reply.headers:
                return None
            data = await reply.content.read(_MOST_BYTES + 1)
            while len(data) <= _MOST_BYTES and (
                more := await reply.content.read(_MOST_BYTES)
            ):
                data += more
        if len(data) > _MOST_BYTES:
            return None
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(data)
        return None


def _better(best: Served | None, served: Served | None) -> Served | None:
    """Of two answers the one that says more of the window that is served."""
    if served is None or (best is not None and served.window_tokens is None):
        return best
    return served


def _api_of(url: str) -> str:
    """The address before a request's own path: ``https://host/v1`` of ``…/v1/chat/completions``."""
    whole = url.partition("?")[0].partition("#")[0]
    if whole.endswith(_OLLAMAS):
        return f"{whole.removesuffix(_OLLAMAS)}/v1"
    for path in _PATHS:
        if path in whole:
            return whole[: whole.index(path)]
    parts = urlsplit(whole)
    return f"{parts.scheme}://{parts.netloc}/v1"


def _told(served: Served, upstream: str, model: str) -> ServedWindow | None:
    """The window and event for the conversations of a model; None if there is nothing new."""
    window = served.window_tokens
    source = f"{served.source}, upstream {quote(upstream)}"
    if window is None:
        reason = f"what the server tells cannot be a window ({source}); it is refused"
        return ServedWindow(
            None, Event(kind="window_refused", where="model", why=reason)
        )
    info = lookup(model)
    if not served.is_loaded and info.window_tokens <= window:
        return None  # a bound raises nothing
    verb = (
        "serves it with" if served.is_loaded else "can serve it with at most"
    )
    verb = "would load it with" if served.is_default else verb
    reason = f"the server {verb} {window:,} tokens ({source})"
    return ServedWindow(
        window, Event(kind="window_found", where="model", why=reason)
    )
