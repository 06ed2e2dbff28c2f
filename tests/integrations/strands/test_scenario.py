"""The scenario in Strands."""

import pytest

pytest.importorskip(
    "strands", reason="strands-agents is not installed (make strands)"
)

from tests.integrations import scenario
from tests.integrations.strands import process


class TestScenario(scenario.Scenario):
    driver = process
    # Strands copies behind us
    test_what_is_not_touched_is_the_very_object_that_was_given = None
