"""The real proxy of LiteLLM: with our callback, and with ullage as its compression guardrail."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import closing, contextmanager

import pytest

pytest.importorskip(
    "litellm", reason="litellm is not installed (make litellm)"
)
pytest.importorskip("fastapi", reason="litellm[proxy] is not installed")

from tests.integrations.litellm.world import calls, says, text_of, upstream
from tests.integrations.outputs import NEEDLE, big

KEY = "sk-test-of-this-proxy-0123456789"
CONFIG = """
model_list:
  - model_name: gpt-4.1
    litellm_params: {{model: openai/gpt-4.1, api_base: "{upstream}", api_key: none}}
litellm_settings: {{callbacks: ullage.integrations.litellm.callback}}
general_settings: {{master_key: {key}}}
guardrails:
  - guardrail_name: shorten
    litellm_params: {{guardrail: headroom, mode: pre_call, api_base: "{ullage}/_ullage"}}
"""
TOOL = {
    "type": "function",
    "function": {"name": "look", "parameters": {"type": "object"}},
}


def free_port():
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@contextmanager
def process(command, environment, log):
    with log.open("w") as output:
        child = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output
        )
        try:
            yield child
        finally:
            child.terminate()
            child.wait(30)


def answers(url, child, log):
    """Wait until a server answers."""
    for _ in range(1_200):
        assert child.poll() is None, log.read_text()[-2_000:]
        try:
            with urllib.request.urlopen(url) as reply:
                return reply.status
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text()[-2_000:])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """LiteLLM's proxy and ullage's, before an upstream: its address, and what was sent."""
    folder = tmp_path_factory.mktemp("proxies")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "ULLAGE_STORE": str(folder / "kept.db"),
        "ULLAGE_LITELLM_POLICY": "continuation",
        "NO_PROXY": "127.0.0.1",
    }
    ports = free_port(), free_port()
    ours, theirs = (f"http://127.0.0.1:{port}" for port in ports)
    with upstream(lambda request: says("Yes.")) as server:
        config = folder / "config.yaml"
        config.write_text(
            CONFIG.format(upstream=server.url, ullage=ours, key=KEY)
        )
        ullage = [sys.executable, "-m", "ullage", "proxy"]
        ullage += [f"--listen=127.0.0.1:{ports[0]}", "--policy=continuation"]
        litellm = [sys.executable, "-m", "litellm.proxy.proxy_cli"]
        litellm += ["--config", str(config), "--host", "127.0.0.1"]
        litellm += ["--port", str(ports[1])]
        logs = folder / "ullage.log", folder / "litellm.log"
        with (
            process(ullage, environment, logs[0]) as first,
            process(litellm, environment, logs[1]) as second,
        ):
            answers(f"{ours}/_ullage/ready", first, logs[0])
            answers(f"{theirs}/health/liveliness", second, logs[1])
            yield theirs, server.sent


def conversation(count):
    """Looks that are answered, and a question behind them."""
    messages = [{"role": "user", "content": "Find the needle."}]
    for n in range(count):
        call, call_id = calls(("look", {"n": n})), f"look_{n}"
        call["tool_calls"][0]["id"] = call_id
        result = {"role": "tool", "tool_call_id": call_id, "content": big(n)}
        messages += [call, result]
    return [*messages, says("There."), {"role": "user", "content": "Where?"}]


def ask(world, **more):
    """What the upstream was sent for a request of a client, and the reply's headers."""
    url, sent = world
    body = {"model": "gpt-4.1", "messages": conversation(2), "tools": [TOOL]}
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(body | more).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(request) as reply:
        said = json.load(reply)["choices"][0]["message"]["content"]
        assert said == "Yes."
        return sent[-1]["messages"], reply.headers


def test_a_conversation_that_is_named_is_shortened_by_the_callback(world):
    messages, _ = ask(world, metadata={"session_id": "t"})
    assert len(text_of(messages)) < 20_000
    again, _ = ask(world, litellm_session_id="t")
    assert again == messages
    whole, _ = ask(world)  # names none
    assert f"{NEEDLE} of cupboard 1" in text_of(whole)


def test_the_guardrail_for_compression_takes_ullage_as_its_server(world):
    messages, headers = ask(world, guardrails=["shorten"])
    assert headers["x-litellm-applied-guardrails"] == "shorten"
    assert len(text_of(messages)) < 20_000
    roles = [message["role"] for message in conversation(2)]
    assert [message["role"] for message in messages] == roles
