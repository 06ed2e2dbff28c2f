"""A wrapped client asks for summaries beside its calls; no call waits for one."""

import threading

from tests.session.test_ahead import FULLER, GOOD, requests
from ullage import Limits, wrap


def test_no_call_of_a_wrapped_client_waits_for_a_summary(serve):
    may, begun, asked = threading.Event(), threading.Event(), []

    def writes(question):
        asked.append(question)
        begun.set()
        may.wait(30)
        return GOOD

    turns = requests(turns=FULLER)
    server = serve("openai-chat", ["Yes."] * (len(turns) + 200))
    limits = Limits(window_tokens=20_000, output_reserve_tokens=1_000)
    client = wrap(server.client(), limits=limits, summariser=writes)
    for number, request in enumerate(turns, 1):
        client.chat.completions.create(**request)
        if number > 25 and begun.wait(0.05):
            break
    client.chat.completions.create(**turns[number])
    assert len(asked) == 1
    may.set()
    for _ in range(200):  # until the thread that asked has its answer
        client.chat.completions.create(**turns[number])
        if b"The loader is next." in server.requests[-1].raw:
            return
    raise AssertionError("the summary was never shown")
