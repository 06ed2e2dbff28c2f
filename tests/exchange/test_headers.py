"""What stands around the histories of one tenant is held once."""

import json

from ullage import Session
from ullage.doors.exchange.headers import SharedHeaders


def test_conversations_of_one_tenant_hold_the_tools_they_share_once():
    headers, first = SharedHeaders(), Session("gpt-4.1")
    tools = [
        {"type": "function", "function": {"name": "bash", "parameters": {}}}
    ]
    first.fit({**asked("one", "two"), "tools": tools})
    headers.take(first, "me", "openai-chat")
    for tenant, wire, is_shared in (
        ("me", "openai-chat", True),
        ("you", "openai-chat", False),
        ("me", "anthropic", False),
    ):
        other = Session("gpt-4.1")
        headers.give(other, tenant, wire)
        other.fit(
            {**asked("three", "four"), "tools": json.loads(json.dumps(tools))}
        )
        assert (other.header is first.header) == is_shared


def asked(*texts):
    return {
        "model": "gpt-4.1",
        "messages": [{"role": "user", "content": text} for text in texts],
    }
