"""Additions on trial: a request that is refused with what we added goes without it."""

import asyncio
import json
from functools import partial
from itertools import pairwise

import pytest
from msgspec.structs import replace

from tests import histories
from tests.exchange.scripted import (
    SSE,
    Reply,
    aask,
    ask,
    async_exchanges,
    exchanges,
)
from tests.exchange.test_exchange import PATHS, refusal, replied
from tests.histories import Call, Turn
from tests.servers.streams import stream_of
from tests.session.test_joining import ROOMY, UNBOUND, large, steps
from tests.session.test_joining_wires import KEYS, MODELS, TOOLS, names
from ullage import Limits, MemoryStore, problems
from ullage.doors.exchange.additions import HOLDS_S
from ullage.doors.exchange.trials import is_bad_request

every = pytest.mark.parametrize("format", PATHS)
BAD = (
    b'{"error": {"message": "Bad request.", "type": "invalid_request_error"}}'
)
NAMED = b'{"error": {"message": "This model takes no tools beside its own."}}'
OPTIONS = (
    b'{"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]}'
)
OURS = "get_continuation"
CHAT = PATHS["openai-chat"]


class Ruled:
    """The replies of an upstream that refuses by a rule, as `scripted.Upstream` takes them.

    ``rule`` gives the reply to a body that is refused, or None.
    """

    def __init__(self, format, rule):
        self.format, self.rule, self.sent = format, rule, []

    def send(self, raw):
        self.sent.append(raw)
        asked = json.loads(raw)
        refused = self.rule(asked)
        if refused is not None:
            return refused
        if asked.get("stream"):
            return Reply(
                stream_of(self.format, replied(self.format), asked),
                content_type=SSE,
            )
        return Reply(replied(self.format))


def offers(asked):
    return OURS in names(asked)


def no_tools(words=NAMED, status=400):
    """The rule of an upstream that refuses our tools."""
    return lambda asked: Reply(words, status) if offers(asked) else None


def body(format, turns=(), **more):
    head = {"model": UNBOUND[format], "tools": TOOLS[format], **more}
    request = histories.request(format, histories.wire(format, turns), **head)
    if format == "gemini":
        del request["model"]
    return request


def talk(door, format, rule, asked, **more):
    """Status, words and upstream of one request to an upstream with a rule."""
    upstream = Ruled(format, rule)
    raw = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    status, said, _ = ask(_Given(door, upstream), PATHS[format], raw, **more)
    return status, said, upstream


class _Given:
    """Exchanges whose requests go to an upstream of this test's."""

    def __init__(self, door, upstream):
        self.door, self.upstream = door, upstream

    def of(self, method, path, raw, _, **more):
        return self.door.of(method, path, raw, self.upstream, **more)


# ── once more, as it came ────────────────────────────────────────────────────────────────


@every
@pytest.mark.parametrize("status", [400, 422])
def test_a_request_that_is_refused_with_our_tools_goes_as_it_came(
    format, status
):
    door, reports = exchanges(limits=ROOMY)
    raw = json.dumps(body(format), indent=3).encode()
    given, said, upstream = talk(door, format, no_tools(status=status), raw)
    assert (given, json.loads(said)) == (200, replied(format))
    assert len(upstream.sent) == 2
    assert upstream.sent[1] == raw
    (report,) = reports
    assert (report.without, report.tries, report.is_changed) == (
        ("tools",),
        2,
        False,
    )
    (event,) = (
        event for event in report.events if event.kind == "addition_refused"
    )
    assert event.where == "tools"


@every
def test_what_its_words_name_is_left_out_from_then_on(format):
    door, reports = exchanges(limits=ROOMY)
    talk(door, format, no_tools(), body(format))
    for text in ("another", "and another"):
        other = body(format, [Turn(said=text), Turn(user=text)])
        _, _, upstream = talk(door, format, no_tools(), other)
        assert len(upstream.sent) == 1
        assert not offers(json.loads(upstream.sent[0]))
    assert [report.without for report in reports] == [("tools",)] * 3
    assert reports[-1].standing.reason == "refused"


