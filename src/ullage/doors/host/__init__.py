"""What a door takes of the core: every name that a proxy, an adapter or a loop needs of it.

    from ullage import AsyncSessions
    from ullage.doors.host import adrive, named_tools

A *door* is what a program comes in by: the wrapped client, the proxy, the adapters for frameworks,
the loop, `ullage mcp`. Doors import the public names of ``ullage`` and of its packages
(`ullage.stores`, `ullage.policy`, `ullage.wires`, `ullage.documents`, `ullage.summarise`,
`ullage.core.redaction`), and this module; nothing else of the core. So a door of yours can do what
ours do.

    messages    the values that a host's messages become, and their parts
    forms       reading objects of others, and writing an edit into them
    identity    when two histories are the same
    sessions    what a session gives a door, and closing it
    steps       work that threads and event loops do alike, and what runs it
    tools       whose tools are whose
    models      windows and prices

``docs/extending.md`` has a line for each name, and a door written with them. Each name loads its
module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.on_demand import names

__all__ = [
    "NO_REASONING",
    "RECALL_TOOLS",
    "WHOLE",
    "Actions",
    "AsyncClosing",
    "Block",
    "Closing",
    "Content",
    "Dialect",
    "Find",
    "Media",
    "Message",
    "Number",
    "Opaque",
    "Part",
    "Portable",
    "Reasoning",
    "Route",
    "ServedWindow",
    "Standing",
    "Steps",
    "Text",
    "ToolCall",
    "ToolResult",
    "Unfitted",
    "Words",
    "adrive",
    "answered_by_user",
    "arguments_of",
    "as_json",
    "as_written",
    "cannot_edit",
    "content_at",
    "cost_of",
    "cut_text",
    "differing",
    "digest_of",
    "drive",
    "extend",
    "field",
    "filled",
    "is_made_up",
    "jsonable",
    "list_at",
    "lookup",
    "media_tokens_of",
    "name_of_call",
    "named_tools",
    "number_of",
    "ordered",
    "plain",
    "plain_name",
    "plain_tool_name",
    "pointers",
    "read_part",
    "replaced",
    "root",
    "sealed_bytes",
    "storable",
    "to_its_end",
]

if TYPE_CHECKING:
    from ullage.core.history.canon import digest_of, extend, root
    from ullage.core.history.pairing import is_made_up
    from ullage.core.history.raw import as_json, field
    from ullage.core.history.snapshots import differing
    from ullage.core.tokens.catalog import lookup
    from ullage.core.turn.standing import Standing
    from ullage.core.values.authors import (
        answered_by_user,
        named_tools,
        plain_tool_name,
    )
    from ullage.core.values.carried import Portable
    from ullage.core.values.edits import storable
    from ullage.core.values.effects import Find, Steps
    from ullage.core.values.jsonable import jsonable
    from ullage.core.values.limits import ServedWindow
    from ullage.core.values.messages import (
        WHOLE,
        Content,
        Media,
        Message,
        Opaque,
        Part,
        Reasoning,
        Text,
        ToolCall,
        ToolResult,
    )
    from ullage.core.values.model_names import plain_name
    from ullage.core.values.notices import NO_REASONING, Words, pointers
    from ullage.core.values.numbers import Number, as_written, number_of
    from ullage.core.values.toolset import RECALL_TOOLS
    from ullage.session.closing import AsyncClosing, Closing
    from ullage.session.drivers import Actions, adrive, drive
    from ullage.session.provider.unfitted import Unfitted
    from ullage.session.results import cut_text
    from ullage.session.spend.cost import cost_of
    from ullage.stores.threaded import to_its_end
    from ullage.wires.base import (
        content_at,
        list_at,
        name_of_call,
        ordered,
        plain,
        sealed_bytes,
    )
    from ullage.wires.block import (
        Block,
        arguments_of,
        cannot_edit,
        filled,
        read_part,
        replaced,
    )
    from ullage.wires.hidden_turns.dialect import Dialect
    from ullage.wires.http import Route
    from ullage.wires.unknown_media import media_tokens_of
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage.core.history.canon": "digest_of extend root",
            "ullage.core.history.pairing": "is_made_up",
            "ullage.core.history.snapshots": "differing",
            "ullage.session.closing": "AsyncClosing Closing",
            "ullage.session.drivers": "Actions adrive drive",
            "ullage.session.results": "cut_text",
            "ullage.session.provider.unfitted": "Unfitted",
            "ullage.session.spend.cost": "cost_of",
            "ullage.stores.threaded": "to_its_end",
            "ullage.core.tokens.catalog": "lookup",
            "ullage.core.turn.standing": "Standing",
            "ullage.core.values.authors": "answered_by_user named_tools plain_tool_name",
            "ullage.core.values.carried": "Portable",
            "ullage.core.values.edits": "storable",
            "ullage.core.values.effects": "Find Steps",
            "ullage.core.values.jsonable": "jsonable",
            "ullage.core.values.limits": "ServedWindow",
            "ullage.core.values.messages": "WHOLE Content Media Message Opaque Part Reasoning Text "
            "ToolCall ToolResult",
            "ullage.core.values.model_names": "plain_name",
            "ullage.core.values.notices": "NO_REASONING Words pointers",
            "ullage.core.values.numbers": "Number as_written number_of",
            "ullage.core.values.toolset": "RECALL_TOOLS",
            "ullage.core.history.raw": "as_json field",
            "ullage.wires.base": "content_at list_at name_of_call ordered plain "
            "sealed_bytes",
            "ullage.wires.block": "Block arguments_of cannot_edit filled read_part replaced",
            "ullage.wires.hidden_turns.dialect": "Dialect",
            "ullage.wires.http": "Route",
            "ullage.wires.unknown_media": "media_tokens_of",
        },
    )
