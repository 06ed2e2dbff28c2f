"""Gemini generateContent: every part of `provider-rules` §1.D."""

from tests.wire import PDF, PNG, WAV, Example


def _user(*parts):
    return {"parts": list(parts), "role": "user"}


def _model(*parts):
    return {"parts": list(parts), "role": "model"}


def _call(id, **more):
    known = {"id": id} if id else {}
    return {
        "functionCall": {
            **known,
            "args": {"path": "café.md"},
            "name": "read_file",
        },
        **more,
    }


def _response(id, response, **more):
    known = {"id": id} if id else {}
    return {
        "functionResponse": {
            **known,
            "name": "read_file",
            "response": response,
            **more,
        }
    }


_IMAGE = {"inlineData": {"data": PNG, "mimeType": "image/png"}}
_GO_ON = _user({"text": "And then?"})
_SIGNED = {"thoughtSignature": "c2lnbmVkIGJ5IG5vYm9keQ=="}


def _server(type, part, after):
    return Example(type, "Opaque", [_GO_ON, _model(part, *after)])


_SEARCH = {"id": "st_1", "toolType": "GOOGLE_SEARCH_WEB"}

EXAMPLES = (
    Example(
        "text",
        "Text",
        [_user({"text": "Is naïve 猫 well? 🙂"}, {"text": "Tell me."})],
        "user",
    ),
    Example(
        "text",
        "Text",
        [_model({"text": "Yes.", **_SIGNED})],
        note="its signature stays on it",
    ),
    Example(
        "inlineData",
        "Media",
        [
            _user(
                _IMAGE,
                {"inlineData": {"data": WAV, "mimeType": "audio/wav"}},
                {"inlineData": {"data": PDF, "mimeType": "application/pdf"}},
            )
        ],
        "user",
    ),
    Example(
        "fileData",
        "Media",
        [
            _user(
                {
                    "fileData": {
                        "fileUri": "https://example.com/a.mp4",
                        "mimeType": "video/mp4",
                    },
                    "videoMetadata": {"endOffset": "10s", "fps": 1.0},
                },
            )
        ],
        "user",
    ),
    Example(
        "text",
        "Reasoning",
        [_model({"text": "Hm.", "thought": True}, {"text": "Yes."})],
        note="with thought",
    ),
    Example(
        "functionCall",
        "ToolCall",
        [
            _GO_ON,
            _model(_call("call_1", **_SIGNED), _call("call_2")),
            _user(
                _response("call_1", {"output": "one"}),
                _response("call_2", {"result": [1, 2]}),
            ),
        ],
    ),
    Example(
        "functionCall",
        "ToolCall",
        [
            _model(_call(None, **_SIGNED), _call(None)),
            _user(
                _response(None, {"error": "no such file"}),
                _response(None, {"a": 1, "b": 2}),
            ),
        ],
        note="without an id",
    ),
    Example(
        "functionResponse",
        "ToolResult",
        [
            _model(_call("call_3", **_SIGNED)),
            _user(_response("call_3", {"output": "See:"}, parts=[_IMAGE])),
        ],
        "user",
    ),
    Example(
        "inlineData",
        "Media",
        [
            _model(_call("call_4", **_SIGNED)),
            _user(_response("call_4", {"output": "See:"}, parts=[_IMAGE])),
        ],
        "user",
        inside=True,
    ),
    _server(
        "executableCode",
        {"executableCode": {"code": "print(1)", "language": "PYTHON"}},
        [
            {
                "codeExecutionResult": {
                    "outcome": "OUTCOME_OK",
                    "output": "1\n",
                }
            },
            {"text": "One."},
        ],
    ),
    _server(
        "codeExecutionResult",
        {"executableCode": {"code": "print(2)", "language": "PYTHON"}},
        [
            {
                "codeExecutionResult": {
                    "outcome": "OUTCOME_OK",
                    "output": "2\n",
                }
            },
            {"text": "Two."},
        ],
    ),
    _server(
        "toolCall",
        {"toolCall": {**_SEARCH, "args": {"queries": ["well"]}}, **_SIGNED},
        [
            {"toolResponse": {**_SEARCH, "response": {"found": 1}}},
            {"text": "Found."},
        ],
    ),
    _server(
        "toolResponse",
        {"toolCall": {**_SEARCH, "args": {"queries": ["ill"]}}, **_SIGNED},
        [
            {"toolResponse": {**_SEARCH, "response": {"found": 0}}},
            {"text": "Nothing."},
        ],
    ),
    Example("text", "Text", [_GO_ON], "user"),
)