@every
def test_a_refusal_that_names_nothing_has_to_come_twice(format):
    door, _ = exchanges(limits=ROOMY)
    tries = []
    for number in range(3):
        asked = body(
            format, [Turn(said="Hello."), Turn(user=f"And {number}?")]
        )
        _, _, upstream = talk(door, format, no_tools(BAD), asked)
        tries.append(len(upstream.sent))
    assert tries == [2, 2, 1]


def test_a_refusal_by_chance_takes_nothing_away():
    """An upstream that said no once, for whatever reason, takes everything that comes then."""
    door, _ = exchanges(limits=ROOMY)
    refused = iter([Reply(BAD, 400)])
    for number in range(5):
        asked = body(
            "openai-chat", [Turn(said="Hello."), Turn(user=f"And {number}?")]
        )
        _, _, upstream = talk(
            door, "openai-chat", lambda _: next(refused, None), asked
        )
        assert offers(json.loads(upstream.sent[0]))
    refused = iter(
        [Reply(BAD, 400)]
    )  # once more, after replies that disproved the first
    talk(
        door, "openai-chat", lambda _: next(refused, None), body("openai-chat")
    )
    asked = body("openai-chat", [Turn(said="Hello."), Turn(user="And now?")])
    _, _, upstream = talk(door, "openai-chat", lambda _: None, asked)
    assert offers(json.loads(upstream.sent[0]))


@every
def test_where_it_is_refused_as_it_came_too_that_refusal_is_the_clients(
    format,
):
    door, reports = exchanges(limits=ROOMY)
    raw = json.dumps(body(format), indent=1).encode()
    mine = b'{"error":   {"message": "temperature: 7 is out of range (tools, stream_options)"}}'
    rule = lambda asked: Reply(NAMED if offers(asked) else mine, 400)  # noqa: E731
    status, said, upstream = talk(door, format, rule, raw)
    assert (status, said) == (400, mine)
    assert upstream.sent[1:] == [raw]
    assert door.refusals.newest.rows == {}
    assert not [
        event
        for event in reports[0].events
        if event.kind == "addition_refused"
    ]
    _, _, upstream = talk(door, format, lambda _: None, body(format))
    assert offers(json.loads(upstream.sent[0]))


@pytest.mark.parametrize(
    "status", [401, 403, 404, 405, 409, 429, 500, 503, 529]
)
def test_no_other_status_puts_anything_on_trial(status):
    door, _ = exchanges(limits=ROOMY)
    given, said, upstream = talk(
        door, "openai-chat", no_tools(NAMED, status), body("openai-chat")
    )
    assert (given, said, len(upstream.sent)) == (status, NAMED, 1)
    assert door.refusals.newest.rows == {}


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_what_meets_another_error_without_our_additions_teaches_nothing(
    status,
):
    door, _ = exchanges(limits=ROOMY)

    def rule(request):
        return (
            Reply(NAMED, 400) if offers(request) else Reply(b"later", status)
        )

    given, said, _ = talk(door, "openai-chat", rule, body("openai-chat"))
    assert (given, said) == (status, b"later")
    assert door.refusals.newest.rows == {}


def test_a_request_without_additions_is_sent_once():
    door, _ = exchanges(limits=ROOMY)
    asked = body("openai-chat", tools=[])
    status, said, upstream = talk(
        door, "openai-chat", lambda _: Reply(NAMED, 400), asked
    )
    assert (status, said, len(upstream.sent)) == (400, NAMED, 1)


def test_the_log_has_a_line_without_content(caplog):
    door, _ = exchanges(limits=ROOMY)
    for text in ("a secret", "another secret"):
        talk(
            door,
            "openai-chat",
            no_tools(),
            body("openai-chat", [Turn(user=text)]),
        )
    (line,) = [
        one.getMessage()
        for one in caplog.records
        if "addition_refused" in one.message
    ]
    assert line == (
        "addition_refused: tools: the upstream refused the request with the recall tools and took "
        "it without: requests for this model go without for 60 minutes"
    )


# ── which of them ────────────────────────────────────────────────────────────────────────


