"""Sessions that stand in for ullage's own, in the words of its notices.

``Identity`` sends everything. ``Pruning`` keeps a small view: what is too large is cut when
first seen, and old results become placeholders, then, if asked for, an index.
"""

from __future__ import annotations

import hashlib
import json
import re

CONTINUATION = "get_continuation"
GREP = "tool_output_cache_grep"
PAGE_CHARS = 8_000


def definition(name, *properties):
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": "Read what was set aside.",
            "parameters": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in properties},
            },
        },
    }


def ref_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Identity:
    def __init__(self):
        self.events = ()
        self.replies = 0

    def fit(self, request):
        return dict(request)

    def observe(self, reply):
        self.replies += 1

    def owns(self, call):
        return False

    def recall(self, call):
        raise AssertionError("nothing was set aside")

    def close(self):
        pass


class Event:
    def __init__(self, kind, where, ref, before, after):
        self.kind, self.where, self.ref = kind, where, ref
        self.why = "over the mark"
        self.tokens_before, self.tokens_after = before, after


class Pruning(Identity):
    """``keep`` newest results stay; ``cut_chars`` is the most a result may show at first.

    ``grep`` offers the search tool. ``index`` drops old turns whole and leaves one visible
    notice, whose text lists the notices of what is in it.
    """

    def __init__(self, keep=6, cut_chars=40_000, grep=True, index=False):
        super().__init__()
        self.keep, self.cut_chars, self.grep, self.index = (
            keep,
            cut_chars,
            grep,
            index,
        )
        self.kept, self.recalls, self.peak_chars = {}, 0, 0

    def fit(self, request):
        tools = [
            *request["tools"],
            definition(CONTINUATION, "tool_call_id", "offset"),
        ]
        if self.grep:
            tools.append(definition(GREP, "ref_id", "pattern"))
        calls = {
            c["id"]: c
            for m in request["messages"]
            for c in m.get("tool_calls") or ()
        }
        messages = [self._first_sight(m, calls) for m in request["messages"]]
        old = [i for i, m in enumerate(messages) if m["role"] == "tool"][
            : -self.keep
        ]
        for i in old:
            messages[i] = self._placeholder(
                messages[i], request["messages"][i], calls
            )
        if self.index and old:
            messages = self._indexed(
                messages, request["messages"], calls, old[-1]
            )
        self.peak_chars = max(
            self.peak_chars, sum(len(m.get("content") or "") for m in messages)
        )
        return {**request, "messages": messages, "tools": tools}

    def _put(self, text, kind="truncated"):
        ref = ref_of(text)
        if ref not in self.kept:
            self.events += (Event(kind, "a result", ref, len(text) // 4, 40),)
        self.kept[ref] = text
        return ref

    def _first_sight(self, message, calls):
        text = message.get("content") or ""
        if message["role"] != "tool" or len(text) <= self.cut_chars:
            return message
        ref, head = self._put(text), int(self.cut_chars * 0.7)
        shown = f"{text[:head]}\n…\n{text[-self.cut_chars // 5 :]}\n{self._notice(ref, head)}"
        return {**message, "content": shown}

    def _placeholder(self, message, original, calls):
        name = calls[message["tool_call_id"]]["function"]["name"]
        text = original["content"]
        if len(text) < 400 or name in (CONTINUATION, GREP):
            return (
                message
                if len(text) < 400
                else {**message, "content": "[recalled text]"}
            )
        return {
            **message,
            "content": self._notice(self._put(text, "pruned"), 0),
        }

    def _indexed(self, messages, originals, calls, end):
        """One user message in place of everything up to the last old turn's end."""
        while messages[end + 1]["role"] == "tool":
            end += 1
        lines = [
            f"{calls[m['tool_call_id']]['function']['arguments']} {self._notice(ref_of(text), 0)}"
            for m in originals[1 : end + 1]
            if m["role"] == "tool" and not self.owns(calls[m["tool_call_id"]])
            for text in [m["content"]]
            if self._put(text, "condensed")
        ]
        ref = self._put("\n".join(lines), "condensed")
        said = [
            m["content"] for m in messages[1:] if m["role"] == "assistant"
        ][-1]
        account = f"Earlier: {said}\n{self._notice(ref, 0)}"
        return [
            messages[0],
            {"role": "user", "content": account},
            *messages[end + 1 :],
        ]

    def _notice(self, ref, offset):
        search = (
            f'; search it: {GREP}(ref_id="{ref}", pattern="…")'
            if self.grep
            else ""
        )
        read = f'{CONTINUATION}(tool_call_id="{ref}", offset={offset})'
        return f"[set aside. Read on: {read}{search}]"

    def owns(self, call):
        return call["function"]["name"] in (CONTINUATION, GREP)

    def recall(self, call):
        self.recalls += 1
        arguments = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == GREP:
            lines = self.kept[arguments["ref_id"]].split("\n")
            pattern = re.compile(arguments["pattern"])
            hits = [
                f"{n:6d}\t{line}"
                for n, line in enumerate(lines, 1)
                if pattern.search(line)
            ]
            content = "\n".join(hits[:50])
        else:
            content = self._page(
                arguments["tool_call_id"], arguments["offset"]
            )
        return {"role": "tool", "tool_call_id": call["id"], "content": content}

    def _page(self, ref, offset):
        if ref not in self.kept:
            return f"error: nothing is kept under {ref}"
        text, stop = self.kept[ref], offset + PAGE_CHARS
        if stop >= len(text):
            return text[offset:]
        on = f'{CONTINUATION}(tool_call_id="{ref}", offset={stop})'
        return f"{text[offset:stop]}\n[characters {offset} to {stop} of {len(text)}. Read on: {on}]"


class Prefix:
    """A prompt cache of four characters a token: the longest prefix of the last request."""

    def __init__(self):
        self.last = []

    def feed(self, head, messages):
        pieces = [
            json.dumps(head, sort_keys=True),
            *(json.dumps(m) for m in messages),
        ]
        same = 0
        while (
            same < min(len(pieces), len(self.last))
            and pieces[same] == self.last[same]
        ):
            same += 1
        self.last = pieces
        return Cached(
            sum(map(len, pieces)) // 4, sum(map(len, pieces[:same])) // 4
        )


class Cached:
    def __init__(self, prompt_tokens, cached_tokens):
        self.prompt_tokens, self.cached_tokens = prompt_tokens, cached_tokens
        self.written_tokens = prompt_tokens - cached_tokens
