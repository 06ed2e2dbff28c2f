"""`Session.call`: fit, call, observe, with the vendors' own clients against a provider here."""

import asyncio

import pytest

from tests.servers import Refusal, Reply, loopback
from tests.servers.loops import request, user
from tests.servers.refusals import too_long
from tests.wrapping.asking import AWAITED
from ullage import Budget, ConfigError, Limits, Session
from ullage.core.errors import StoreError
from ullage.session.aio import AsyncSession
from ullage.session.drivers import drive
from ullage.session.provider.call import ProviderCall
from ullage.session.provider.streams import Tap
from ullage.stores import MemoryStore
from ullage.wires import FORMATS

FORMAT_NAMES = AWAITED
"""boto3 gives a stream in an object, and waits for no event loop: `tests.wires.test_converse`."""
every = pytest.mark.parametrize("format", FORMAT_NAMES)
with_managers = pytest.mark.parametrize(
    "format", ["anthropic", "openai-chat", "openai-responses"]
)
SAYING = Reply("It is the lock file, and no other.")
MANY = "".join(f"line {n} of the log\n" for n in range(3_000))


def asked(format, text="Find the fault.", **more):
    if format == "openai-chat" and more.get("stream"):
        more["stream_options"] = {"include_usage": True}
    return request(format, [user(format, text)], tools=(), **more)


def create_of(format, client, *, stream=False):
    match format:
        case "anthropic":
            return client.messages.create
        case "openai-chat":
            return client.chat.completions.create
        case "openai-responses":
            return client.responses.create
        case "ollama":
            return client.chat
    return (
        client.models.generate_content_stream
        if stream
        else client.models.generate_content
    )


def streamed(format, text="Find the fault.", **more):
    return asked(
        format,
        text,
        **({} if format == "gemini" else {"stream": True}),
        **more,
    )


def managed(format, client):
    """The client's stream manager, what it gathers, and the keyword arguments."""
    match format:
        case "anthropic":
            return client.messages.stream, "get_final_message", asked(format)
        case "openai-chat":
            options = {"stream_options": {"include_usage": True}}
            return (
                client.chat.completions.stream,
                "get_final_completion",
                asked(format) | options,
            )
    return client.responses.stream, "get_final_response", asked(format)


def reported(server, n=0):
    return FORMATS[server.format].usage(server.answered[n])


def kinds(session):
    return [event.kind for event in session.events]


def plain(value):
    return value.model_dump(mode="json")


# ── replies ──────────────────────────────────────────────────────────────────────────────


@every
def test_a_reply_is_the_sdks_own_and_is_observed(serve, format):
    server = serve(format, [SAYING, SAYING])
    client, session = server.client(), Session("")
    create = create_of(format, client)
    reply = session.call(create, **asked(format))
    assert type(reply) is type(create(**asked(format)))
    assert session.usage == reported(server)


@every
def test_what_the_client_is_given_is_the_view(serve, format):
    server = serve(format, [SAYING])
    session = Session(
        "", limits=Limits(window_tokens=20_000, output_reserve_tokens=500)
    )
    history = [user(format, MANY * 3)]
    session.call(
        create_of(format, server.client()),
        **request(format, history, tools=()),
    )
    assert len(server.requests[0].raw) < len(MANY) * 2 < len(str(history))


def test_an_asynchronous_client_is_sent_to_the_session_for_it(serve):
    import anthropic

    client = anthropic.AsyncAnthropic(
        api_key="none", base_url="http://127.0.0.1:9"
    )
    with pytest.raises(ConfigError, match="Use an AsyncSession"):
        Session("").call(client.messages.create, **asked("anthropic"))


class Full(MemoryStore):
    """A store that is full from its second commit on."""

    commits = 0

    def commit(self, tenant, outputs, records):
        self.commits += 1
        if self.commits > 1:
            raise StoreError("memory", "commit", "it is full")
        return super().commit(tenant, outputs, records)


def test_a_reply_is_not_lost_for_a_store_that_fails(serve):
    server = serve("anthropic", [SAYING])
    session = Session("", store=Full())
    reply = session.call(server.client().messages.create, **asked("anthropic"))
    assert reply.content[0].text == SAYING.text
    assert kinds(session)[-1] == "unreported"
    assert "it is full" in session.events[-1].why


