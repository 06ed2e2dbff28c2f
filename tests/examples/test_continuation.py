"""`tool-result-continuation.md` in both ways to use it, over a real MCP server on stdio.

The command line and the HTTP endpoint run as processes; only the model is played.
"""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import openai
import pytest
from msgspec.structs import replace

from examples.continuation import MEETING_SERVER, agent_turn, new_session
from examples.meeting_server import TRANSCRIPT_CHARS, transcript
from tests.loop.server import calling, saying, serving
from ullage.integrations.mcp_tools import mcp_tools

ROOT = Path(__file__).parents[2]
NOTICE = re.compile(
    r"\n(?:\[ref=\w+, [\d,]+ characters in all\]\n)?"
    r"\[truncated — showing (?P<shown>[-\d]+)/(?P<total>\d+) chars\. Call get_continuation with "
    r'tool_call_id="(?P<id>\w+)"(?: and offset=(?P<offset>\d+))? to read more\]$'
)
DECISIONS = [
    line for line in transcript().splitlines() if line.startswith("Decision: ")
]


def secretary(body):
    """Transcribes, reads on as the notices say, and answers with the decisions it has seen."""
    messages = body["messages"]
    results = [message for message in messages if message["role"] == "tool"]
    if messages[-1]["role"] == "user" and results:
        return saying("You are welcome.")
    if not results:
        return calling(0, "transcribe_audio", path="meeting.wav")
    found = NOTICE.search(results[-1]["content"])
    if found and len(results) < 20:
        asked = {
            "tool_call_id": found["id"],
            "offset": int(found["offset"] or found["shown"]),
        }
        return calling(len(results), "get_continuation", **asked)
    lines = rebuilt([result["content"] for result in results]).splitlines()
    return saying(
        "\n".join(line for line in lines if line.startswith("Decision: "))
    )


def rebuilt(shown):
    """The whole transcript, from nothing but what was shown."""
    return "".join(NOTICE.sub("", page) for page in shown)


@pytest.mark.says(
    "tool-result-continuation",
    "Data flow",
    """
    User asks to summarize meeting
      -> agent calls transcribe_audio
      -> MCP returns 24,591 chars
      -> agent_turn caches full result, truncates to 4000 chars
      -> marker: [truncated - showing 4000/24591 chars. Call get_continuation...]
      -> LLM sees partial transcript, calls get_continuation(offset=4000)
      -> agent_turn serves chars 4000-8000 from cache
      -> LLM calls get_continuation(offset=8000) ... repeats as needed
      -> LLM has enough context, generates summary
    """,
    lives="ullage.doors.loop",
)
@pytest.mark.says(
    "tool-result-continuation",
    "4. Local handler in tool call loop",
    "If so, serve the chunk directly from the cache — no MCP round-trip:",
    lives="ullage.doors.loop.steps",
)
@pytest.mark.says(
    "tool-result-continuation",
    "What doesn't change",
    "`mcp_server.py` — no new MCP tools",
    lives="ullage.integrations.mcp_tools",
)
def test_the_server_is_called_once_and_all_the_rest_is_read_here():
    """In one process: what the model asks for, what reaches the server, what comes back."""
    reached = []

    def counted(tool):
        def run(arguments):
            came = tool.run(arguments)
            reached.append((tool.name, arguments, len(came.text)))
            return came

        return replace(tool, run=run)

    messages = []
    with (
        serving(secretary) as (url, bodies),
        mcp_tools(MEETING_SERVER) as tools,
        new_session("gpt-4.1", "memory") as session,
        openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):
        create = client.chat.completions.create
        outcome = agent_turn(
            create, session, [*map(counted, tools)], messages, "Decisions?"
        )
    assert [tool.name for tool in tools] == ["transcribe_audio"]
    assert reached == [("transcribe_audio", {"path": "meeting.wav"}, 24_591)]
    assert outcome.text.splitlines() == DECISIONS
    calls = [
        call["function"]
        for m in bodies[-1]["messages"]
        for call in m.get("tool_calls", ())
    ]
    asked = [json.loads(call["arguments"]).get("offset") for call in calls]
    assert [call["name"] for call in calls] == ["transcribe_audio"] + [
        "get_continuation"
    ] * 6
    assert asked == [None, 4_000, 8_000, 12_000, 16_000, 20_000, 24_000]
    shown = [
        m["content"] for m in bodies[-1]["messages"] if m["role"] == "tool"
    ]
    assert shown[1].startswith(transcript()[4_000:8_000])
    assert rebuilt(shown) == transcript()


