"""Reads a view as a model would: from the text it can see, by the calls the notices name."""

import json
import re

from ullage.notices import pointers

MORE = re.compile(
    r"\n\[characters [\d,]+ to [\d,]+ of [\d,]+\. Read on: "
    r'(?:\w*get_continuation\(tool_call_id="([0-9a-z]{16})", offset=(\d+)\))\]\Z'
)


def texts_of(content):
    """The texts of a message's or a result's content."""
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block.get("type") == "text"]


def results(messages):
    """(call id, [texts]) of every tool result of either format, in order."""
    for message in messages:
        if message["role"] == "tool":
            yield message["tool_call_id"], texts_of(message["content"])
        elif isinstance(message["content"], list):
            for block in message["content"]:
                if block.get("type") == "tool_result":
                    yield block["tool_use_id"], texts_of(block.get("content"))


def visible(messages):
    """Every text a model sees, arguments included."""
    for message in messages:
        yield from texts_of(message["content"])
        for call in message.get("tool_calls") or ():
            yield call["function"]["arguments"]
        if isinstance(message["content"], list):
            for block in message["content"]:
                if block.get("type") == "tool_use":
                    yield json.dumps(block["input"], ensure_ascii=False)
    for _, texts in results(messages):
        yield from texts


def follow(session, ref, offset):
    """Read on from an offset to the end, page after page, as the notices say."""
    pieces = []
    while True:
        text = ask(session, "get_continuation", {"tool_call_id": ref, "offset": offset})
        more = MORE.search(text)
        if more is None:
            return "".join([*pieces, text])
        pieces.append(text[: more.start()])
        assert int(more[2]) > offset, "paging must make progress"
        ref, offset = more[1], int(more[2])


def ask(session, tool, arguments):
    """Make a recall call in the session's own format; the text that comes back."""
    if session.state.format == "anthropic":
        call = {"type": "tool_use", "id": "recall", "name": tool, "input": arguments}
    else:
        body = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": "recall", "type": "function", "function": body}
    assert session.owns(call)
    return session.recall(call)["content"]


def everything_reachable(session, messages):
    """Every text that is visible, or can be reached by following visible notices."""
    seen, found, queue = set(), set(), []
    for text in visible(messages):
        found.add(text)
        for pointer in pointers(text):
            queue.append((pointer, text))
    while queue:
        pointer, text = queue.pop()
        if pointer.ref in seen:
            continue
        seen.add(pointer.ref)
        whole = follow(session, pointer.ref, 0)
        found.add(whole)
        if pointer.offset and not text.lstrip().startswith(("{", "[")):
            # the notice promises that everything before its offset is shown verbatim
            joined = text[: pointer.offset] + follow(session, pointer.ref, pointer.offset)
            assert joined == whole
        if whole.startswith("Index of messages"):
            queue += [(inner, whole) for inner in pointers(whole)]
    return found
