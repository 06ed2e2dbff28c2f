"""The scenario in Google ADK."""

import pytest

pytest.importorskip(
    "google.adk", reason="google-adk is not installed (make adk)"
)

from tests.integrations import scenario
from tests.integrations.adk import process


@pytest.mark.filterwarnings(
    "ignore:The `plugins` argument"
)  # ADK's own, of an agent as a tool
class TestScenario(scenario.Scenario):
    driver = process
    name_at_last = scenario.OURS[
        1
    ]  # ullage adds it, and breaks no prefix for it
