from demo.loop import run


class Scripted:
    """Replies from a list, and remembers the requests."""

    def __init__(self, *messages):
        self.messages, self.requests = list(messages), []

    def create(self, **request):
        self.requests.append(request)
        return {"choices": [{"message": self.messages.pop(0)}]}


class Marked:
    """A session that owns the calls named ``ours`` and marks every view."""

    def __init__(self):
        self.observed = 0

    def fit(self, request):
        return {**request, "fitted": len(request["messages"])}

    def observe(self, reply):
        self.observed += 1

    def owns(self, call):
        return call["name"] == "ours"

    def recall(self, call):
        return {"role": "tool", "content": "recalled"}


class Theirs:
    def run(self, call):
        return {"role": "tool", "content": f"ran {call['name']}"}


def test_calls_go_to_whom_they_belong_and_the_history_keeps_everything():
    asks = {
        "role": "assistant",
        "tool_calls": [{"name": "theirs"}, {"name": "ours"}],
    }
    ends = {"role": "assistant", "content": "done"}
    client, session = Scripted(asks, ends), Marked()
    request = {"messages": [{"role": "user", "content": "go"}]}
    seen = []
    view = run(
        client,
        session,
        Theirs(),
        request,
        watch=lambda *both: seen.append(both),
    )
    contents = [m.get("content") for m in request["messages"]]
    assert contents == ["go", None, "ran theirs", "recalled", "done"]
    assert [r["fitted"] for r in client.requests] == [1, 4]
    assert view["fitted"] == 4
    assert (session.observed, len(seen)) == (2, 2)
