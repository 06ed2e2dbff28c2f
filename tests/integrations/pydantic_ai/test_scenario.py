"""The scenario in Pydantic AI."""

import pytest

pytest.importorskip(
    "pydantic_ai", reason="pydantic-ai is not installed (make pydantic-ai)"
)

from tests.integrations import scenario
from tests.integrations.pydantic_ai import process


class TestScenario(scenario.Scenario):
    driver = process