def environment(url):
    keep = {
        name: os.environ[name]
        for name in ("PATH", "SYSTEMROOT")
        if name in os.environ
    }
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    return {
        **keep,
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "none",
        "PYTHONPATH": path,
    }


def command(name, *arguments):
    return [sys.executable, "-m", f"examples.{name}", *arguments]


def test_the_transcript_is_that_of_the_document():
    assert len(transcript()) == TRANSCRIPT_CHARS == 24_591
    assert len(DECISIONS) == 5


@pytest.mark.says(
    "tool-result-continuation",
    "Scope",
    "Works in both CLI (`agent.py`) and HTTP (`api_server.py`) paths since both call `agent_turn`",
    lives="ullage.doors.loop",
)
def test_on_the_command_line(tmp_path):
    question = "Which decisions were made?"
    with serving(secretary) as (url, bodies):
        done = subprocess.run(
            command(
                "continuation_cli",
                "--store",
                str(tmp_path / "kept.sqlite"),
                question,
            ),
            env=environment(url),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert done.stdout.splitlines() == DECISIONS
    told = re.search(
        r"\[answered; 2 calls of the model, and (\d+) to read on", done.stderr
    )
    assert int(told[1]) == len(bodies) - 2 == 6
    assert bodies[-1]["messages"][1]["content"] == question
    first = next(m for m in bodies[1]["messages"] if m["role"] == "tool")
    assert first["content"].startswith(transcript()[:4_000])
    assert NOTICE.search(first["content"])["total"] == str(TRANSCRIPT_CHARS)
    assert "Decision: " not in first["content"]
    shown = [
        m["content"] for m in bodies[-1]["messages"] if m["role"] == "tool"
    ]
    assert rebuilt(shown) == transcript(), "byte for byte"


def post(url, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with urllib.request.urlopen(
        urllib.request.Request(url, data), timeout=30
    ) as answer:
        return json.loads(answer.read())


one_server = pytest.mark.xdist_group("the continuation endpoint")


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    store = tmp_path_factory.mktemp("http") / "kept.sqlite"
    with serving(secretary) as (url, bodies):
        process = subprocess.Popen(
            command("continuation_http", "--port", "0", "--store", str(store)),
            env=environment(url),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process.stdout.readline().split()[-1], bodies
        finally:
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.says(
    "tool-result-continuation",
    "What doesn't change",
    "`api_server.py` — calls `agent_turn` the same way",
    lives="ullage.doors.loop",
)
@one_server
def test_behind_an_http_endpoint(http):
    url, bodies = http
    bodies.clear()
    first = post(url, {"message": "Which decisions were made?"})
    assert first["reply"].splitlines() == DECISIONS
    assert (first["why"], first["iterations"], first["uncounted"]) == (
        "answered", 2, len(bodies) - 2
    )  # fmt: skip
    again = post(
        url, {"message": "Thanks.", "conversation": first["conversation"]}
    )
    assert again["reply"] == "You are welcome."
    assert bodies[-1]["messages"][-2]["content"] == first["reply"], (
        "the history went on"
    )
    other = post(url, {"message": "And you?"})
    assert other["conversation"] != first["conversation"]
    assert other["reply"].splitlines() == DECISIONS


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("", b"not JSON", 400),
        ("", {"text": "no message"}, 400),
        ("", {"message": "hm", "conversation": "nobody's"}, 400),
        ("/more", {"message": "hm"}, 404),
    ],
)
@one_server
def test_what_is_no_chat_is_refused_and_the_server_lives(
    http, path, body, status
):
    url, _ = http
    with pytest.raises(HTTPError) as refused:
        post(url + path, body)
    assert refused.value.code == status
    refused.value.close()
    assert (
        post(url, {"message": "Which decisions were made?"})["why"]
        == "answered"
    )
