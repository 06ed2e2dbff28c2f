"""What every test of the lab has."""

import logging

import pytest


@pytest.fixture(autouse=True)
def _the_log_speaks_again():
    """Take back the silence of a command that was run here: it is meant for its own process."""
    log = logging.getLogger("ullage")
    level = log.level
    yield
    log.setLevel(level)
