"""Real coding agents behind a proxy of their own, and beside the same agents without one.

Their vendors are scripted, at the vendors' own addresses: `tests.servers.vendors`. For the agents
and how to install them see `tests.coding_agents`.
"""

import json
import re

import pytest

from tests.coding_agents import AGENTS, OURS, messages_of, tools_of, world
from tests.servers import Call, Refusal, Reply
from tests.servers.refusals import too_long

pytestmark = pytest.mark.timeout(400)
pytest.importorskip(
    "cryptography", reason="certificates need the package cryptography"
)

CONTINUE = re.compile(
    r'get_continuation\(tool_call_id=\\*"(\w+)\\*", offset=(\d+)\)'
)
LISTING = "seq -f 'line %.0f' 1 1900"
LINE = re.compile(r"line \d+")
URL = re.compile(r"https?://[^\s\"',)]+")
WITH_TOOLS = [
    name for name, agent in AGENTS.items() if agent.shell is not None
]


def installed(name):
    """The agent, if it is there."""
    agent = AGENTS[name]
    if agent.program is None:
        pytest.skip(
            f"{name} is not installed: see tests/coding_agents.py, and set ULLAGE_AGENTS"
        )
    return agent


# Cut, and read on


def script(shell):
    """Count; read on where the output was cut; read on and count again at once; end."""

    def answer(captured):
        if OURS[0] not in captured.raw.decode():
            return Reply(
                "A title."
            )  # asked beside the conversation, without tools
        step = len(requests)
        requests.append(captured.raw.decode())
        if step == 0:
            return Reply("I count.", [shell(LISTING)])
        if step > 2:
            return "All is counted."
        ref, offset = CONTINUE.search(requests[1]).groups()
        more = {"tool_call_id": ref, "offset": int(offset)}
        if step == 1:
            return Reply("I read on.", [recall(more)])
        return Reply(
            "Once more.",
            [recall({**more, "offset": 9_900}), shell("echo last")],
        )

    def recall(arguments):
        return Call("get_continuation", arguments)

    requests = []
    return answer


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_an_agent_is_cut_reads_on_and_never_sees_it(name, tmp_path):
    agent = installed(name)
    with world(agent, script(agent.shell), tmp_path, is_behind=True) as there:
        ran = there.run(agent.asked("Count."))
        asked = [
            each.raw.decode()
            for each in there.server.requests
            if OURS[0] in str(each.raw)
        ]
    assert ran.status == 0, ran.errors
    seen = [len(set(LINE.findall(each))) for each in asked[:4]]
    assert 0 == seen[0] < seen[1] < seen[2] <= seen[3] < 1_900, (
        "cut, and read on"
    )
    assert "9900" in asked[3], "and once more"
    assert "last" in asked[3], "beside the agent's own call"
    assert "All is counted." in ran.output
    assert not any(ours in ran.output for ours in OURS)
    assert "the model used it 2 times" in ran.summary


# Side by side with the agent alone

OF_A_RUN = frozenset(
    (
        *(
            "host",
            "content-length",
            "connection",
            "accept-encoding",
            "traceparent",
            "baggage",
        ),
        *("user-agent", "x-ullage"),
    )
)
"""Headers that belong to a connection, or that an agent makes anew for each run."""


def side_by_side(agent, replies, folder, *prompts):
    """The runs and the requests of an agent alone, then behind; ``replies`` makes a script."""
    pair = []
    for is_behind in (False, True):
        at = folder / ("behind" if is_behind else "alone")
        with world(agent, replies(), at, is_behind=is_behind) as there:
            runs = [
                there.run(agent.asked(prompt, resumes=number > 0))
                for number, prompt in enumerate(prompts)
            ]
            pair.append((runs, there.of_the_conversation()))
    return pair


def all_is_well():
    """A vendor that has one answer."""
    return lambda captured: Reply("All is well.")


@pytest.mark.parametrize("name", AGENTS)
def test_the_first_request_has_our_tools_more_and_nothing_less(name, tmp_path):
    (_, alone), (_, behind) = side_by_side(
        installed(name), all_is_well, tmp_path, "Hello."
    )
    assert len(alone) == len(behind) > 0
    alone, behind = alone[0], behind[0]
    more = [tool for tool in tools_of(behind) if tool not in tools_of(alone)]
    assert [tool for tool in tools_of(behind) if tool not in more] == tools_of(
        alone
    )
    assert set(more) <= set(OURS)
    assert {*behind.body} == {*alone.body}
    assert behind.path == alone.path
    assert behind.body.get("model") == alone.body.get("model")
    assert alone.headers.get("anthropic-beta") == behind.headers.get(
        "anthropic-beta"
    )
    for header in {*alone.headers} - OF_A_RUN:
        assert header in behind.headers, header
    for header in {*behind.headers} - OF_A_RUN:
        assert header in alone.headers, header


