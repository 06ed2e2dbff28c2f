"""Google ADK: a plugin that keeps every agent of a runner within its window.

    app = App(name="sre", root_agent=agent, plugins=[UllagePlugin(store="sqlite")])
    runner = Runner(app=app, session_service=service)

Needs the extra ``ullage[adk]``.

    _plugin     ADK's callbacks, and what each of them asks of an ullage session
    _rooms      one ADK session: its budget, its ledger, and an ullage session for each agent
    _records    the ledger in ADK's session state
    _requests   an LlmRequest as a request of ullage, and the view as an LlmRequest
    _results    a tool's result cut before ADK keeps it
"""

from __future__ import annotations

from ullage.integrations.adk._plugin import UllagePlugin
from ullage.integrations.adk._rooms import Room

__all__ = ["Room", "UllagePlugin"]
