"""`tool-result-continuation.md`: 4,000 characters of a result, and a tool that reads on.

The document's result cache is the history at hand, which holds every result whole, and the
store behind it; its loop, with the calls that do not count, is `ullage.loop`.
"""

from __future__ import annotations

from functools import partial

from ullage.core.contract.policy import Policy
from ullage.core.values.notices import Words
from ullage.core.values.toolset import CONTINUATION, Toolset, ToolSpec
from ullage.documents.presets._settings import DocumentSettings, Positive
from ullage.policy.stages.emergency import emergency
from ullage.policy.stages.shapes import head_chars
from ullage.policy.stages.truncate import Shape, Source, truncate

MAX_TOOL_RESULT_CHARS = 4_000
_MARKER = (
    "[truncated — showing {shown}/{total} chars. Call {prefix}get_continuation with "
    'tool_call_id="{call_id}" to read more]'
)
_NEXT = (
    "[truncated — showing {start}-{stop}/{total} chars. Call {prefix}get_continuation with "
    'tool_call_id="{asked}" and offset={stop} to read more]'
)
_BARE = "[truncated — showing {shown}/{total} chars]"
_UNKNOWN = (
    '{{"error": "No truncated result found for tool_call_id \'{asked}\'", '
    '"remedy": "Copy the tool_call_id from the truncation message."}}'
)
_DESCRIPTION = (
    "Retrieve the next chunk of a truncated tool result. Use when a previous tool result "
    "shows [truncated]."
)


class ContinuationSettings(DocumentSettings, frozen=True):
    """The document's one constant, under its own name.

    Raises:
        ConfigError: it is not a whole number, or under 1.
    """

    MAX_TOOL_RESULT_CHARS: Positive = MAX_TOOL_RESULT_CHARS


_DEFAULTS = ContinuationSettings()


def continuation(settings: ContinuationSettings = _DEFAULTS) -> Policy:
    """The policy of the document.

    Args:
        settings: the document's constant.
    """
    return Policy(
        name="continuation-1",
        on_arrival=(partial(truncate, shape=output_shape(settings)),),
        guard=partial(emergency),
        toolset=_toolset(settings.MAX_TOOL_RESULT_CHARS),
    )


def output_shape(settings: ContinuationSettings = _DEFAULTS) -> Shape:
    """How one result is shown: its first characters, then a marker.

    Args:
        settings: the document's constant.
    """
    limit = settings.MAX_TOOL_RESULT_CHARS
    return partial(head_chars, limit_chars=limit, marker=_MARKER, bare=_BARE)


def truncate_tool_result(
    result: str, tool_call_id: str, settings: ContinuationSettings = _DEFAULTS
) -> str:
    """What the model is shown of a result, as the document's function of this name gives it.

    Args:
        result: what the tool returned.
        tool_call_id: the id of its call.
        settings: the document's.
    """
    words = Words(toolset=_toolset(settings.MAX_TOOL_RESULT_CHARS))
    cut = output_shape(settings)(Source(result, call_id=tool_call_id), words)
    return result if cut is None else cut.text


def _toolset(limit: int) -> Toolset:
    parameters = {
        "type": "object",
        "properties": {
            "tool_call_id": {
                "type": "string",
                "description": "The tool_call_id from the truncation message",
            },
            "offset": {
                "type": "integer",
                "description": f"Character offset to read from (default: {limit})",
            },
        },
        "required": ["tool_call_id"],
    }
    return Toolset(
        tools=(ToolSpec(CONTINUATION, _DESCRIPTION, parameters),),
        offered="always",
        page_chars=limit,
        first_offset=limit,
        next_page=_NEXT,
        unknown=_UNKNOWN,
    )
