"""The rules of Gemini generateContent, G0 to G8, G11 and G12 (`provider-rules` §1.D).

Fields are read in both spellings: the wire's (functionCall) and the SDK's (function_call). A
string, or a part that stands alone, is a content, as the SDK takes it.

What is left to the provider: whether a model asks for signatures at all. So G7 holds the
steps of the current turn against one another: where one step is signed, all must be. Of a
request whose ``model`` is Gemini 3 or later a signature is asked of every step; of an earlier one
none is asked.
"""

from __future__ import annotations

import re
from typing import Any

from ullage.core.history.pairing import At
from ullage.core.on_demand import cached_by_text
from ullage.wires.gemini.blocks import KNOWN, PARTS, ROLES
from ullage.wires.gemini.models import signs_calls, signs_no_calls
from ullage.wires.rules.problem import Check, JsonObject, items_of, kind_of

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}\Z").match
_NOT_BESIDE_A_CACHE = ("systemInstruction", "tools", "toolConfig")


class GeminiCheck(Check):
    """One pass over the contents.

    The state: which call each response answers; the calls of the content before, and its role; and
    the steps of the current turn, each as (where its first call stands, whether it is signed), and
    where a later call of a step is signed too. Earlier turns are not validated.
    """

    key = "contents"
    holds = ("parts",)
    asks_one = ("G11", "at least one content is asked for")

    def __init__(self, head: JsonObject | None = None) -> None:
        super().__init__(head)
        self._role: str | None = None
        self._names: dict[At, str] = {}
        self._open_calls: list[At] = []
        self._steps: list[tuple[str, bool]] = []
        self._oversigned: list[str] = []
        self._model = self.head.get("model")

    @classmethod
    def listed(cls, history: Any) -> Any:
        """See `Check.listed`: the SDK takes a content that stands alone."""
        if history is None or isinstance(history, (list, tuple)):
            return history
        return [history]

    def _judge(self, message: Any, at: int, path: str) -> None:
        role, parts = opened(message)
        if type(role) is not str or role not in ROLES:
            self.add("G1", f"{path}.role", "no such role in this format")
            role = "user"  # for every other rule, so that one mistake is reported once
        if not parts:
            self.add("G2", f"{path}.parts", "a content has at least one part")
        for index, part in enumerate(parts):
            self._part(part, role, f"{path}.parts[{index}]")
        self.pairs.begin_message(is_model=role == "model")
        calls: dict[At, JsonObject] = {}
        responses: dict[At, JsonObject] = {}
        for index, part in enumerate(parts):
            if part.get("functionCall") is not None:
                calls[at, index] = part
            if part.get("functionResponse") is not None:
                responses[at, index] = part
        self._responses(responses, path)
        if role == "model":
            self._calls(calls, path)
        elif not responses:
            self._steps = []
            self._oversigned = []
        self._role = role

    def _end(self) -> None:
        """G3, G7 and G11: what is open where the contents end."""
        if self._open_calls:
            path = f"contents[{self._open_calls[0][0]}]"
            self.add("G3", path, "the calls of this step have no responses")
        elif self._role == "model":
            path = f"contents[{len(self.messages) - 1}]"
            self.add("G11", path, "the last content is the model's")
        if signs_no_calls(self._model):
            return
        for path in self._oversigned:
            self.add(
                "G7", path, "only the first call of a step carries a signature"
            )
        if signs_calls(self._model) or any(
            signed for _, signed in self._steps
        ):
            for path in self.unsigned_steps():
                self.add(
                    "G7", path, "the first call of this step has no signature"
                )

    def unsigned_steps(self) -> list[str]:
        """The steps of the current turn without a signature, of a model that may sign calls."""
        if signs_no_calls(self._model):
            return []
        return [path for path, signed in self._steps if not signed]

    def _request(self, head: JsonObject) -> None:
        """G12."""
        config = head.get("config")
        if type(config) is not dict:
            config = {}
        settings = _camel({**head, **config})
        if not settings.get("cachedContent"):
            return
        for name in _NOT_BESIDE_A_CACHE:
            if settings.get(name):
                self.add(
                    "G12", name, f"{name} and cachedContent exclude each other"
                )

    # -- within a content -----------------------------------------------------------------

    def _part(self, part: JsonObject, role: str, path: str) -> None:
        if _NO_OBJECT in part:
            kind = kind_of(part[_NO_OBJECT])
            self.add("G0", path, f"a part is an object, and it is {kind}")
            return
        data = [
            name for name in part if name in PARTS and part[name] is not None
        ]
        unknown = part.keys() - KNOWN
        if not data and unknown:
            return  # a part from the future
        if len(data) != 1:
            self.add(
                "G2",
                path,
                f"one field with data is asked for, here are {len(data)}",
            )
            return
        self.unknown("G0", sorted(unknown), path)
        signature = part.get("thoughtSignature")
        if isinstance(signature, str) and not _BASE64(signature):
            self.add("G0", path, "a signature is base64, and this one is not")
        kind = data[0]
        self._data(part, kind, path)
        if role not in PARTS[kind].roles:
            self.add(
                "G1", path, f"a {kind} does not stand in a content of {role}"
            )

    def _data(self, part: JsonObject, kind: str, path: str) -> None:
        """G0: the data of a part has the type and the fields of its kind."""
        if kind == "text":
            self._text(part, path)
            return
        body = part[kind]
        if type(body) is not dict:
            self.add(
                "G0", path, f"{kind} is an object, and it is {kind_of(body)}"
            )
            return
        fields = _camel(body)
        row = PARTS[kind]
        self.block("G0", fields, row, path)
        if "name" in row.needs and fields.get("name") == "":
            self.add("G0", path, f"{kind} names its function")
        if kind != "functionCall":
            return
        args = fields.get("args", {})
        if type(args) is not dict:
            self.add(
                "G0", path, f"args is an object, and it is {kind_of(args)}"
            )

    def _text(self, part: JsonObject, path: str) -> None:
        text = part["text"]
        if not isinstance(text, str):
            self.add(
                "G0", path, f"text is a string, and it is {kind_of(text)}"
            )
        elif not text and not part.get("thoughtSignature"):
            self.add("G2", path, "text must not be empty")

    # -- between contents -----------------------------------------------------------------

    def _responses(self, responses: dict[At, JsonObject], path: str) -> None:
        """G3, G5, G6: the responses here against the calls of the content before."""
        calls = self._open_calls
        self._open_calls = []
        bodies = []
        for at, part in responses.items():
            bodies.append((at, _body(part, "functionResponse")))
        # Those with an id go first, so that one without takes no call that another names.
        bodies.sort(key=lambda placed: not placed[1].get("id"))
        fits = [self._fits(at, body) for at, body in bodies]
        if responses and not calls:
            self.add(
                "G5",
                path,
                "these responses do not follow the content of their call",
            )
        elif len(responses) != len(calls):
            self.add(
                "G3", path, f"{len(responses)} responses to {len(calls)} calls"
            )
        elif not all(fits):
            self.add("G6", path, "a response fits none of the calls before it")

    def _fits(self, at: At, body: JsonObject) -> bool:
        """Whether a response answers a call of the content before, under its name."""
        name = str(body.get("name") or "")
        call = self.pairs.add_result(at, str(body.get("id") or ""), name)
        if call is None or call[0] != at[0] - 1:
            return False
        return self._names[call] == name

    def _calls(self, calls: dict[At, JsonObject], path: str) -> None:
        """G4 and G7: the calls here against what stands before them."""
        if not calls:
            return
        if self._role not in ("user", "function"):
            self.add(
                "G4",
                path,
                "no user content stands directly before these calls",
            )
        head, *siblings = calls.values()
        self._steps.append((path, _is_signed(head)))
        if any(_is_signed(part) for part in siblings):
            self._oversigned.append(path)
        for at, part in calls.items():
            body = _body(part, "functionCall")
            name = str(body.get("name") or "")
            self._names[at] = name
            self.pairs.add_call(at, str(body.get("id") or ""), name)
        self._open_calls = list(calls)


