"""What the tests of the three-layer preset share: a second reading of the document's code.

The two functions below follow the document statement by statement, with the readings of
`docs/deviations.md` and no others, and share nothing with the package. Texts are plain ASCII
there: where a cut would part a character, ours moves and theirs does not.
"""

import json

from msgspec import Struct

from ullage import Session
from ullage.documents import three_layer
from ullage.documents.presets.three_layer import ThreeLayerSettings

ELLIPSIS = "... (line truncated)"


class Cut(Struct, frozen=True):
    """What is left of an output, and its two figures."""

    body: str
    lines: int
    bytes: int


def truncated_by_the_document(output, char_limit, settings):
    """`Truncate` up to the notice; None where it finds nothing over a limit."""
    lines = output.split("\n")
    needs_truncation = (
        len(lines) > settings.max_output_lines
        or len(output.encode()) > settings.max_output_bytes
        or len(output) > char_limit
    )
    if not needs_truncation:
        return None
    kept, current_bytes = [], 0
    for line in lines:
        if len(kept) >= settings.max_output_lines:
            break
        truncated = truncated_line(line, settings)
        line_bytes = len(truncated.encode()) + 1
        if current_bytes + line_bytes > settings.max_output_bytes:
            break
        kept.append(truncated)
        current_bytes += line_bytes
    body = "\n".join(kept)[:char_limit]
    return Cut(body, len(body.split("\n")) if body else 0, len(body.encode()))


def truncated_line(line, settings):
    """`TruncateLine`."""
    most = settings.max_line_length
    return line if len(line) <= most else line[:most] + ELLIPSIS


def tokens(text):
    """`EstimateTokens` of a text."""
    return -(-len(text) // 4)


class Part(Struct, frozen=True):
    """A part of a message: its text, and whether it is the output of a tool."""

    text: str
    is_output: bool


def pruned_by_the_document(parts, current_tokens, context_limit, settings):
    """`PruneMessages`: which parts are pruned, and the tokens they lose."""
    available = context_limit - settings.default_max_output_tokens
    pressed = current_tokens > context_limit * settings.prune_threshold
    if (
        not pressed and current_tokens < available
    ):  # either of the two, not both
        return [], 0
    if current_tokens < settings.prune_protect_tokens:
        return [], 0
    protected_tokens, protected_index = (
        0,
        0,
    )  # the document: len(parts), and nothing is kept
    for i in range(len(parts) - 1, -1, -1):
        part_tokens = tokens(parts[i].text)
        if protected_tokens + part_tokens > settings.prune_protect_tokens:
            protected_index = i + 1
            break
        protected_tokens += part_tokens
    pruned, removed, retained = [], 0, settings.prune_output_retain_chars
    for i, part in enumerate(parts[:protected_index]):
        if part.is_output and len(part.text) > retained + room_of_marker(
            part.text, retained
        ):
            removed += tokens(part.text) - tokens(part.text[:retained])
            pruned.append(i)
            if removed >= settings.prune_minimum_tokens:
                break
    return pruned, removed


def room_of_marker(text, retained):
    """What the marker takes: a cut that would not be shorter is not made."""
    ref = f"[ref={'0' * 16}, {len(text):,} characters in all]"
    return len(f"\n\n{ref}\n[Output pruned: kept first {retained} chars]")


# ── conversations ────────────────────────────────────────────────────────────────────────


def call(number, tool="bash", arguments=None):
    """An assistant message with one call."""
    body = {"name": tool, "arguments": json.dumps(arguments or {})}
    wire = {"id": f"call_{number}", "type": "function", "function": body}
    return {"role": "assistant", "content": None, "tool_calls": [wire]}


def result(number, text):
    """The answer to that call."""
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def words(chars, mark=""):
    """Text in short lines that every tokeniser counts below a quarter of its characters."""
    line = "international communication infrastructure\n" * (chars // 43 + 1)
    return f"{mark} {line}"[:chars]


class Asked:
    """A session of the preset that played through a conversation, a request before each call.

    Attributes:
        session: the session.
        messages: the history.
        view: the newest view.
    """

    def __init__(
        self, settings=None, *, policy=None, model="nobody-knows", **more
    ):
        policy = policy or three_layer(settings or ThreeLayerSettings())
        self.session = Session(
            model, policy=policy, format="openai-chat", **more
        )
        self.messages = [{"role": "user", "content": "Go."}]
        self.fit()

    def fit(self):
        """Send what there is."""
        request = {
            "model": self.session.settings.model,
            "messages": self.messages,
        }
        self.view = self.session.fit(request)["messages"]
        return self

    def tool(self, text, tool="bash", arguments=None):
        """One more call and its result, and the request after it."""
        number = len(self.messages)
        self.messages += [call(number, tool, arguments), result(number, text)]
        return self.fit()

    def shown(self):
        """The results as they are shown."""
        return [
            message["content"]
            for message in self.view
            if message["role"] == "tool"
        ]

    def told(self, kind):
        """The events of a kind."""
        return [event for event in self.session.events if event.kind == kind]