# ── streams ──────────────────────────────────────────────────────────────────────────────


@every
def test_a_stream_passes_on_what_the_client_gives_and_is_observed_at_its_end(
    serve, format
):
    server = serve(format, [SAYING, SAYING])
    create = create_of(format, server.client(), stream=True)
    given = [plain(event) for event in create(**streamed(format))]
    session = Session("")
    stream = session.call(create, **streamed(format))
    seen = []
    for event in stream:
        assert session.usage.total_tokens == 0
        seen.append(plain(event))
    assert [_bare(event) for event in seen] == [
        _bare(event) for event in given
    ]
    assert session.usage == reported(server, 1)
    assert kinds(session).count("observed") == 1


def _bare(value):
    """An event without what differs from reply to reply."""
    if isinstance(value, dict):
        left_out = (
            "id",
            "item_id",
            "response_id",
            "sdk_http_response",
            "usage",
            "usage_metadata",
        )
        return {
            key: _bare(item)
            for key, item in value.items()
            if key not in left_out
        }
    return (
        [_bare(item) for item in value] if isinstance(value, list) else value
    )


@pytest.mark.parametrize(
    "format", ["anthropic", "openai-chat", "openai-responses"]
)
def test_a_stream_is_the_clients_own_object(serve, format):
    server = serve(format, [SAYING, SAYING])
    create = create_of(format, server.client())
    with create(**streamed(format)) as own:
        stream = Session("").call(create, **streamed(format))
        assert type(stream) is type(own)
        assert stream.response.status_code == 200
        stream.close()


@every
def test_a_stream_is_read_as_it_comes(serve, format):
    """What is passed on has not waited for what comes behind it."""
    server = serve(format, [SAYING])
    session = Session("")
    stream = session.call(
        create_of(format, server.client(), stream=True), **streamed(format)
    )
    first = next(iter(stream))
    assert first is not None
    assert "observed" not in kinds(session)
    stream.close()


@every
def test_a_stream_closed_early_is_observed_by_what_it_told(serve, format):
    server = serve(format, [SAYING])
    session = Session("")
    stream = session.call(
        create_of(format, server.client(), stream=True), **streamed(format)
    )
    next(iter(stream))
    stream.close()
    if format in ("anthropic", "gemini"):
        assert session.usage.input_tokens == reported(server).input_tokens
    else:
        assert kinds(session)[-1] == "unreported"
    events = len(session.events)
    stream.close()
    assert len(session.events) == events


@every
def test_leaving_the_block_of_a_stream_closes_it(serve, format):
    server = serve(format, [SAYING])
    session = Session("")
    create = create_of(format, server.client(), stream=True)
    with session.call(create, **streamed(format)) as stream:
        next(iter(stream))
    assert kinds(session)[-1] in ("observed", "unreported")


@pytest.mark.parametrize(
    ("format", "error"),
    [
        (
            "anthropic",
            b'event: error\ndata: {"type": "error", "error": {"message": "gone"}}\n\n',
        ),
        ("openai-chat", b'data: {"error": {"message": "gone"}}\n\n'),
    ],
)
def test_a_stream_that_breaks_off_is_observed_by_what_it_told(
    serve, format, error, monkeypatch
):
    half = loopback.stream_of

    def broken(*arguments):
        return (
            b"\n\n".join(half(*arguments).split(b"\n\n")[:3]) + b"\n\n" + error
        )

    monkeypatch.setattr(loopback, "stream_of", broken)
    server = serve(format, [SAYING])
    session = Session("")
    stream = session.call(
        create_of(format, server.client()), **streamed(format)
    )
    with pytest.raises(Exception, match="gone"):
        list(stream)
    if format == "anthropic":
        assert session.usage.input_tokens == reported(server).input_tokens
    else:
        assert kinds(session)[-1] == "unreported"


def test_a_chat_stream_without_usage_is_counted_by_our_estimate(serve):
    server = serve("openai-chat", [SAYING, SAYING])
    budget = Budget(tokens=100_000)
    session = Session("", budget=budget)
    create = server.client().chat.completions.create
    bare = asked("openai-chat") | {"stream": True}
    list(session.call(create, **bare))
    (told,) = [event for event in session.events if event.kind == "unreported"]
    assert told.tokens_after == session.window.estimate > 0
    assert "our estimate" in told.why
    session.close()
    assert budget.spent.tokens == told.tokens_after


