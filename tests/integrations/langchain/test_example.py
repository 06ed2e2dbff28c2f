"""The LangGraph program to copy from, on LangChain's own client of Anthropic."""

import pytest

from tests.integrations.outputs import GREP
from tests.servers import Call, Reply, provider

pytest.importorskip(
    "langchain_anthropic", reason="needs the environment of make langchain"
)

LOG = "INFO the tide came in\n" * 20_000
REPLIES = [
    Reply("", [Call("read_file", {"path": "app.log"})]),
    "It is done.",
    "As I said.",
]


def test_the_langgraph_agent_reads_a_long_file_and_its_thread_goes_on(
    monkeypatch, tmp_path
):
    from examples import langgraph_agent

    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.log").write_text(LOG)
    with provider("anthropic", REPLIES, strict=True) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        assert (
            langgraph_agent.main("incident-7", "What is wrong?")
            == "It is done."
        )
        assert (
            langgraph_agent.main("incident-7", "Are you sure?") == "As I said."
        )
    assert max(len(request.raw) for request in server.requests) < len(LOG) / 4
    shown = [
        request.body["messages"][2]["content"]
        for request in server.requests[1:]
    ]
    assert GREP in str(shown[0])
    assert "tide came in" in str(shown[1])
