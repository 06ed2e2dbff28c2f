"""The scenario in LangChain, invoked and awaited."""

import pytest

pytest.importorskip(
    "langchain", reason="langchain is not installed (make langchain)"
)

from tests.integrations import scenario
from tests.integrations.langchain import process


class TestAwaited(scenario.Scenario):
    driver = process

    def process(self, folder, **settings):
        return process.Awaited(folder, **settings)


class TestInvoked(scenario.Scenario):
    driver = process
    # nobody can cancel it
    test_a_run_that_is_cancelled_claims_nothing_and_can_go_on = None
