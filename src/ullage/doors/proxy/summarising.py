"""Who writes summaries in a proxy: a model that is asked beside the requests of the clients.

    [summariser]                        [summariser]
    provider = "anthropic"              credential = "client"
    model = "claude-haiku-4-5"
    key_env = "ANTHROPIC_API_KEY"

No client waits for one. It is asked by this process alone, straight at the provider: what is asked
goes through no proxy of ours, and one that stands behind an address is told to pass it on. It is
asked for nobody whom no upstream accepted: a stranger could spend the key of who runs the proxy.
A client's own credential is used only for what its own request has begun, at the address that this
request went to, and stands in memory as long as that takes.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from msgspec import Struct
from multidict import CIMultiDict
from yarl import URL

from ullage.core.errors import ConfigError, SummaryError
from ullage.doors.exchange import Route, bodies
from ullage.doors.host import adrive
from ullage.doors.proxy.config import PROVIDERS, UPSTREAMS, Config
from ullage.doors.proxy.upstream import HttpReply
from ullage.session.summarise import (
    Reply,
    Summarise,
    Summariser,
    read_reply,
)
from ullage.wires import FORMATS, wire_named

if TYPE_CHECKING:
    from ullage import TeamBudgets

_BYTES_PER_TOKEN = 4
_NOT_OURS = ("accept", "accept-encoding", "content-encoding", "content-length")
"""Headers of a client's that are not for a question of ours."""


class BackgroundCaller(Struct, frozen=True):
    """The request of a client that is being fitted.

    Attributes:
        identity: names its credential, in this process alone.
        tenant: the owner.
        upstream: the name of the upstream that it goes to.
        url: where it goes.
        route: what it asks there.
        headers: what it is sent with, its credential among them.
    """

    identity: str
    tenant: str
    upstream: str
    url: str
    route: Route
    headers: CIMultiDict[str]


class AnsweredCredentials:
    """The credentials that an upstream answered, by their identity; the newest of them.

    A stranger's is in none: nothing is asked beside a request that no upstream answers.
    """

    def __init__(self) -> None:
        self._identities: OrderedDict[str, None] = OrderedDict()

    def judge(self, identity: str, status: int) -> None:
        """Take in how an upstream answered.

        Args:
            identity: of the credential.
            status: of the answer.
        """
        if status in (401, 403):
            self._identities.pop(identity, None)
        elif 200 <= status < 300:
            self._identities[identity] = None
            self._identities.move_to_end(identity)
            if len(self._identities) > _MOST_ANSWERED:
                self._identities.popitem(last=False)

    def __contains__(self, identity: str) -> bool:
        return identity in self._identities


_MOST_ANSWERED = 10_000

_caller: ContextVar[BackgroundCaller | None] = ContextVar(
    "ullage_caller", default=None
)


@contextmanager
def called_by(caller: BackgroundCaller) -> Iterator[None]:
    """Say whose request it is that begins something beside it, while the block lasts.

    What is begun keeps it, and nothing else does.

    Args:
        caller: the client's request.
    """
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


