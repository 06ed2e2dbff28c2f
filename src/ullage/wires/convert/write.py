"""Into a wire: turns as the messages of the target."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from ullage.values.messages import Text
from ullage.wires import FORMATS
from ullage.wires.convert.media import block_of
from ullage.wires.convert.names import under_names
from ullage.wires.convert.read import FAILED
from ullage.wires.convert.turns import Call, Conversion, Medium, Piece, Result, Turn
from ullage.wires.models import signs_calls, signs_no_calls, takes_no_system_messages
from ullage.wires.repair.base import EMPTY

_Wire: TypeAlias = dict[str, Any]
_Say: TypeAlias = Callable[[str], _Wire]

_UNSIGNED = "skip_thought_signature_validator"
"""What Gemini takes for the signature of a call that it did not make (G10)."""


def write(turns: Sequence[Turn], conversion: Conversion, names: Mapping[str, str]) -> list[_Wire]:
    """The turns as messages of the target, tools called by ``names``."""
    target = conversion.target
    messages = list(_WRITERS[target](conversion, under_names(turns, conversion, names)))
    if messages and messages[0].get("role") in _NOT_FIRST.get(target, ()):
        return [beginning(target), *messages]
    return messages


def beginning(target: str) -> Any:
    """What stands for the user where the target wants one to speak first (A1, G4)."""
    return FORMATS[target].user(_NO_USER)


_NO_USER = "[ullage: no message of the user stood here]"
_NOT_FIRST = {"anthropic": ("assistant",), "gemini": ("model",)}


# ── what the writers share ───────────────────────────────────────────────────────────────


def _blocks(conversion: Conversion, pieces: Sequence[Piece], say: _Say) -> list[_Wire]:
    """The blocks of texts and media, a text in place of a medium that has none."""
    made = (
        piece.text if isinstance(piece, Text) else block_of(piece, conversion)
        for piece in pieces
        if isinstance(piece, (Text, Medium))
    )
    return [say(block) if isinstance(block, str) else block for block in made]


def _texts(conversion: Conversion, pieces: Sequence[Piece], place: str) -> list[Text]:
    """What is said in texts, where no medium may stand at all."""
    remedy = "Put it into a message of the user."
    said = []
    for piece in pieces:
        if isinstance(piece, Medium):
            what = f"{'an ' if piece.kind == 'image' else ''}{piece.kind} in {place}"
            piece = Text(conversion.lose(piece.where, what, remedy))
        said += [piece] if isinstance(piece, Text) else []
    return said


def _arguments(conversion: Conversion, call: Call) -> _Wire:
    """The arguments as the object that the target wants."""
    if call.value is not None:
        return dict(call.value)
    remedy = "Give its arguments as an object."
    conversion.lose(call.where, "a call whose arguments are no JSON object", remedy)
    return {"input": call.arguments}


def _failed(result: Result) -> tuple[Text | Medium, ...]:
    """The content of a result, with words for an error where there is no flag."""
    if not result.is_error:
        return result.content
    first, *rest = result.content or (Text(""),)
    if isinstance(first, Text):
        return (Text(FAILED + first.text), *rest)
    return (Text(FAILED), first, *rest)


def _system(conversion: Conversion, turn: Turn) -> Turn:
    """A system message in mid-history, for a target that has none."""
    remedy = "Put it into the system text."
    note = conversion.lose(turn.where, "a system message in the middle", remedy)
    return Turn("user", (Text(note), *turn.pieces), turn.where)


def _typed(kind: str) -> _Say:
    return lambda text: {"type": kind, "text": text}


_text, _input_text = _typed("text"), _typed("input_text")
_REPLY, _RESULT = "a reply", "a tool's result"


def _alone(content: Sequence[Text | Medium]) -> str | None:
    """The text that is all there is, to be given as a string; None if there is more."""
    return content[0].text if len(content) == 1 and isinstance(content[0], Text) else None


# ── Anthropic ────────────────────────────────────────────────────────────────────────────


def _anthropic(conversion: Conversion, turns: Sequence[Turn]) -> Iterator[_Wire]:
    before = ""
    takes_none = takes_no_system_messages(conversion.model)
    for turn, following in zip_longest(turns, turns[1:]):
        stands = before == "user" and (following is None or following.who == "assistant")
        if turn.who == "system" and (takes_none or not stands):
            turn = _system(conversion, turn)
        blocks = [_anthropic_block(conversion, piece, turn) for piece in turn.pieces]
        content = [block for block in blocks if block != _text("")]
        if not content and turn.who == "user":
            content = [_text(EMPTY)]
        if content:
            before = "user" if turn.who == "results" else turn.who
            yield {"role": before, "content": content}


def _anthropic_block(conversion: Conversion, piece: Piece, turn: Turn) -> _Wire:
    match piece:
        case Call():
            given = _arguments(conversion, piece)
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": given}
        case Result():
            block: _Wire = {"type": "tool_result", "tool_use_id": piece.call_id}
            content = _blocks(conversion, piece.content, _text)
            alone = len(content) == 1 and content[0]["type"] == "text"
            if content:
                block["content"] = content[0]["text"] if alone else content
            return {**block, "is_error": True} if piece.is_error else block
        case Medium() if turn.who == "assistant":
            return _text(_texts(conversion, (piece,), _REPLY)[0].text)
        case Medium():
            return _blocks(conversion, (piece,), _text)[0]
    if piece.text.isspace():
        return _text(conversion.lose(turn.where, "text of nothing but spaces"))
    return _text(piece.text)


# ── OpenAI Chat ──────────────────────────────────────────────────────────────────────────


def _chat(conversion: Conversion, turns: Sequence[Turn]) -> Iterator[_Wire]:
    for turn in turns:
        results = [piece for piece in turn.pieces if isinstance(piece, Result)]
        yield from (_chat_result(conversion, result) for result in results)
        if results:
            continue
        calls = [_chat_call(piece) for piece in turn.pieces if isinstance(piece, Call)]
        if calls and signs_calls(conversion.model):  # C12
            calls[0]["extra_content"] = {"google": {"thought_signature": _UNSIGNED}}
        said: Sequence[Any] = [piece for piece in turn.pieces if not isinstance(piece, Call)]
        said = said if turn.who == "user" else _texts(conversion, said, _REPLY)
        text = _alone(said)
        content = _blocks(conversion, said, _text) if said and text is None else text
        message = {"role": turn.who, "content": content}
        yield {**message, "tool_calls": calls} if calls else message


def _called(call: Call) -> _Wire:
    return {"name": call.name, "input" if call.is_free_text else "arguments": call.arguments}


def _chat_call(call: Call) -> _Wire:
    kind = "custom" if call.is_free_text else "function"
    return {"id": call.id, "type": kind, kind: _called(call)}


def _chat_result(conversion: Conversion, result: Result) -> _Wire:
    texts = _texts(conversion, _failed(result), _RESULT)
    content = _blocks(conversion, texts, _text) if len(texts) > 1 else _alone(texts) or ""
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


# ── OpenAI Responses ─────────────────────────────────────────────────────────────────────


def _responses(conversion: Conversion, turns: Sequence[Turn]) -> Iterator[_Wire]:
    for turn in turns:
        match turn.who:
            case "assistant":
                yield from _responses_reply(conversion, turn)
            case "results":
                results = (piece for piece in turn.pieces if isinstance(piece, Result))
                yield from (_responses_output(conversion, result) for result in results)
            case who:
                role = "developer" if who == "system" else "user"
                yield {"role": role, "content": _responses_content(conversion, turn.pieces)}


def _responses_reply(conversion: Conversion, turn: Turn) -> list[_Wire]:
    """The items of one reply: each run of texts a message, each call by itself."""
    items: list[_Wire] = []
    for piece in turn.pieces:
        if isinstance(piece, Call):
            kind = "custom_tool_call" if piece.is_free_text else "function_call"
            items.append({"type": kind, "call_id": piece.id, **_called(piece)})
            continue
        for said in _texts(conversion, (piece,), _REPLY):
            part = {"type": "output_text", "text": said.text, "annotations": []}
            if items and "content" in items[-1]:
                items[-1]["content"].append(part)
            else:
                items.append({"type": "message", "role": "assistant", "content": [part]})
    return items


def _responses_output(conversion: Conversion, result: Result) -> _Wire:
    kind = "custom_tool_call_output" if result.is_free_text else "function_call_output"
    content = _failed(result)
    output = _responses_content(conversion, content) if content else ""
    return {"type": kind, "call_id": result.call_id, "output": output}


def _responses_content(conversion: Conversion, said: Sequence[Any]) -> Any:
    text = _alone(said)
    return _blocks(conversion, said, _input_text) if text is None else text


# ── Gemini ───────────────────────────────────────────────────────────────────────────────


def _gemini(conversion: Conversion, turns: Sequence[Turn]) -> list[_Wire]:
    contents: list[_Wire] = []
    for turn in turns:
        if turn.who == "system":
            turn = _system(conversion, turn)
        role = "model" if turn.who == "assistant" else "user"
        parts = [_gemini_part(conversion, piece) for piece in turn.pieces]
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
            first["thoughtSignature"] = _UNSIGNED
    return contents


def _gemini_part(conversion: Conversion, piece: Piece) -> _Wire:
    match piece:
        case Call():
            args = _arguments(conversion, piece)
            return {"functionCall": {"id": piece.id, "name": piece.name, "args": args}}
        case Result():
            return _gemini_response(conversion, piece)
    return _blocks(conversion, (piece,), lambda text: {"text": text})[0]


def _gemini_response(conversion: Conversion, result: Result) -> _Wire:
    """A response holds one text; what follows stands in its parts, text as a plain file.

    It has no parts before Gemini 3.
    """
    content: Sequence[Text | Medium] = result.content
    if signs_no_calls(conversion.model):
        texts = _texts(conversion, content, _RESULT)
        content = [Text("\n".join(text.text for text in texts))]
    first = content[0] if content else None
    text = first.text if isinstance(first, Text) else ""
    response = {"error" if result.is_error else "output": text}
    body: _Wire = {"id": result.call_id, "name": result.name, "response": response}
    if rest := content[1:] if isinstance(first, Text) else content:
        body["parts"] = _blocks(conversion, rest, _plain_file)
    return {"functionResponse": body}


def _plain_file(text: str) -> _Wire:
    data = b64encode(text.encode("utf-8", "surrogatepass")).decode()
    return {"inlineData": {"mimeType": "text/plain", "data": data}}


_WRITERS: Mapping[str, Callable[[Conversion, Sequence[Turn]], Iterator[_Wire] | list[_Wire]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
