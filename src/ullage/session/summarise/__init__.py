"""Models that write summaries: any callable, or a client of an official SDK.

    Session(model, summariser=lambda asked: my_model(asked.system, *asked.texts))
    Session(model, summariser=summarise.anthropic(anthropic.Anthropic(), "claude-haiku-4-5"))
    AsyncSession(model, summariser=summarise.openai(openai.AsyncOpenAI(), "gpt-5-mini"))

What it writes is judged before it is used, and a deterministic summary replaces it
whenever it fails; see `ullage.core.turn.filling`. No SDK is imported here: a client brings its own.
"""

from __future__ import annotations

from ullage.core.values.effects import Reply, Summarise
from ullage.session.summarise._calls import StoredReplies, Summaries
from ullage.session.summarise._summariser import (
    Summariser,
    anthropic,
    gemini,
    of,
    openai,
    read_reply,
)

__all__ = ["Reply", "StoredReplies", "Summaries", "Summarise", "Summariser"]
__all__ += ["of", "read_reply"]
# a function for each of the official SDKs
__all__ += ["anthropic"]
__all__ += ["gemini"]
__all__ += ["openai"]