@pytest.mark.parametrize("name", AGENTS)
def test_a_session_is_resumed_as_without_us(name, tmp_path):
    pair = side_by_side(
        installed(name), all_is_well, tmp_path, "Hello.", "Again."
    )
    (alone_runs, alone), (behind_runs, behind) = pair
    assert [run.status for run in alone_runs + behind_runs] == [0] * 4, (
        behind_runs[1].errors
    )
    assert [len(messages_of(each)) for each in alone] == [
        len(messages_of(each)) for each in behind
    ]
    for one, other in zip(alone, behind, strict=True):
        assert len(tools_of(other)) - len(tools_of(one)) == bool(tools_of(one))
    assert "All is well." in behind_runs[1].output


# Errors

KINDS = {
    401: ("authentication_error", "invalid_api_key", "UNAUTHENTICATED"),
    429: ("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"),
    500: ("api_error", "server_error", "INTERNAL"),
    529: ("overloaded_error", "server_is_overloaded", "UNAVAILABLE"),
}


def refusal(wire, status, **headers):
    """A vendor's error."""
    anthropic, openai, gemini = KINDS[status]
    words = f"the vendor says {status}"
    match wire:
        case "anthropic":
            body = {
                "type": "error",
                "error": {"type": anthropic, "message": words},
            }
        case "gemini":
            body = {
                "error": {"code": status, "message": words, "status": gemini}
            }
        case _:
            body = {
                "error": {
                    "message": words,
                    "type": openai,
                    "code": openai,
                    "param": None,
                }
            }
    return Refusal(status, body, headers)


def refuses(error, times):
    """A script that refuses the conversation a number of times, and then answers."""

    def answer(captured):
        if len(captured.raw) < 5_000:
            return Reply("A title.")
        refused.append(captured)
        return error if len(refused) <= times else Reply("All is well.")

    refused = []
    return answer


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("status", [429, 500, 529])
def test_an_agent_tries_again_as_without_us(name, status, tmp_path):
    agent = installed(name)
    error = refusal(agent.wire, status, **{"retry-after": "1"})
    pair = side_by_side(agent, lambda: refuses(error, 1), tmp_path, "Hello.")
    ((alone_run,), alone), ((behind_run,), behind) = pair
    assert len(alone) == len(behind)
    assert alone_run.status == behind_run.status
    assert ("All is well." in alone_run.output) == (
        "All is well." in behind_run.output
    )


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("kind", ["refused", "too long"])
def test_an_agent_says_an_error_as_without_us(name, kind, tmp_path):
    agent = installed(name)
    error = refusal(agent.wire, 401)
    if kind == "too long":
        error = too_long(agent.wire, 1_250_000, 1_000_000)
    pair = side_by_side(agent, lambda: refuses(error, 8), tmp_path, "Hello.")
    ((alone_run,), alone), ((behind_run,), behind) = pair
    assert len(alone) == len(behind) > 0
    assert alone_run.status == behind_run.status
    words = error.body["error"]["message"]
    says = [
        words in run.output + run.errors for run in (alone_run, behind_run)
    ]
    assert says[0] == says[1]


# Compaction


def test_claude_code_compacts_as_without_us_and_goes_on(tmp_path):
    agent = installed("claude")

    def replies():
        def answer(captured):
            text = captured.raw.decode()
            if "summary of the conversation" in text:
                return Reply(
                    "<analysis>It ran.</analysis><summary>They counted.</summary>"
                )
            if "line 7" in text or "They counted." in text:
                return Reply("All is well.")
            return Reply("I count.", [agent.shell(LISTING)])

        return answer

    pair = side_by_side(
        agent, replies, tmp_path, "Count.", "/compact", "Again."
    )
    (alone_runs, alone), (behind_runs, behind) = pair
    assert [run.status for run in alone_runs + behind_runs] == [0] * 6
    assert [len(messages_of(each)) for each in alone] == [
        len(messages_of(each)) for each in behind
    ]
    assert len(behind) == 4
    assert "They counted." in behind[-1].raw.decode()
    assert OURS[0] in tools_of(behind[-1]), "recall is offered after it, too"
    lines = [len(set(LINE.findall(each.raw.decode()))) for each in behind]
    assert lines[0] == lines[3] == 0 < lines[1] == lines[2] < 1_900, (
        "and what was cut stays cut"
    )


def test_codex_compacts_at_the_vendor_s_as_without_us(tmp_path):
    agent = installed("codex")

    def replies():
        def answer(captured):
            last = messages_of(captured)[-1]["type"]
            if not last.startswith("compaction"):
                return Reply("All is well.")
            item = {
                "id": "cmp_1",
                "type": "compaction",
                "encrypted_content": "gAAAAAc2VhbGVk",
            }
            usage = {
                "input_tokens": 900,
                "output_tokens": 9,
                "total_tokens": 909,
            }
            own = {"id": "resp_9", "object": "response", "status": "completed"}
            return {
                **own,
                "model": "gpt-5.2",
                "output": [item],
                "usage": usage,
            }

        return answer

    words, pair = ["-c", "model_auto_compact_token_limit=2000"], []
    for is_behind in (False, True):
        at = tmp_path / str(is_behind)
        with world(agent, replies(), at, is_behind=is_behind) as there:
            for number, prompt in enumerate(("Hello.", "Again.")):
                program, exec_, *rest = agent.asked(prompt, resumes=number > 0)
                ran = there.run([program, exec_, *words, *rest])
                assert ran.status == 0, ran.output
            pair.append(there.of_the_conversation())
    kinds = [
        [messages_of(each)[-1]["type"] for each in requests]
        for requests in pair
    ]
    assert kinds[0] == kinds[1]
    assert any(kind.startswith("compaction") for kind in kinds[1])
    sealed = [
        item
        for item in messages_of(pair[1][-1])
        if item["type"] == "compaction"
    ]
    assert [item["encrypted_content"] for item in sealed] == ["gAAAAAc2VhbGVk"]


