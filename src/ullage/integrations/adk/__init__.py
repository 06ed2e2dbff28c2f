"""Google ADK: a plugin that keeps every agent of a runner within its window.

    app = App(name="sre", root_agent=agent, plugins=[UllagePlugin(store="sqlite")])
    runner = Runner(app=app, session_service=service)

Needs the extra ``ullage[adk]``.

    _plugin     ADK's callbacks, and what each of them asks of an ullage session
    _state      one ADK session: its budget, its agents' sessions, and their ledger in its state
    _content    ADK's requests and results as ullage's, and back
"""

from __future__ import annotations

from ullage.integrations.adk._plugin import UllagePlugin
from ullage.integrations.adk._state import Room

__all__ = ["Room", "UllagePlugin"]
