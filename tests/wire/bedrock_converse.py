"""Amazon Bedrock Converse: every block."""

from tests.wire import PDF, PNG, SEALED, WAV, Example


def _user(*blocks):
    return {"role": "user", "content": list(blocks)}


def _model(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def _text(text):
    return {"text": text}


def _call(number, **more):
    given = {"path": f"café {number}.md"}
    return {
        "toolUse": {
            "toolUseId": f"tooluse_{number}",
            "name": "read_file",
            "input": given,
            **more,
        }
    }


def _result(number, *content, **more):
    return {
        "toolResult": {
            "toolUseId": f"tooluse_{number}",
            "content": list(content),
            **more,
        }
    }


def _inside(number, *blocks):
    return [_model(_call(number)), _user(_result(number, *blocks))]


def _said(*blocks):
    """What the model says when it is asked for it."""
    return [_user(_text("And then?")), _model(*blocks)]


def _given(*blocks):
    """What the user hands over, and an answer."""
    return [_user(_text("See this."), *blocks), _model(_text("I see."))]


MP4 = "AAAAGGZ0eXBtcDQyAAAAAG1wNDFpc29t"
_IMAGE = {"image": {"format": "png", "source": {"bytes": PNG}}}
_STORED = {
    "image": {
        "format": "jpeg",
        "source": {
            "s3Location": {
                "uri": "s3://a-bucket/a.jpg",
                "bucketOwner": "123456789012",
            }
        },
    }
}
_PDF = {
    "document": {
        "format": "pdf",
        "name": "A page",
        "source": {"bytes": PDF},
        "context": "found on the desk",
        "citations": {"enabled": True},
    }
}
_PLAIN = {
    "document": {
        "format": "txt",
        "name": "Plain",
        "source": {"text": "All is well."},
    }
}
_BLOCKS = {
    "document": {
        "name": "Two",
        "source": {"content": [_text("First."), _text("Second.")]},
    }
}
_VIDEO = {"video": {"format": "mp4", "source": {"bytes": MP4}}}
_SEARCH = {
    "searchResult": {
        "source": "https://example.com/well",
        "title": "Well",
        "content": [_text("All is well.")],
        "citations": {"enabled": True},
    }
}
_GUARDED = {
    "guardContent": {
        "text": {"text": "All is well.", "qualifiers": ["grounding_source"]}
    }
}
_SAID_GUARDED = {"guardContent": {"text": {"text": "Is all well?"}}}
_CITED = {
    "citationsContent": {
        "content": [_text("It is well with all.")],
        "citations": [
            {
                "title": "Plain",
                "sourceContent": [_text("All is well.")],
                "location": {
                    "documentChar": {"documentIndex": 0, "start": 0, "end": 12}
                },
            }
        ],
    }
}
_GROUNDING = {"toolUseId": "tooluse_g", "type": "server_tool_use"}
_TOOL = {"tool": {"type": "tool_reference", "name": "read_file"}}
POINT = {"cachePoint": {"type": "default"}}

EXAMPLES = (
    Example(
        "text", "Text", [_user(_text("Is naïve 猫 well? 🙂"), POINT)], "user"
    ),
    Example(
        "reasoningContent",
        "Reasoning",
        [
            _model(
                {
                    "reasoningContent": {
                        "reasoningText": {"text": "Hm.", "signature": "c2ln"}
                    }
                },
                _text("Yes."),
            ),
        ],
    ),
    Example(
        "reasoningContent",
        "Reasoning",
        _said(
            {"reasoningContent": {"redactedContent": SEALED}}, _text("Yes.")
        ),
        note="redacted",
    ),
    Example("image", "Media", _given(_IMAGE, _STORED), "user"),
    Example(
        "audio",
        "Media",
        _given({"audio": {"format": "wav", "source": {"bytes": WAV}}}),
        "user",
    ),
    Example("video", "Media", _given(_VIDEO), "user"),
    Example(
        "document", "Media", _given(_PDF), "user", note="bytes, or in a bucket"
    ),
    Example(
        "document",
        "Passage",
        _given(_PLAIN),
        "user",
        note="text as its source",
    ),
    Example(
        "document",
        "Passage",
        _given(_BLOCKS),
        "user",
        note="texts as its source",
    ),
    Example(
        "document",
        "BlockFrame",
        _given(_PLAIN),
        "user",
        note="what is beside its text",
    ),
    Example("searchResult", "Passage", _given(_SEARCH), "user"),
    Example(
        "guardContent",
        "Text",
        _given(_SAID_GUARDED),
        "user",
        note="what the user says",
    ),
    Example(
        "guardContent",
        "Passage",
        _given(_GUARDED),
        "user",
        note="a source to hold the answer against",
    ),
    Example("citationsContent", "Passage", _said(_CITED)),
    Example(
        "toolUse",
        "ToolCall",
        [
            *_said(_text("Two at once."), _call(1), _call(2), POINT),
            _user(
                _result(1, _text("one")),
                _result(2, _text("two"), status="success"),
                POINT,
            ),
        ],
    ),
    Example(
        "toolResult",
        "ToolResult",
        [
            _model(_call(3)),
            _user(
                _result(3, _text("no such file"), status="error"),
                _text("Go on."),
            ),
        ],
        "user",
    ),
    Example(
        "toolResult",
        "ToolResult",
        [_model(_call(4)), _user(_result(4))],
        "user",
        note="without content",
    ),
    Example(
        "text", "Text", _inside(5, _text("a line\n")), "user", inside=True
    ),
    Example(
        "json",
        "Text",
        _inside(6, {"json": {"b": [1, 2], "a": None}}),
        "user",
        inside=True,
    ),
    Example(
        "image",
        "Media",
        _inside(7, _text("See:"), _IMAGE),
        "user",
        inside=True,
    ),
    Example("document", "Media", _inside(8, _PDF), "user", inside=True),
    Example("video", "Media", _inside(9, _VIDEO), "user", inside=True),
    Example(
        "searchResult", "Passage", _inside(10, _SEARCH), "user", inside=True
    ),
    Example(
        "toolUse",
        "Opaque",
        [
            _model(
                {
                    "toolUse": {
                        **_GROUNDING,
                        "name": "nova_grounding",
                        "input": {"q": "well"},
                    }
                },
                {
                    "toolResult": {
                        **_GROUNDING,
                        "type": "nova_grounding_result",
                        "content": [],
                    }
                },
                _text("Found."),
            )
        ],
        note="a server's",
    ),
    Example(
        "toolAddition",
        "Opaque",
        [{"role": "system", "content": [{"toolAddition": _TOOL}]}],
        "system",
    ),
    Example(
        "toolRemoval",
        "Opaque",
        [{"role": "system", "content": [{"toolRemoval": _TOOL}]}],
        "system",
    ),
    Example("text", "Text", [_user(_text("And then?"))], "user"),
)
