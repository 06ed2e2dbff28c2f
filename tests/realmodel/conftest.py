"""The real model and its conversation, started once for all tests that ask for them."""

import pytest

from tests.realmodel.conversation import WINDOW_TOKENS, live
from tests.realmodel.serving import missing, serving


@pytest.fixture(scope="session")
def model():
    """A real model being served; tests that want it skip where it is not installed."""
    if absent := missing():
        pytest.skip(
            f"no real model: {' and '.join(absent)} not installed (make real-model)"
        )
    with serving(WINDOW_TOKENS) as server:
        yield server


@pytest.fixture(scope="session")
def played(model):
    """The conversation of fifty calls, as it went."""
    return live(model)
