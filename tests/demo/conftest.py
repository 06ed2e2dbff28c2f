import json

import pytest
import toktok

from demo.agenda import task
from demo.investigator import Investigator
from demo.loop import run
from demo.tally import Memo
from demo.tools import SPECS, Tools


class Remembering(Tools):
    """Gives again what it gave to the same call: most runs ask the same, and no file changes."""

    def __init__(self):
        super().__init__()
        self._given = {}

    def _dispatch(self, name, arguments):
        asked = name, json.dumps(arguments)
        if asked not in self._given:
            self._given[asked] = super()._dispatch(name, arguments)
        return self._given[asked]


@pytest.fixture(scope="session")
def tools():
    return Remembering()


@pytest.fixture(scope="session")
def count():
    return Memo(lambda texts: toktok.batch_count(texts, "o200k_base"))


@pytest.fixture(scope="session")
def play(tools, count):
    """Run an agenda through a session; returns the history, the last view, every view."""

    def played(agenda, session):
        views = []
        request = {
            "model": "gpt-4.1",
            "messages": [{"role": "user", "content": task(agenda)}],
            "tools": SPECS,
            "max_tokens": 4_096,
        }
        client = Investigator(agenda, count)

        def watch(view, reply):
            views.append(({**view, "messages": list(view["messages"])}, reply))

        run(client, session, tools, request, watch=watch)
        return request["messages"], views

    return played