def test_a_stream_that_is_dropped_unread_is_forgotten_without_harm(serve):
    server = serve("anthropic", [SAYING, SAYING])
    session = Session("")
    create = server.client().messages.create
    session.call(create, **streamed("anthropic"))
    session.call(create, **asked("anthropic"))
    assert session.usage == reported(server, 1)


class Foreign:
    """A stream of nobody's SDK, as a gateway's client has it."""

    model = "gpt-4.1"

    def __init__(self, events):
        self.events, self.is_closed = iter(events), False

    def __next__(self):
        return next(self.events)

    def close(self):
        self.is_closed = True


def test_an_iterator_of_any_other_client_is_passed_on_with_all_it_has():
    events = [
        {"choices": []},
        {"usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    ]
    own, session = Foreign(events), Session("gpt-4.1")
    steps = ProviderCall(
        session, lambda **_: own, asked("openai-chat"), is_awaited=False
    ).steps()
    passed = drive(steps)
    assert isinstance(passed, Tap)
    with passed as stream:
        assert stream.model == "gpt-4.1"
        assert list(stream) == events
    assert own.is_closed
    assert session.usage.input_tokens == 9


# ── managers ─────────────────────────────────────────────────────────────────────────────


@with_managers
def test_a_manager_gives_the_clients_stream_and_all_that_it_gathers(
    serve, format
):
    server = serve(format, [SAYING, SAYING])
    create, final, keywords = managed(format, server.client())
    with create(**keywords) as own:
        list(own)
    session = Session("")
    with session.call(create, **keywords) as stream:
        assert type(stream) is type(own)
        gathered = getattr(stream, final)()
    assert SAYING.text in str(gathered)
    assert session.usage == reported(server, 1)


def test_the_texts_of_a_stream_are_read_as_ever(serve):
    server = serve("anthropic", [SAYING])
    session = Session("")
    with session.call(
        server.client().messages.stream, **asked("anthropic")
    ) as stream:
        assert "".join(stream.text_stream) == SAYING.text
    assert session.usage == reported(server)


@with_managers
def test_a_manager_left_early_is_observed(serve, format):
    server = serve(format, [SAYING])
    create, _, keywords = managed(format, server.client())
    session = Session("")
    with session.call(create, **keywords) as stream:
        next(iter(stream))
    assert kinds(session)[-1] in ("observed", "unreported")


# ── raw responses ────────────────────────────────────────────────────────────────────────


def raw_of(format, client, name):
    match format:
        case "anthropic":
            return getattr(client.messages, name).create
        case "openai-chat":
            return getattr(client.chat.completions, name).create
    return getattr(client.responses, name).create


@with_managers
def test_a_raw_response_is_observed_by_what_it_parses_to(serve, format):
    server = serve(format, [SAYING])
    session = Session("")
    response = session.call(
        raw_of(format, server.client(), "with_raw_response"), **asked(format)
    )
    assert response.headers["content-type"] == "application/json"
    assert SAYING.text in str(response.parse())
    assert session.usage == reported(server)


@with_managers
def test_a_raw_response_with_a_stream_is_observed_when_that_ends(
    serve, format
):
    server = serve(format, [SAYING])
    session = Session("")
    create = raw_of(format, server.client(), "with_raw_response")
    response = session.call(create, **streamed(format))
    assert session.usage.total_tokens == 0
    list(response.parse())
    assert session.usage == reported(server)


@with_managers
@pytest.mark.parametrize("read", ["parse", "text", "json"])
def test_a_streaming_response_is_observed_however_it_is_read(
    serve, format, read
):
    server = serve(format, [SAYING])
    session = Session("")
    create = raw_of(format, server.client(), "with_streaming_response")
    with session.call(create, **asked(format)) as response:
        assert session.usage.total_tokens == 0
        assert SAYING.text in str(getattr(response, read)())
    assert session.usage == reported(server)


@with_managers
def test_a_streaming_response_whose_events_are_parsed_is_observed(
    serve, format
):
    server = serve(format, [SAYING])
    session = Session("")
    create = raw_of(format, server.client(), "with_streaming_response")
    with session.call(create, **streamed(format)) as response:
        assert list(response.parse())
    assert session.usage == reported(server)


def test_a_streaming_response_read_line_by_line_is_counted_by_our_estimate(
    serve,
):
    server = serve("anthropic", [SAYING])
    session = Session("")
    create = server.client().messages.with_streaming_response.create
    with session.call(create, **asked("anthropic")) as response:
        assert SAYING.text in "".join(response.iter_lines())
    assert kinds(session)[-1] == "unreported"


# ── too long ─────────────────────────────────────────────────────────────────────────────


def long(format, turns=60, **more):
    """A conversation over the limit of the providers below, by a window nobody knows of."""
    history = []
    for n in range(turns):
        history.append(user(format, f"{n}: " + "a word or two, " * 60))
        if format == "gemini":
            history.append(
                {"role": "model", "parts": [{"text": f"answer {n}"}]}
            )
        else:
            history.append({"role": "assistant", "content": f"answer {n}"})
    if more.get("stream") and format == "openai-chat":
        more["stream_options"] = {"include_usage": True}
    return request(format, [*history, user(format)], tools=(), **more)


LIMIT = {"limit_tokens": 9_000}


@every
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_too_long_is_cut_deeper_and_sent_once_more(
    serve, format, stream
):
    server = serve(format, lambda _: SAYING, **LIMIT)
    session = Session("")
    more = {"stream": True} if stream and format != "gemini" else {}
    create = create_of(format, server.client(), stream=stream)
    reply = session.call(create, **long(format, **more))
    if stream:
        list(reply)
    first, second = server.requests
    assert len(second.raw) < len(first.raw)
    assert kinds(session).count("refused") == 1
    assert session.usage == reported(server, 1)


@with_managers
def test_a_manager_enters_the_shorter_request(serve, format):
    server = serve(format, lambda _: SAYING, **LIMIT)
    session = Session("")
    create, final, _ = managed(format, server.client())
    options = (
        {"stream_options": {"include_usage": True}}
        if format == "openai-chat"
        else {}
    )
    with session.call(create, **long(format), **options) as stream:
        assert SAYING.text in str(getattr(stream, final)())
    assert len(server.requests) == 2
    assert session.usage == reported(server, 1)


@every
@pytest.mark.parametrize(("turns", "tries"), [(60, 2), (0, 1)])
def test_what_stays_too_long_is_the_clients_error(serve, format, turns, tries):
    """After one more try, or at once where nothing shorter can be sent."""
    server = serve(
        format, lambda _: too_long(format, 90_000, 8_000 if turns else 10)
    )
    budget = Budget(tokens=10**9)
    session = Session("", budget=budget)
    with pytest.raises(Exception, match=r"too long|exceed|length"):
        session.call(create_of(format, server.client()), **long(format, turns))
    assert len(server.requests) == tries
    session.close()
    assert budget.spent.calls == 0


def test_a_stream_that_begins_with_too_long_begins_again(serve, monkeypatch):
    """Some servers answer 200 and say it in the first event."""
    whole, error = (
        loopback.stream_of,
        b'data: {"error": {"message": "prompt is too long"}}\n\n',
    )
    answers = iter([lambda *_: error, whole])
    monkeypatch.setattr(
        loopback, "stream_of", lambda *given: next(answers)(*given)
    )
    server = serve("openai-chat", [SAYING, SAYING])
    session = Session("")
    create = server.client().chat.completions.create
    stream = session.call(create, **long("openai-chat", stream=True))
    assert SAYING.text[:10] in "".join(str(event) for event in stream)
    assert len(server.requests) == 2
    assert session.usage == reported(server, 1)


def test_any_other_error_gives_back_what_was_claimed(serve):
    refusal = Refusal(
        500, {"type": "error", "error": {"type": "api_error", "message": "no"}}
    )
    server = serve("anthropic", [refusal])
    session = Session("", budget=Budget(tokens=10**6))
    with pytest.raises(Exception, match="500"):
        session.call(server.client().messages.create, **asked("anthropic"))
    assert not session._account.is_calling
    session.close()
    assert session.budget.spent.calls == 0
    assert len(server.requests) == 1


# ── google-genai's own calling of functions ──────────────────────────────────────────────


def test_functions_that_google_genai_calls_itself_are_still_called(serve):
    """A declaration of ours beside them would switch that off without a word (N3)."""
    from tests.servers import Call

    opened = []

    def read_file(path: str) -> str:
        """Reads a file."""
        opened.append(path)
        return "locked"

    server = serve(
        "gemini", [Reply("", [Call("read_file", {"path": "a"})]), SAYING]
    )
    session = Session("")
    reply = session.call(
        server.client().models.generate_content,
        model="gemini-3-pro",
        contents=[user("gemini")],
        config={"tools": [read_file]},
    )
    assert opened == ["a"]
    assert reply.text == SAYING.text
    assert not session.state.policy_record.recall


# ── event loops ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def aclient():
    """The asynchronous client of a vendor for a provider here."""

    def made(server):
        import anthropic
        import openai
        from google import genai

        if server.format == "ollama":
            ollama = pytest.importorskip(
                "ollama", reason="ollama is not installed"
            )
            return ollama.AsyncClient(host=server.url, trust_env=False)
        if server.format == "gemini":
            options = {
                "base_url": server.url,
                "async_client_args": {"trust_env": False},
            }
            return genai.Client(
                api_key="none", vertexai=False, http_options=options
            ).aio
        if server.format == "anthropic":
            http = anthropic.DefaultAsyncHttpxClient(trust_env=False)
            return anthropic.AsyncAnthropic(
                api_key="none",
                base_url=server.url,
                max_retries=0,
                http_client=http,
            )
        http = openai.DefaultAsyncHttpxClient(trust_env=False)
        return openai.AsyncOpenAI(
            api_key="none",
            base_url=f"{server.url}/v1",
            max_retries=0,
            http_client=http,
        )

    return made


@every
def test_awaited_replies_streams_and_refusals(serve, aclient, format):
    server = serve(format, lambda _: SAYING, **LIMIT)

    async def talk():
        client, session = aclient(server), AsyncSession("")
        await session.call(create_of(format, client), **asked(format))
        assert session.usage == reported(server)
        create = create_of(format, client, stream=True)
        more = {} if format == "gemini" else {"stream": True}
        stream = await session.call(create, **long(format, **more))
        assert [event async for event in stream]
        assert kinds(session).count("refused") == 1
        assert session.usage == reported(server) + reported(server, 2)
        stream = await session.call(create, **streamed(format))
        await anext(aiter(stream))
        await (stream.aclose() if format == "gemini" else stream.close())
        assert kinds(session)[-1] in ("observed", "unreported")
        await session.close()

    asyncio.run(talk())
    assert len(server.requests) == 4


@with_managers
def test_awaited_managers_and_raw_responses(serve, aclient, format):
    server = serve(format, lambda _: SAYING, **LIMIT)

    async def talk():
        client, session = aclient(server), AsyncSession("")
        create, final, keywords = managed(format, client)
        async with await session.call(create, **keywords) as stream:
            assert SAYING.text in str(await getattr(stream, final)())
        assert session.usage == reported(server)
        create = raw_of(format, client, "with_raw_response")
        await session.call(create, **asked(format, "Again."))
        assert session.usage == reported(server) + reported(server, 1)
        create = raw_of(format, client, "with_streaming_response")
        async with await session.call(
            create, **asked(format, "Once more.")
        ) as response:
            assert SAYING.text in str(await response.parse())
        assert session.usage == sum(
            (reported(server, n) for n in (1, 2)), reported(server)
        )
        await session.close()

    asyncio.run(talk())


def test_a_client_that_blocks_is_sent_to_the_session_for_it(serve):
    server = serve("anthropic", [SAYING])

    async def talk():
        with pytest.raises(ConfigError, match="Use a Session"):
            await AsyncSession("").call(
                server.client().messages.stream, **asked("anthropic")
            )

    asyncio.run(talk())


def test_a_call_that_is_cancelled_gives_back_what_was_claimed():
    called = asyncio.Event()

    async def never(**request):
        called.set()
        await asyncio.Event().wait()

    async def talk():
        session = AsyncSession("claude-opus-4-8", budget=Budget(tokens=10**6))
        task = asyncio.create_task(session.call(never, **asked("anthropic")))
        await called.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.close()
        assert session.budget.spent.calls == 0

    asyncio.run(talk())
