"""LangChain, LangGraph and Deep Agents: a middleware that keeps an agent within its window.

    agent = create_agent(model, tools, middleware=[UllageMiddleware()], checkpointer=saver)

Needs the extra ``langchain``.

    _middleware  the hook around each model call, and the recall tools
    _messages    LangChain's messages as ullage's values, and back
"""

from __future__ import annotations

from ullage.integrations._needs import needs

with needs("langchain"):
    from ullage.integrations.langchain._messages import HOST
    from ullage.integrations.langchain._middleware import UllageMiddleware

__all__ = ["HOST", "UllageMiddleware"]
