"""`ullage.wrap`: the vendors' own clients against a provider here, which judges what it is sent."""

from functools import partial

import pytest

import ullage
from tests.servers import Call, Reply
from tests.servers.loops import loop, request, user
from ullage import ConfigError, Limits
from ullage.doors.wrapping import Wrapped
from ullage.wires import FORMATS

every = pytest.mark.parametrize("format", tuple(FORMATS))
LIMITS = Limits(window_tokens=12_000, output_reserve_tokens=1_000)
LOG = "".join(f"line {n} of the log\n" for n in range(1_000))


def reads(number):
    """A model that reads so many files and says that it is done."""
    return [
        Reply(calls=[Call("read_file", {"path": f"{n}.log"})])
        for n in range(number)
    ] + ["Ok."]


def answer(name, arguments):
    return f"{arguments['path']}\n{LOG}"


@every
def test_the_copy_is_of_the_same_class_and_the_client_stays_as_it_was(
    serve, format
):
    server = serve(format, ["One.", "Two."])
    client = server.client()
    wrapped = ullage.wrap(client)
    assert type(wrapped) is type(client)
    asked = request(format, [user(format)], tools=())
    reply, plain = server.ask(wrapped, asked), server.ask(client, asked)
    assert type(reply) is type(plain)
    assert isinstance(ullage.wrapped(wrapped), Wrapped)
    assert ullage.wrapped(wrapped).counts.requests == 1
    with pytest.raises(ConfigError, match="not wrapped"):
        ullage.wrapped(client)


@every
def test_what_needs_no_change_is_sent_to_the_byte(serve, format):
    server = serve(format, ["One.", "Two."])
    client = server.client()
    asked = request(format, [user(format)], tools=())
    server.ask(client, asked)
    server.ask(ullage.wrap(client), asked)
    plain, fitted = server.requests
    assert fitted.raw == plain.raw
    ours = {"x-stainless-retry-count"}
    ours |= {
        "amz-sdk-invocation-id",
        "x-amz-date",
        "authorization",
    }  # of each request its own
    assert {k: v for k, v in fitted.headers.items() if k not in ours} == {
        k: v for k, v in plain.headers.items() if k not in ours
    }


@every
def test_a_long_run_stays_within_its_window_and_is_legal(serve, format):
    server = serve(format, reads(12), strict=True)
    client = ullage.wrap(server.client(), limits=LIMITS)
    history = loop(server, None, answer, client=client)
    assert len(server.requests) == 13
    assert len(server.requests[-1].raw) < 60_000 < len(str(history))
    counts = ullage.wrapped(client).counts
    assert (counts.fitted, counts.passed) == (13, {})
    assert counts.changed > 3
    report = ullage.wrapped(client).reports[-1]
    assert report.is_changed
    assert 0 < report.view_tokens <= report.limit_tokens


@every
def test_each_reply_is_observed_streamed_or_not(serve, format):
    server = serve(format, ["One and no more.", "Two and no more."])
    client = ullage.wrap(server.client())
    asked = request(format, [user(format)], tools=())
    server.ask(client, asked)
    server.ask(client, asked, stream=True)
    usages = [FORMATS[format].usage(body) for body in server.answered]
    assert [
        report.usage for report in ullage.wrapped(client).reports
    ] == usages
    (sessions,) = ullage.wrapped(client).sessions
    assert sessions.of(
        ullage.wrapped(client).reports[-1].conversation
    ).usage == sum(usages[1:], usages[0])


@every
@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_for_length_is_answered_with_a_shorter_request(
    serve, format, stream
):
    server = serve(format, reads(9), strict=True, limit_tokens=18_000)
    window = Limits(window_tokens=60_000, output_reserve_tokens=1_000)
    client = ullage.wrap(server.client(), limits=window)
    loop(server, None, answer, client=client)
    counts = ullage.wrapped(client).counts
    assert counts.refused >= 1
    assert len(server.requests) == counts.requests + counts.refused


@every
def test_what_no_cut_makes_short_enough_is_refused_in_the_providers_words(
    serve, format
):
    server = serve(format, ["never"], limit_tokens=10)
    client = ullage.wrap(server.client())
    with pytest.raises(
        Exception, match=r"(?i)maximum|exceed|too long"
    ) as caught:
        server.ask(
            client, request(format, [user(format, "word " * 400)], tools=())
        )
    sdk = type(caught.value).__module__.partition(".")[0]
    assert sdk in ("openai", "anthropic", "google", "ollama", "botocore")
    assert len(server.requests) in (1, 2)


@every
def test_a_restart_on_the_same_store_sends_the_same_bytes(
    serve, format, tmp_path
):
    def run(restarts):
        server = serve(format, reads(10), strict=True)
        path = tmp_path / f"{restarts}.db"
        client, history = None, [user(format)]
        for _ in range(11):
            if client is None or restarts:
                client = ullage.wrap(
                    server.client(), limits=LIMITS, store=path
                )
            history = loop(
                server, None, answer, client=client, messages=history, turns=1
            )
        return [captured.raw for captured in server.requests]

    assert run(restarts=True) == run(restarts=False)


@every
def test_other_paths_pass_and_are_counted(serve, format):
    server = serve(format)
    client = ullage.wrap(server.client())
    if format == "anthropic":
        other = partial(client.messages.batches.cancel, "b_1")
    elif format == "bedrock-converse":
        given = {"converse": {"messages": [user(format)]}}
        other = partial(client.count_tokens, modelId="m", input=given)
    elif format == "gemini":
        other = partial(
            client.models.embed_content, model="m", contents="text"
        )
    elif format == "ollama":
        other = partial(client.embed, model="m", input="text")
    else:
        other = partial(client.embeddings.create, model="m", input="text")
    with pytest.raises(Exception, match=r"no such path|404"):
        other()
    assert ullage.wrapped(client).counts.passed == {"path": 1}


def test_what_is_no_client_is_refused_with_what_is():
    with pytest.raises(
        ConfigError,
        match=r"a dict cannot be wrapped.*anthropic.*openai.*genai",
    ):
        ullage.wrap({})
    with pytest.raises(ConfigError, match="a Session cannot be wrapped"):
        ullage.wrap(ullage.Session("gpt-4.1"))


def test_a_wrapped_client_is_not_wrapped_again(serve):
    client = ullage.wrap(serve("anthropic").client())
    with pytest.raises(ConfigError, match="wrapped already"):
        ullage.wrap(client)


def test_a_setting_that_is_not_known_is_refused_at_once(serve):
    with pytest.raises(TypeError, match="polcy"):
        ullage.wrap(serve("anthropic").client(), polcy="default")