# -- reading ------------------------------------------------------------------------------

_NO_OBJECT = ""
"""The name under which a part that is no object is passed on."""


def opened(message: Any) -> tuple[Any, list[JsonObject]]:
    """Role and parts of a content, or of what the SDK takes for one, in the wire's spelling."""
    if isinstance(message, str):
        message = [message]
    if isinstance(message, list):
        return "user", [_part_of(part) for part in message]
    if type(message) is not dict:
        return None, []
    if "parts" not in message and "role" not in message:
        part = _camel(message)
        is_call = part.get("functionCall") is not None
        return "model" if is_call else "user", [part]
    role = message.get("role")
    if role is None:
        role = "user"
    return role, [_camel(part) for part in items_of(message.get("parts"))]


def _part_of(raw: Any) -> JsonObject:
    """A part of a list that stands for a content, where a text may stand bare."""
    return {"text": raw} if isinstance(raw, str) else _camel(raw)


def _camel(thing: Any) -> JsonObject:
    """The fields of an object in the wire's spelling; of two spellings the one that holds more."""
    if type(thing) is not dict:
        return {_NO_OBJECT: thing}
    fields: JsonObject = {}
    for key, value in thing.items():
        name = _camel_name(str(key))
        if value is not None or name not in fields:
            fields[name] = value
    return fields


@cached_by_text(256)
def _camel_name(key: str) -> str:
    return re.sub("_([a-z])", lambda match: match[1].upper(), key)


def _body(part: JsonObject, name: str) -> JsonObject:
    """The fields of a call or response; none if it is no object."""
    return part[name] if type(part[name]) is dict else {}


def _is_signed(part: JsonObject) -> bool:
    """Whether a part has a signature: base64, or bytes as the SDK's own types hold it."""
    signature = part.get("thoughtSignature")
    if isinstance(signature, str):
        return bool(signature.rstrip("="))
    return isinstance(signature, bytes) and bool(signature)


CHECK = GeminiCheck
