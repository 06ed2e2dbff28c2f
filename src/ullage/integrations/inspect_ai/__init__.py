"""Inspect: a model for `react`, and for agents of one's own, whose requests fit.

    ullage = UllageModel()
    solver = react(tools=[*mine, *ullage.tools], model=ullage.agent)

Needs the extra ``inspect``. Give the task ``GenerateConfig(max_tool_output=0)``: what
Inspect cuts of a result before it is recorded cannot be read back.

    _model     the agent that calls the model, and the recall tools
    _messages  Inspect's messages as ullage's values, and back
"""

from __future__ import annotations

from ullage.integrations._needs import needs

with needs("inspect"):
    from ullage.integrations.inspect_ai._messages import HOST
    from ullage.integrations.inspect_ai._model import UllageModel

__all__ = ["HOST", "UllageModel"]
