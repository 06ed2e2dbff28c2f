"""Into a wire: turns as the messages of the target."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ullage.values.messages import Text
from ullage.wires import FORMATS
from ullage.wires.anthropic.models import takes_no_system_messages
from ullage.wires.convert.media import block_of
from ullage.wires.convert.names import under_names
from ullage.wires.convert.read import FAILED
from ullage.wires.convert.turns import Call, Losses, Medium, Piece, Result, Turn
from ullage.wires.gemini.models import signs_calls, signs_no_calls
from ullage.wires.repair.base import EMPTY

__all__ = ["beginning", "write"]

_Wire: TypeAlias = dict[str, Any]

UNSIGNED = "skip_thought_signature_validator"
"""What Gemini takes for the signature of a call that it did not make (G10)."""


def write(
    turns: Sequence[Turn], losses: Losses, source: str, names: Mapping[str, str]
) -> list[_Wire]:
    """The turns as messages of the target that ``losses`` names, tools called by ``names``."""
    named = under_names(turns, losses.target, names, without_ids=source == "gemini")
    messages = _WRITERS[losses.target](_Writing(losses, source), named)
    if messages and messages[0].get("role") in _NOT_FIRST.get(losses.target, ()):
        return [beginning(losses.target), *messages]
    return messages


def beginning(target: str) -> Any:
    """What stands for the user where the target wants one to speak first (A1, G4)."""
    return FORMATS[target].user(_NO_USER)


_NO_USER = "[ullage: no message of the user stood here]"
_NOT_FIRST = {"anthropic": ("assistant",), "gemini": ("model",)}


# ── what the writers share ───────────────────────────────────────────────────────────────


class _Writing:
    """The losses of a conversion, and the small questions that every writer asks."""

    def __init__(self, losses: Losses, source: str) -> None:
        self.losses = losses
        self.source = source

    def medium(self, medium: Medium, say: Callable[[str], _Wire]) -> _Wire:
        """The block of a medium, or a text in its place."""
        made = block_of(medium, self.losses, self.source)
        return say(made) if isinstance(made, str) else made

    def none(self, medium: Medium, place: str) -> Text:
        """A text for a medium that may not stand there at all."""
        what = f"{medium.kind} in {place}".replace("image in", "an image in")
        return Text(self.losses.lose(medium.where, what, "Put it into a message of the user."))

    def texts(self, content: Sequence[Text | Medium]) -> list[str]:
        """The content of a result in texts, where nothing else may stand in one."""
        return [
            piece.text if isinstance(piece, Text) else self.none(piece, "a tool's result").text
            for piece in content
        ]

    def arguments(self, call: Call) -> Mapping[str, Any]:
        """The arguments as the object that the target wants."""
        if call.value is not None:
            return call.value
        what = "a call whose arguments are no JSON object"
        self.losses.lose(call.where, what, "Give its arguments as an object.")
        return {"input": call.arguments}

    def failed(self, result: Result) -> tuple[Text | Medium, ...]:
        """The content of a result, with words for an error where there is no flag."""
        if not result.is_error:
            return result.content
        first, *rest = result.content or (Text(""),)
        if isinstance(first, Text):
            return (Text(FAILED + first.text), *rest)
        return (Text(FAILED), first, *rest)

    def system(self, turn: Turn) -> Turn:
        """A system message in mid-history, for a target that has none."""
        what = "a system message in the middle"
        note = self.losses.lose(turn.where, what, "Put it into the system text.")
        return Turn("user", (Text(note), *turn.pieces), turn.where)


def _texts(pieces: Sequence[Piece]) -> list[str]:
    return [piece.text for piece in pieces if isinstance(piece, Text)]


# ── Anthropic ────────────────────────────────────────────────────────────────────────────


def _anthropic(writing: _Writing, turns: Sequence[Turn]) -> list[_Wire]:
    messages: list[_Wire] = []
    takes_none = takes_no_system_messages(writing.losses.model)
    for number, turn in enumerate(turns):
        following = turns[number + 1].who if number + 1 < len(turns) else "assistant"
        stands = messages and messages[-1]["role"] == "user" and following == "assistant"
        if turn.who == "system" and (takes_none or not stands):
            turn = writing.system(turn)
        role = "user" if turn.who == "results" else turn.who
        content = [_anthropic_block(writing, piece, turn) for piece in turn.pieces]
        content = [block for block in content if block != {"type": "text", "text": ""}]
        if not content and turn.who == "user":
            content = [{"type": "text", "text": EMPTY}]
        if content:
            messages.append({"role": role, "content": content})
    return messages


def _anthropic_block(writing: _Writing, piece: Piece, turn: Turn) -> _Wire:
    def say(text: str) -> _Wire:
        return {"type": "text", "text": text}

    match piece:
        case Call():
            given = writing.arguments(piece)
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": dict(given)}
        case Result():
            block: _Wire = {"type": "tool_result", "tool_use_id": piece.call_id}
            content = [_anthropic_block(writing, item, turn) for item in piece.content]
            alone = len(content) == 1 and content[0]["type"] == "text"
            if content:
                block["content"] = content[0]["text"] if alone else content
            return {**block, "is_error": True} if piece.is_error else block
        case Medium() if turn.who == "assistant":
            return say(writing.none(piece, "a reply").text)
        case Medium():
            return writing.medium(piece, say)
    if piece.text.isspace() and turn.who != "results":
        return say(writing.losses.lose(turn.where, "text of nothing but spaces", "Leave it out."))
    return say(piece.text)


# ── OpenAI Chat ──────────────────────────────────────────────────────────────────────────


def _chat(writing: _Writing, turns: Sequence[Turn]) -> list[_Wire]:
    messages: list[_Wire] = []
    for turn in turns:
        if turn.who == "results":
            results = (piece for piece in turn.pieces if isinstance(piece, Result))
            messages += [_chat_result(writing, result) for result in results]
            continue
        calls = [_chat_call(piece) for piece in turn.pieces if isinstance(piece, Call)]
        if calls and signs_calls(writing.losses.model):  # C12
            calls[0]["extra_content"] = {"google": {"thought_signature": UNSIGNED}}
        said = [piece for piece in turn.pieces if isinstance(piece, (Text, Medium))]
        message: _Wire = {"role": turn.who, "content": _chat_content(writing, said, turn.who)}
        if calls:
            message["tool_calls"] = calls
        messages.append(message)
    return messages


def _chat_content(writing: _Writing, said: Sequence[Text | Medium], who: str) -> Any:
    def say(text: str) -> _Wire:
        return {"type": "text", "text": text}

    if who != "user":
        said = [writing.none(p, "a reply") if isinstance(p, Medium) else p for p in said]
    if all(isinstance(piece, Text) for piece in said) and len(said) < 2:
        return next(iter(_texts(said)), None)
    return [
        say(piece.text) if isinstance(piece, Text) else writing.medium(piece, say) for piece in said
    ]


def _chat_call(call: Call) -> _Wire:
    if call.is_free_text:
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chat_result(writing: _Writing, result: Result) -> _Wire:
    texts = writing.texts(writing.failed(result))
    parts = [{"type": "text", "text": text} for text in texts]
    content = parts if len(parts) > 1 else "".join(texts)
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


# ── OpenAI Responses ─────────────────────────────────────────────────────────────────────


def _responses(writing: _Writing, turns: Sequence[Turn]) -> list[_Wire]:
    items: list[_Wire] = []
    for turn in turns:
        if turn.who == "assistant":
            items += _responses_reply(writing, turn)
        elif turn.who == "results":
            results = (piece for piece in turn.pieces if isinstance(piece, Result))
            items += [_responses_output(writing, result) for result in results]
        else:
            said = [piece for piece in turn.pieces if isinstance(piece, (Text, Medium))]
            role = "developer" if turn.who == "system" else "user"
            items.append({"role": role, "content": _responses_content(writing, said)})
    return items


def _responses_reply(writing: _Writing, turn: Turn) -> list[_Wire]:
    """The items of one reply: each run of texts a message, each call by itself."""
    items: list[_Wire] = []
    for piece in turn.pieces:
        if isinstance(piece, Call):
            items.append(_responses_call(piece))
            continue
        if isinstance(piece, Medium):
            piece = writing.none(piece, "a reply")
        if isinstance(piece, Text):
            part = {"type": "output_text", "text": piece.text, "annotations": []}
            if items and "content" in items[-1]:
                items[-1]["content"].append(part)
            else:
                items.append({"type": "message", "role": "assistant", "content": [part]})
    return items


def _responses_call(call: Call) -> _Wire:
    kind, held = (
        ("custom_tool_call", "input") if call.is_free_text else ("function_call", "arguments")
    )
    return {"type": kind, "call_id": call.id, "name": call.name, held: call.arguments}


def _responses_output(writing: _Writing, result: Result) -> _Wire:
    kind = "custom_tool_call_output" if result.is_free_text else "function_call_output"
    content = writing.failed(result)
    output = _responses_content(writing, content) if content else ""
    return {"type": kind, "call_id": result.call_id, "output": output}


def _responses_content(writing: _Writing, said: Sequence[Text | Medium]) -> Any:
    def say(text: str) -> _Wire:
        return {"type": "input_text", "text": text}

    if len(said) == 1 and isinstance(said[0], Text):
        return said[0].text
    return [
        say(piece.text) if isinstance(piece, Text) else writing.medium(piece, say) for piece in said
    ]


# ── Gemini ───────────────────────────────────────────────────────────────────────────────


def _gemini(writing: _Writing, turns: Sequence[Turn]) -> list[_Wire]:
    contents: list[_Wire] = []
    for turn in turns:
        if turn.who == "system":
            turn = writing.system(turn)
        role = "model" if turn.who == "assistant" else "user"
        parts = [_gemini_part(writing, piece) for piece in turn.pieces]
        parts = [part for part in parts if part != {"text": ""}]
        if not parts and turn.who == "user":
            parts = [{"text": EMPTY}]
        if contents and contents[-1]["role"] == role == "model":  # calls follow the user (G4)
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    for content in contents:
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        if first is not None:
            first["thoughtSignature"] = UNSIGNED
    return contents


def _gemini_part(writing: _Writing, piece: Piece) -> _Wire:
    def say(text: str) -> _Wire:
        return {"text": text}

    match piece:
        case Call():
            args = dict(writing.arguments(piece))
            return {"functionCall": {"id": piece.id, "name": piece.name, "args": args}}
        case Result():
            return _gemini_response(writing, piece)
        case Medium():
            return writing.medium(piece, say)
    return say(piece.text)


def _gemini_response(writing: _Writing, result: Result) -> _Wire:
    """A response holds one text; what follows stands in its parts, text as a plain file.

    It has no parts before Gemini 3.
    """

    def say(text: str) -> _Wire:
        data = b64encode(text.encode("utf-8", "surrogatepass")).decode()
        return {"inlineData": {"mimeType": "text/plain", "data": data}}

    content = list(result.content)
    if signs_no_calls(writing.losses.model):
        content = [Text("\n".join(writing.texts(content)))]
    first = content[0] if content else None
    text = first.text if isinstance(first, Text) else ""
    rest = content[1:] if isinstance(first, Text) else content
    response = {"error" if result.is_error else "output": text}
    body: _Wire = {"id": result.call_id, "name": result.name, "response": response}
    if rest:
        body["parts"] = [
            say(item.text) if isinstance(item, Text) else writing.medium(item, say) for item in rest
        ]
    return {"functionResponse": body}


_WRITERS: Mapping[str, Callable[[_Writing, Sequence[Turn]], list[_Wire]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