# What Claude Code switches off before a gateway


def context_of(agent, folder, *, is_behind):
    """The model and its window, as ``/context`` tells them."""
    with world(agent, all_is_well(), folder, is_behind=is_behind) as there:
        ran = there.run(["claude", "-p", "/context"])
    return re.search(r"\*\*Model:\*\* (\S+)", ran.output)[1], re.search(
        r"/\s*(\S+) ", ran.output
    )[1]


def test_claude_code_shows_the_window_that_it_has_without_us(tmp_path):
    agent = installed("claude")
    alone = context_of(agent, tmp_path / "alone", is_behind=False)
    assert alone == context_of(agent, tmp_path / "behind", is_behind=True)


def test_claude_code_finds_its_tools_by_search_at_its_vendor_s_alone(tmp_path):
    agent = installed("claude")
    tools = {}
    for gateway in ("", "https://api.anthropic.com/gateway"):
        with world(
            agent, all_is_well(), tmp_path / f"at{len(tools)}", is_behind=True
        ) as there:
            there.run(
                agent.asked("Hello."),
                **({"ANTHROPIC_BASE_URL": gateway} if gateway else {}),
            )
            (request,) = there.of_the_conversation()
            tools[gateway] = tools_of(request)
            assert request.path.startswith(
                gateway.removeprefix("https://api.anthropic.com")
            )
    with_search, without = tools.values()
    assert "ToolSearch" in with_search
    assert len(with_search) < len(without) / 2


# Where requests end: what the user has set by a file of the agent's

GATEWAY = "https://gateway.example/api"
OWN_FILES = {
    "claude": {
        ".claude/settings.json": json.dumps(
            {"env": {"ANTHROPIC_BASE_URL": GATEWAY}}
        )
    },
    "codex": {".codex/config.toml": f'openai_base_url = "{GATEWAY}/v1"\n'},
    "opencode": {
        "opencode.jsonc": json.dumps(
            {
                "provider": {
                    "anthropic": {"options": {"baseURL": f"{GATEWAY}/v1"}}
                }
            }
        )
    },
    "qwen": {".env": f"OPENAI_BASE_URL={GATEWAY}/v1\n"},
    "goose": {".config/goose/config.yaml": f"OPENAI_HOST: {GATEWAY}\n"},
}


@pytest.mark.parametrize("name", OWN_FILES)
def test_a_gateway_in_the_agent_s_own_file_is_where_its_requests_end(
    name, tmp_path
):
    from msgspec.structs import replace

    agent = replace(
        installed(name), host="gateway.example", files=OWN_FILES[name]
    )
    with world(agent, all_is_well(), tmp_path, is_behind=True) as there:
        ran = there.run(agent.asked("Hello."))
        requests = there.of_the_conversation()
    assert "All is well." in ran.output, ran.errors
    assert requests[0].path.startswith("/api/v1/")
    assert OURS[0] in tools_of(requests[0]), "by way of the proxy"


# A budget that is spent

BUDGET = """
[[budgets]]
name = "research"
tokens = 5
period = "month"
"""
RESET = re.compile(r"It starts again on \d{4}-\d\d-01 at 00:00")
OWN_WORDS = {"codex": "Quota exceeded"}
"""What an agent shows instead of the text it is given."""


@pytest.mark.parametrize("name", ["claude", "codex", "opencode"])
def test_an_agent_whose_budget_is_spent_says_so_and_asks_no_more(
    name, tmp_path
):
    """The first request may still go; the next one is refused, and not sent again and again."""
    agent = installed(name)
    settings = tmp_path / "proxy.toml"
    settings.write_text(BUDGET)
    with world(agent, all_is_well(), tmp_path, is_behind=True) as there:
        config = {"ULLAGE_PROXY_CONFIG": str(settings)}
        there.run(agent.asked("Hello."), **config)
        sent = len(there.server.requests)
        ran = there.run(agent.asked("And now?", resumes=True), **config)
        assert len(there.server.requests) == sent
    assert ran.status != 0
    said = OWN_WORDS.get(name)
    if said is None:
        assert RESET.search(ran.output), "the user sees until when"
    else:
        assert said in ran.output
    assert RESET.search(ran.summary), "ullage run says it for every agent"
    (stopped,) = re.findall(r"(\d+) stopped by a budget", ran.summary)
    assert 1 <= int(stopped) <= 3
