"""The middleware is added to an agent whose threads are under way."""

import pytest

pytest.importorskip(
    "langchain", reason="langchain is not installed (make langchain)"
)

from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver

from tests.integrations.langchain.world import Scripted, calls, says, thread
from ullage import Limits
from ullage.integrations.langchain import UllageMiddleware

PAGE = "".join(f"line {n} of the page\n" for n in range(1_500))[:30_000]
ROOMY = Limits(window_tokens=1_000_000)
TURNS = 40


def fetch(n: int) -> str:
    """Fetches a page."""
    return f"{n}\n{PAGE}"


def sizes(first, **settings):
    """Characters of each request; the middleware is there from turn ``first`` on."""
    saver, sent = InMemorySaver(), []
    for turns in (range(first), range(first, TURNS)):
        middleware = (
            []
            if turns.stop == first
            else [UllageMiddleware(limits=ROOMY, **settings)]
        )
        for turn in turns:
            model = Scripted(
                script=[calls(("fetch", {"n": turn})), says("Nothing there.")]
            )
            agent = create_agent(
                model, [fetch], middleware=middleware, checkpointer=saver
            )
            asked = {
                "messages": [{"role": "user", "content": f"And page {turn}?"}]
            }
            agent.invoke(asked, thread())
            sent += [
                sum(len(each.text) for each in messages)
                for messages in model.sent
            ]
    return sent[2 * first :]


@pytest.mark.parametrize("first", [1, 3, 10])
def test_it_sends_little_more_than_with_the_middleware_from_the_start(first):
    whole, sent = sizes(0), sizes(first)
    assert sum(sent) <= 1.5 * sum(whole[2 * first :])
    assert sent[-1] <= 1.5 * whole[-1]


def test_it_can_be_turned_off():
    assert sizes(3, joins=False)[-1] > TURNS * len(PAGE)
