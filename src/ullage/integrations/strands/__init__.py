"""Strands: a plugin that keeps an agent within its window.

    agent = Agent(model, tools=tools, plugins=[UllageStrandsPlugin()], session_manager=manager,
                  conversation_manager=NullConversationManager(), context_manager=False)

Needs the extra ``strands``.

    _plugin    what stands around each model call, and the recall tools
    _messages  Converse messages, as Strands keeps them, as ullage's values, and back
"""

from __future__ import annotations

from ullage.integrations._needs import needs

with needs("strands"):
    from ullage.integrations.strands._messages import HOST
    from ullage.integrations.strands._plugin import UllageStrandsPlugin

__all__ = ["HOST", "UllageStrandsPlugin"]
