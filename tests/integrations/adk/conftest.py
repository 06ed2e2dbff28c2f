"""What every test of the ADK plugin has."""

import pytest

from ullage.integrations._sessions import SessionFamily


@pytest.fixture(autouse=True)
def _sessions_are_held(monkeypatch):
    """Hold every session until its test is over: a family of a plugin that is closed holds none."""
    held, join = [], SessionFamily.join

    def joined(family, session, state):
        held.append(session)
        join(family, session, state)

    monkeypatch.setattr(SessionFamily, "join", joined)
