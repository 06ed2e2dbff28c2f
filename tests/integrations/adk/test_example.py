"""The program to copy from, with a real agent and runner."""

import asyncio

import pytest

pytest.importorskip(
    "google.adk", reason="google-adk is not installed (make adk)"
)

from examples import adk_agent
from tests.servers import Call, Reply

LOG = "INFO the tide came in\n" * 20_000


def test_the_agent_reads_a_part_of_a_long_file_and_answers(
    serve, monkeypatch, tmp_path
):
    reads = Reply("I look.", [Call("read_file", {"path": "app.log"})])
    server = serve("gemini", [reads, "It is done."])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.log").write_text(LOG)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
    monkeypatch.setenv("GEMINI_API_KEY", "none")
    assert asyncio.run(adk_agent.main("What is wrong?")) == "It is done."
    assert len(server.requests[-1].raw) < len(LOG) * 0.6
