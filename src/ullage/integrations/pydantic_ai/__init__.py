"""Pydantic AI: a capability that keeps an agent's model requests within the window.

    agent = Agent("anthropic:claude-opus-4-8", capabilities=[UllageCapability()])

Needs the extra ``pydantic-ai``.

    _capability  the hooks around each model request, and the recall tools
    _messages    Pydantic AI's messages as ullage's values, and back
"""

from __future__ import annotations

from ullage.integrations._needs import needs

with needs("pydantic-ai"):
    from ullage.integrations.pydantic_ai._capability import UllageCapability
    from ullage.integrations.pydantic_ai._messages import HOST

__all__ = ["HOST", "UllageCapability"]
