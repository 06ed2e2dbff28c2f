"""Google ADK: a plugin that keeps every agent of a runner within its window.

    app = App(name="sre", root_agent=agent, plugins=[UllageAdkPlugin(store="sqlite")])
    runner = Runner(app=app, session_service=service)

Needs the extra ``adk``.

    _plugin     ADK's callbacks, and what each of them asks of an ullage session
    _content    ADK's requests and results as ullage's, and back
"""

from __future__ import annotations

from ullage.integrations._needs import needs

with needs("adk"):
    from ullage.integrations.adk._plugin import UllageAdkPlugin

__all__ = ["UllageAdkPlugin"]
