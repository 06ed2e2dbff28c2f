"""The scenario in the OpenAI Agents SDK."""

import pytest

pytest.importorskip(
    "agents", reason="openai-agents is not installed (make openai-agents)"
)

from tests.integrations import scenario
from tests.integrations.openai_agents import process


class TestScenario(scenario.Scenario):
    driver = process