def options_refused(asked):
    return Reply(OPTIONS, 422) if "stream_options" in asked else None


def test_only_what_the_words_name_is_left_out():
    door, reports = exchanges(limits=ROOMY)
    asked = body("openai-chat", stream=True)
    status, said, upstream = talk(door, "openai-chat", options_refused, asked)
    assert status == 200
    assert said == stream_of("openai-chat", replied("openai-chat"), asked)
    first, second = map(json.loads, upstream.sent)
    assert {**second, "stream_options": {"include_usage": True}} == first
    assert offers(second)
    assert reports[0].without == ("stream_options",)
    other = body(
        "openai-chat", [Turn(said="Hello."), Turn(user="More.")], stream=True
    )
    _, _, upstream = talk(door, "openai-chat", options_refused, other)
    (only,) = map(json.loads, upstream.sent)
    assert offers(only)
    assert "stream_options" not in only


def test_where_the_words_name_one_of_two_both_go_in_turn():
    door, reports = exchanges(limits=ROOMY)

    def rule(asked):
        if "stream_options" in asked:
            return Reply(OPTIONS, 422)
        return Reply(BAD, 400) if offers(asked) else None

    raw = json.dumps(body("openai-chat", stream=True), indent=1).encode()
    status, _, upstream = talk(door, "openai-chat", rule, raw)
    assert (status, len(upstream.sent), upstream.sent[-1]) == (200, 3, raw)
    assert reports[0].without == ("tools", "stream_options")
    _, _, upstream = talk(
        door,
        "openai-chat",
        rule,
        body("openai-chat", [Turn(user="!")], stream=True),
    )
    assert [offers(json.loads(each)) for each in upstream.sent] == [
        True,
        False,
    ]


def test_cache_markers_are_on_trial_too():
    door, reports = exchanges(limits=ROOMY)
    door.marks_cache = True
    words = b'{"error": {"message": "tools.0.cache_control: Extra inputs are not permitted"}}'

    def rule(request):
        return (
            Reply(words, 400)
            if "cache_control" in json.dumps(request)
            else None
        )

    raw = json.dumps(body("anthropic")).encode()
    status, _, upstream = talk(door, "anthropic", rule, raw)
    assert status == 200
    assert len(upstream.sent) == 2
    assert reports[0].without == ("tools", "cache_control")
    _, _, upstream = talk(
        door, "anthropic", rule, body("anthropic", [Turn(user="More.")])
    )
    assert len(upstream.sent) == 1
    assert "cache_control" in reports[-1].without


@every
def test_a_limit_of_tools_that_nobody_knew_keeps_recall_where_there_is_room(
    format,
):
    door, _ = exchanges(limits=ROOMY)
    most = 20

    def count(asked):
        return len(names(asked))

    rule = lambda asked: Reply(NAMED, 400) if count(asked) > most else None  # noqa: E731
    sizes = []
    for own in (most, most, most - 1, most):
        tools = _tools(format, own)
        asked = body(
            format,
            [Turn(said="Hi."), Turn(user=f"{own} {len(sizes)}")],
            tools=tools,
        )
        _, _, upstream = talk(door, format, rule, asked)
        sizes.append([count(json.loads(each)) for each in upstream.sent])
    assert sizes == [[most + 1, most], [most], [most], [most]]


def _tools(format, count):
    text = json.dumps(TOOLS[format][0])
    if format != "gemini":
        return [
            json.loads(text.replace("bash", f"tool_{n}")) for n in range(count)
        ]
    declared = TOOLS[format][0]["functionDeclarations"][0]
    return [
        {
            "functionDeclarations": [
                {**declared, "name": f"tool_{n}"} for n in range(count)
            ]
        }
    ]


# ── whose it is, where it goes, for how long ─────────────────────────────────────────────


def test_one_tenant_switches_nothing_off_for_another():
    door, _ = exchanges(limits=ROOMY)
    talk(
        door, "openai-chat", no_tools(), body("openai-chat"), tenant="mallory"
    )
    _, _, upstream = talk(
        door, "openai-chat", lambda _: None, body("openai-chat"), tenant="ann"
    )
    assert offers(json.loads(upstream.sent[0]))


