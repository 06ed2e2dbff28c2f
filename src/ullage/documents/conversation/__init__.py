"""A conversation that is kept in a database and loaded from its newest summary on.

    kept = Conversation(ConversationStore("chat.db"), "session-1", "gpt-4.1", store="outputs.db")
    kept.append([{"role": "user", "content": "Fix the loader."}])
    reply = client.chat.completions.create(**kept.fit({"model": "gpt-4.1"}))
    kept.append([reply.choices[0].message])

A session fits what is loaded. Where its policy, or the guard, finds that it is time to stand for
messages by less, the summary is made again of the whole history, the compacted messages too, and
the boundary, the summary and the marks are written in one transaction. What is loaded begins
there, so that there is one summary however often it is compacted.

    ┌ history ─────────────────────────────┐
    │ compacted, kept  │ from the boundary │      the summary is made of the left side
    └──────────────────┴───────────────────┘
             summary + │ from the boundary │      what is loaded, fitted and sent
                       └───────────────────┘

`AsyncConversation` is the same for an event loop. There a model is asked for the summary beside
the turns, before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ullage.core.on_demand import names

__all__ = [
    "AsyncConversation",
    "CompactionPart",
    "CompactionResult",
    "Conversation",
    "ConversationStore",
    "PostgresConversations",
    "StoredMessage",
    "conversations_at",
]

if TYPE_CHECKING:
    from ullage.documents.conversation._async import AsyncConversation
    from ullage.documents.conversation._core import (
        CompactionResult,
        Conversation,
    )
    from ullage.documents.conversation.opening import conversations_at
    from ullage.documents.conversation.postgres import PostgresConversations
    from ullage.documents.conversation.store import (
        CompactionPart,
        ConversationStore,
        StoredMessage,
    )
else:
    __getattr__, __dir__ = names(
        __name__,
        {
            "ullage.documents.conversation._async": "AsyncConversation",
            "ullage.documents.conversation._core": "CompactionResult Conversation",
            "ullage.documents.conversation.opening": "conversations_at",
            "ullage.documents.conversation.postgres": "PostgresConversations",
            "ullage.documents.conversation.store": "CompactionPart ConversationStore StoredMessage",
        },
    )
