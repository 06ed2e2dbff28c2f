"""A provider with a prompt cache, by the simulator that replay prices with; and its clock."""

import json
from types import SimpleNamespace

from ullage.core.values.usage import Usage
from ullage.tools.replay.cost.cache import PromptCache
from ullage.tools.replay.cost.prefix import Prefix, head_of
from ullage.tools.replay.cost.prices import Profile
from ullage.wires import FORMATS

CLAUDE = "claude-sonnet-4-5"
SYSTEM = "You are a careful agent, and you say so. " * 400
LINE = "all is well with this line of a log\n"


def profile(**terms):
    return Profile(
        name="made up",
        **{"write": 1.25, "read": 0.1, "min_tokens": 1_024, **terms},
        as_of="2026-11-27",
        source="made up",
    )


class Provider:
    """Answers views: reads of its cache what they have in common with the request before."""

    def __init__(self, ttl_s=300, format="anthropic"):
        self.now_s, self.format = 1_000_000.0, format
        self.prefix = Prefix(lambda text: len(text) // 4 + 1)
        self.cache = PromptCache(profile(ttl_s=ttl_s))

    def time(self):
        return self.now_s

    def watch(self, monkeypatch):
        clock = SimpleNamespace(time=self.time)
        for module in ("turns", "replies"):
            monkeypatch.setattr(f"ullage.session.{module}.time", clock)
        return self

    def forget(self):
        """Evict everything."""
        self.cache = PromptCache(self.cache.profile)

    def answer(self, view):
        head = view["model"] + head_of(view) + str(view.get("thinking"))
        messages = FORMATS[self.format].history(view)
        use = self.cache.take(self.prefix.measure(messages, head), self.now_s)
        return Usage(
            fresh_tokens=use.fresh_tokens,
            cache_read_tokens=use.cached_tokens,
            cache_write_tokens=use.written_tokens,
            output_tokens=9,
        )


def read_call(number):
    return {
        "type": "tool_use",
        "id": f"t{number}",
        "name": "read",
        "input": {"file_path": f"/src/{number}.log"},
    }


def step(number, lines=60):
    """A reply that reads a file, and its result."""
    text = f"{number}: {LINE}" * lines
    result = {
        "type": "tool_result",
        "tool_use_id": f"t{number}",
        "content": text,
    }
    return [
        {"role": "assistant", "content": [read_call(number)]},
        {"role": "user", "content": [result]},
    ]


class Agent:
    """An agent on Anthropic's wire that goes on turn by turn."""

    def __init__(self, session, provider):
        self.session, self.provider = session, provider
        self.messages = [{"role": "user", "content": "Read it all. " * 900}]
        self.number = 0
        self.head = {
            "model": CLAUDE,
            "system": SYSTEM,
            "tools": [tool("read")],
        }

    def request(self, **head):
        self.head |= head
        return {"max_tokens": 99, **self.head, "messages": self.messages}

    def change(self, index):
        """Say something old in other words."""
        message = json.loads(json.dumps(self.messages[index]))
        message["content"][0]["content"] += f" {self.number} words more"
        self.messages[index] = message

    def turn(self, wait_s=10, lines=60, **head):
        """One request and its reply; the view."""
        self.provider.now_s += wait_s
        view = self.session.fit(self.request(**head))
        view.observe(self.provider.answer(view))
        self.messages += step(self.number, lines)
        self.number += 1
        return view


def tool(name, **more):
    return {"name": name, "input_schema": {"type": "object"}, **more}