@pytest.mark.parametrize("other", ["model", "origin"])
def test_another_model_or_upstream_is_asked_for_itself(other):
    door, _ = exchanges(limits=ROOMY)
    talk(
        door,
        "openai-chat",
        no_tools(),
        body("openai-chat"),
        origin="http://one",
    )
    model = {"model": "gpt-4.1"} if other == "model" else {}
    origin = "http://two" if other == "origin" else "http://one"
    asked = body("openai-chat", [Turn(user="Hello.")], **model)
    _, _, upstream = talk(
        door, "openai-chat", lambda _: None, asked, origin=origin
    )
    assert offers(json.loads(upstream.sent[0]))


def test_after_an_hour_it_is_tried_again():
    door, _ = exchanges(limits=ROOMY)
    now_s = 0.0
    door.refusals._now_s = lambda: now_s
    counts = []
    for now_s in (0.0, HOLDS_S - 1, HOLDS_S + 1):
        asked = body("openai-chat", [Turn(said="Hi."), Turn(user=str(now_s))])
        _, _, upstream = talk(door, "openai-chat", no_tools(), asked)
        counts.append(len(upstream.sent))
    assert counts == [2, 1, 2]


# ── conversations ────────────────────────────────────────────────────────────────────────


@every
def test_a_conversation_that_began_with_a_refusal_is_one_without_recall(
    format,
):
    """Every result goes whole, no notice names a tool, and every request begins with the last."""
    door, reports = exchanges(limits=ROOMY)
    turns = steps(4)
    for count in range(5):
        asked = body(format, turns[:count])
        status, _, upstream = talk(door, format, no_tools(), asked)
        assert status == 200
        assert json.loads(upstream.sent[-1]) == asked
    assert [report.tries for report in reports] == [2, 1, 1, 1, 1]


@every
def test_another_worker_learns_for_itself_and_shows_the_same(format):
    store, turns = MemoryStore(), steps(4)
    doors = [exchanges(limits=ROOMY, store=store)[0] for _ in range(2)]
    counts = []
    for count in range(5):
        asked = body(format, turns[:count])
        _, _, upstream = talk(doors[count % 2], format, no_tools(), asked)
        assert json.loads(upstream.sent[-1]) == asked
        counts.append(len(upstream.sent))
    assert counts == [2, 2, 1, 1, 1]


@every
def test_a_conversation_is_offered_recall_once_its_upstream_takes_it(format):
    """An hour later it is tried once more, and cut then: the tools break the prefix anyway."""
    door, _ = exchanges(limits=ROOMY)
    turns, views = steps(6), []
    for count in range(3):
        talk(door, format, no_tools(), body(format, turns[:count]))
    later_s = door.refusals._now_s() + HOLDS_S + 1
    door.refusals._now_s = lambda: later_s
    for count in (3, 4, 5, 6):
        _, _, upstream = talk(
            door, format, lambda _: None, body(format, turns[:count])
        )
        (view,) = map(json.loads, upstream.sent)
        assert offers(view)
        assert len(json.dumps(view)) < 12_000 * count
        views.append(view[KEYS[format]])
    for before, after in pairwise(views):
        assert after[: len(before)] == before


@every
def test_where_results_were_cut_before_the_fitted_messages_go_without_our_tools(
    format,
):
    door, _ = exchanges(limits=ROOMY)
    turns = steps(6)
    for count in range(3):
        _, _, upstream = talk(
            door, format, lambda _: None, body(format, turns[:count])
        )
    shown = json.loads(upstream.sent[-1])
    assert offers(shown)
    status, _, upstream = talk(
        door, format, no_tools(), body(format, turns[:3])
    )
    first, second = map(json.loads, upstream.sent)
    key = KEYS[format]
    assert status == 200
    assert second[key] == first[key]
    assert first[key][: len(shown[key])] == shown[key]
    assert not offers(second)
    for count in (4, 5, 6):
        _, _, upstream = talk(
            door, format, no_tools(), body(format, turns[:count])
        )
        (view,) = map(json.loads, upstream.sent)
        assert not offers(view)
        assert view[key][: len(second[key])] == second[key], (
            "what was sent stays as it is"
        )
        is_whole = json.dumps(large(count - 1))[1:-1] in json.dumps(view)
        assert is_whole, "what is new is not cut: nothing could open it"


