"""One result, cut before its framework keeps it: for hooks that stand behind each tool.

    shown = await cut_message(session, wire, call, result, tool)

Only where its original can be kept: in a store that outlives the process.
"""

from __future__ import annotations

from typing import Any

from ullage import AsyncSession, Event, Output, Replace
from ullage.documents.services import window_of
from ullage.doors.host import Words, answered_by_user, storable
from ullage.wires import Format


async def cut_message(
    session: AsyncSession,
    wire: Format,
    call: Any,
    result: Any,
    tool: str,
    words: Words | None = None,
) -> Any:
    """What the stages of a policy's first sight leave of a result; its originals are stored.

    Args:
        session: of the conversation: its policy, its tenant, its store.
        wire: the form of the two messages.
        call: the message with the call of the tool.
        result: the message with its result.
        tool: the name of the tool.
        words: the wording of notices; None: with the recall tools of the policy.

    Returns:
        The message with the shorter result; None if it may stay as it is.

    Raises:
        FormatError: the result is none of this wire.
        StoreError: the original cannot be kept.
    """
    settings = session.settings
    words = words or Words(toolset=settings.policy.toolset)
    user_tools = answered_by_user(settings.user_tools)
    builder = window_of(
        [call, result],
        wire,
        words,
        redact=settings.redact,
        user_tools=user_tools,
    )
    outputs = list[Output]()
    events = list[Event]()
    for stage in settings.policy.on_arrival:
        cuts = stage(builder.window)
        for cut in cuts if isinstance(cuts, (list, tuple)) else ():
            edit = storable(cut.edit)
            if isinstance(edit, Replace) and builder.apply(edit) is not None:
                outputs += cut.outputs
                location = f"{tool} result"
                events.append(
                    Event(
                        kind=edit.kind,
                        where=location,
                        why=edit.why,
                        ref=edit.ref,
                    )
                )
    changes = builder.window.changed.get(1)
    if not changes:
        return None
    await session.store.commit(settings.tenant, outputs, ())
    for event in events:
        session.emit(event)
    return wire.edit(result, builder.window.transcript.messages[1], changes)
