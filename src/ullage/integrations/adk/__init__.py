"""Google ADK: a plugin that keeps every agent of a runner within its window.

    app = App(name="sre", root_agent=agent, plugins=[UllagePlugin(store="sqlite")])
    runner = Runner(app=app, session_service=service)

Needs the extra ``ullage[adk]``.

    plugin      ADK's callbacks, and what each of them asks of an ullage session
    rooms       one ADK session: its budget, its ledger, and an ullage session for each agent
    records     the ledger in ADK's session state
    requests    an LlmRequest as a request of ullage, and the view as an LlmRequest
    results     a tool's result cut before ADK keeps it
"""

from __future__ import annotations

from ullage.integrations.adk.plugin import UllagePlugin
from ullage.integrations.adk.rooms import Room

__all__ = ["Room", "UllagePlugin"]