@every
def test_a_conversation_is_not_joined_by_a_request_that_is_refused(format):
    """One that was under way is shown as it was, until its upstream takes the tools."""
    door, reports = exchanges(limits=ROOMY)
    turns = steps(16)
    for count in range(10, 17):
        asked = body(format, turns[:count])
        status, _, upstream = talk(door, format, no_tools(), asked)
        assert status == 200
        assert json.loads(upstream.sent[-1]) == asked
    assert 2 in [report.tries for report in reports]


@every
def test_a_conversation_with_reasoning_that_could_not_be_joined_stays_legal_and_whole(
    format,
):
    door, reports = exchanges(limits=ROOMY)
    whole = steps(16, thought=True)
    turns = [
        replace(turn, user="And?" if at % 3 == 2 else None)
        for at, turn in enumerate(whole)
    ]
    views = []
    for count in range(9, 17):
        asked = body(format, turns[:count], model=MODELS[format])
        _, _, upstream = talk(door, format, no_tools(), asked)
        view = json.loads(upstream.sent[-1])
        assert problems({**view, "model": MODELS[format]}, format) == []
        assert all(
            json.dumps(large(n))[1:-1] in json.dumps(view)
            for n in range(count)
        )
        views.append(view[KEYS[format]])
    for before, after in pairwise(views):
        assert after[: len(before)] == before
    assert 2 in [report.tries for report in reports]


def test_what_is_over_the_limit_as_it_came_is_not_sent_as_it_came():
    door, _ = exchanges(
        limits=Limits(window_tokens=20_000, output_reserve_tokens=500)
    )
    turns = steps(8)
    for count in range(9):
        _, _, upstream = talk(
            door,
            "openai-chat",
            lambda _: None,
            body("openai-chat", turns[:count]),
        )
    status, said, upstream = talk(
        door,
        "openai-chat",
        lambda _: Reply(BAD, 400),
        body("openai-chat", turns[:8]),
    )
    assert (status, said) == (400, BAD)
    first, second = upstream.sent
    assert (
        len(second)
        < len(first)
        < len(json.dumps(body("openai-chat", turns[:8]))) / 2
    )


@every
def test_where_the_cut_messages_are_what_is_refused_it_goes_as_it_came_and_teaches_nothing(
    format,
):
    door, reports = exchanges(limits=ROOMY)
    turns = steps(3)
    for count in range(4):
        talk(door, format, lambda _: None, body(format, turns[:count]))
    raw = json.dumps(body(format, turns), indent=2).encode()
    rule = lambda asked: Reply(BAD, 400) if OURS in json.dumps(asked) else None  # noqa: E731
    status, said, upstream = talk(door, format, rule, raw)
    assert (status, json.loads(said)) == (200, replied(format))
    assert len(upstream.sent) == 3
    assert upstream.sent[-1] == raw
    assert (reports[-1].passed, reports[-1].is_changed) == ("refused", False)
    assert door.refusals.newest.rows == {}


@every
def test_a_refusal_for_length_is_no_refusal_of_an_addition(format):
    limits = Limits(window_tokens=30_000, output_reserve_tokens=500)
    door, _ = exchanges(limits=limits)
    turns = [
        Turn(calls=(Call("bash", f"{n}.py", f"line {n}\n" * 500),))
        for n in range(12)
    ]
    no = iter([refusal(format)])
    status, _, upstream = talk(
        door, format, lambda _: next(no, None), body(format, turns)
    )
    assert status == 200
    first, second = upstream.sent
    assert len(second) < len(first)
    assert door.refusals.newest.rows == {}