class SummaryWriter:
    """Asks for summaries. One for each worker.

    Args:
        config: the proxy's settings, with a summariser.
        client: who speaks to providers.
        answered: the credentials that an upstream answered.
        environment: where its key is.
        proxies: the system's proxy for each upstream, by the upstream's name.
        budgets: gives the budgets of teams; None: there are none.

    Raises:
        ConfigError: the environment has no such key.
    """

    def __init__(
        self,
        config: Config,
        client: aiohttp.ClientSession,
        answered: AnsweredCredentials,
        environment: Mapping[str, str],
        proxies: Mapping[str, str],
        budgets: Callable[[], TeamBudgets | None],
    ) -> None:
        assert config.summariser is not None
        self._config = config
        self._settings = config.summariser
        self._client = client
        self._proxies = proxies
        self._answered = answered
        self._budgets = budgets
        self._places = asyncio.Semaphore(self._settings.at_once)
        self._key = environment.get(self._settings.key_env, "")
        if self._settings.key_env and not self._key:
            raise ConfigError(
                "summariser.key_env",
                "the environment has no variable of this name",
                "Put the provider's key into it, or name another.",
            )

    @property
    def summariser(self) -> Summariser:
        """The summariser of every session."""
        settings = self._settings
        return Summariser(
            send=self._send,
            read=_read,
            is_async=True,
            model=settings.model,
            timeout_s=settings.timeout_s,
            waits=False,
            may_ask=self._may_ask,
        )

    def _may_ask(self) -> bool:
        """Whether one may be begun now: for whom an upstream answers, and where a place is free."""
        caller = _caller.get()
        if caller is None or self._places.locked():
            return False
        if self._settings.credential == "client" and not _is_plain(caller):
            return False
        return caller.identity in self._answered

    async def _send(self, request: Summarise, model: str) -> Any:
        """The reply to a request for a summary: the name of its wire, and what it says."""
        caller = _caller.get()
        assert caller is not None, "it was begun without a request"
        is_own = self._settings.credential == "key"
        if is_own:
            wire, target = self._own(request, model)
        else:
            wire, target = _of_client(caller, request, model)
        budgets = self._budgets()
        if budgets is None:
            return wire, await self._posted(target)
        # a budget that is used up pays for none
        call = budgets.call(caller.tenant)
        usage = None
        size = len(bodies.write(target[2])) // _BYTES_PER_TOKEN
        await adrive(call.claim(model, size, request.most_tokens))
        try:
            answer = wire, await self._posted(target)
            usage = _read(answer).usage
        finally:
            call.settle(usage)
        return answer

    async def _posted(
        self, target: tuple[str, CIMultiDict[str], dict[str, Any], str]
    ) -> Any:
        """What a provider answers to a question, as JSON values."""
        url, headers, body, proxy_of = target
        headers["Content-Type"] = "application/json"
        if url.partition("://")[2].partition("/")[0] not in _VENDORS:
            headers[self._config.opt_out_header] = "off"
        async with (
            self._places,
            self._client.post(
                URL(url, encoded=True),
                data=bodies.write(body),
                headers=headers,
                allow_redirects=False,
                proxy=self._proxies.get(proxy_of),
            ) as response,
        ):
            reply = HttpReply(response, self._config.limits.reply_bytes)
            data = await reply.read()
        if response.status != 200:
            raise SummaryError(f"its provider answered {response.status}")
        return bodies.read(data)

    def _own(
        self, request: Summarise, model: str
    ) -> tuple[str, tuple[str, CIMultiDict[str], dict[str, Any], str]]:
        """Where a question goes with a key of who runs the proxy."""
        settings = self._settings
        wire = PROVIDERS[settings.provider]
        http = wire_named(wire).http
        question = http.question(
            model, request.system, request.texts, request.most_tokens
        )
        base = settings.url or self._config.upstreams[settings.provider]
        url = f"{base.rstrip('/')}{http.base}{question.path}"
        headers = CIMultiDict(http.key_headers(self._key) if self._key else {})
        return wire, (url, headers, question.body, settings.provider)


def summariser_of(
    config: Config,
    client: aiohttp.ClientSession,
    answered: AnsweredCredentials,
    proxies: Mapping[str, str],
    budgets: Callable[[], TeamBudgets | None],
) -> Summariser | None:
    """Who writes summaries in a worker; None: nobody. In a dry run nobody is asked for one.

    The arguments are those of `SummaryWriter`; its key is in this process's environment.

    Raises:
        ConfigError: the environment has no such key.
    """
    if config.summariser is None or config.dry_run:
        return None
    writer = SummaryWriter(
        config, client, answered, os.environ, proxies, budgets
    )
    return writer.summariser


_VENDORS = frozenset(urlsplit(url).netloc for url in UPSTREAMS.values())


def _is_plain(caller: BackgroundCaller) -> bool:
    """Whether a question can be asked beside a client's request, at the same API."""
    http = wire_named(caller.route.wire).http
    return http.asks.search(urlsplit(caller.url).path) is not None


def _of_client(
    caller: BackgroundCaller, request: Summarise, model: str
) -> tuple[str, tuple[str, CIMultiDict[str], dict[str, Any], str]]:
    """Where a question goes with the credential of the client whose request began it."""
    wire = caller.route.wire
    http = wire_named(wire).http
    question = http.question(
        model, request.system, request.texts, request.most_tokens
    )
    parts = urlsplit(caller.url)
    path = http.path_beside(parts.path, question)
    assert path is not None, "it was begun at no plain address"
    fields = [
        item
        for item in parts.query.split("&")
        if item and not item.startswith("alt=")
    ]
    url = urlunsplit(parts._replace(path=path, query="&".join(fields)))
    headers = caller.headers.copy()
    for name in _NOT_OURS:
        headers.popall(name, None)
    return wire, (url, headers, question.body, caller.upstream)


def _read(answer: tuple[str, Any]) -> Reply:
    wire, value = answer
    return read_reply(FORMATS[wire], value)