def test_a_refusal_for_length_after_one_of_an_addition_is_cut_as_ever():
    limits = Limits(window_tokens=30_000, output_reserve_tokens=500)
    door, _ = exchanges(limits=limits)
    turns = [
        Turn(calls=(Call("bash", f"{n}.py", f"line {n}\n" * 500),))
        for n in range(12)
    ]
    asked = json.dumps(
        body("openai-chat", turns, stream=True), separators=(",", ":")
    ).encode()
    no = iter([Reply(OPTIONS, 422), refusal("openai-chat")])
    status, _, upstream = talk(
        door, "openai-chat", lambda _: next(no, None), asked
    )
    first, second, third = upstream.sent
    assert status == 200
    assert len(third) < len(second) < len(first)
    ((_, addition),) = door.refusals.newest.rows
    assert addition == "stream_options"


# ── streams, and event loops ─────────────────────────────────────────────────────────────


@every
def test_a_stream_is_tried_again_before_its_first_byte(format):
    door, _ = exchanges(limits=ROOMY)
    asked = body(format, stream=True)
    upstream = Ruled(format, no_tools())
    status, said, _ = ask(_Given(door, upstream), PATHS[format], asked)
    assert status == 200
    plain = {
        key: value for key, value in asked.items() if key != "stream_options"
    }
    assert said == stream_of(format, replied(format), plain)
    assert len(upstream.sent) == 2


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_refusal_under_status_200_is_one_all_the_same(is_streamed):
    door, reports = exchanges(limits=ROOMY)
    words = {"error": {"code": 400, "message": "tools are not supported"}}

    def rule(asked):
        if not offers(asked):
            return None
        if is_streamed:
            return Reply(
                f"data: {json.dumps(words)}\n\n".encode(), content_type=SSE
            )
        return Reply(words)

    asked = body("openai-chat", stream=is_streamed)
    status, said, upstream = talk(door, "openai-chat", rule, asked)
    assert status == 200
    if is_streamed:
        assert said == stream_of("openai-chat", replied("openai-chat"), asked)
    else:
        assert json.loads(said) == replied("openai-chat")
    assert len(upstream.sent) == 2
    assert reports[0].without == ("tools",)


@every
def test_an_event_loop_tries_and_learns_alike(format):
    async def run():
        door, reports = async_exchanges(limits=ROOMY)
        for text in ("one", "two"):
            asked = body(format, [Turn(said="Hi."), Turn(user=text)])
            upstream = Ruled(format, no_tools())
            status, _, _ = await aask(
                _Given(door, upstream), PATHS[format], asked
            )
            assert status == 200
        return [report.tries for report in reports]

    assert asyncio.run(run()) == [2, 1]


def test_many_at_once_on_a_loop_each_get_their_reply():
    async def run():
        door, reports = async_exchanges(limits=ROOMY)
        bodies = [
            body("openai-chat", [Turn(said="Hi."), Turn(user=str(n))])
            for n in range(20)
        ]
        upstreams = [Ruled("openai-chat", no_tools()) for _ in bodies]
        asking = [
            partial(aask, _Given(door, upstream), CHAT, asked)
            for upstream, asked in zip(upstreams, bodies, strict=True)
        ]
        done = await asyncio.gather(*(each() for each in asking))
        return [status for status, _, _ in done], len(reports)

    assert asyncio.run(run()) == ([200] * 20, 20)


@pytest.mark.parametrize(
    ("error", "is_bad"),
    [
        ({"status_code": 400, "body": b""}, True),
        ({"status_code": 422, "body": b""}, True),
        ({"status_code": 401, "body": b'{"error": {"code": 400}}'}, False),
        ({"status_code": 503, "body": b""}, False),
        ({"error": {"code": 400}}, True),
        ({"error": {"code": 429, "message": "tools"}}, False),
        ({"error": {"status": "INVALID_ARGUMENT"}}, True),
        ({"type": "error", "error": {"type": "invalid_request_error"}}, True),
        ({"type": "error", "error": {"type": "overloaded_error"}}, False),
        ({"error": "tools"}, False),
        (["tools"], False),
        (None, False),
    ],
)
def test_which_refusals_say_that_the_request_is_wrong(error, is_bad):
    assert is_bad_request(error) is is_bad
