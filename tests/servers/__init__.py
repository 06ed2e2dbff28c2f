"""Providers on the loopback: what a vendor's SDK talks to in the tests.

    with provider("anthropic", replies=[Reply("", [Call("read")]), "Done."]) as server:
        client = server.client()                    the vendor's own SDK, pointed at the server
        reply = server.ask(client, request)         client.messages.create(**request), or its like
        server.requests[0].raw                      the bytes that were sent
        server.requests[0].body                     the same as JSON

The formats are those of `ullage.wires.FORMATS`; streamed where the request asks for it.
A reply is a text, a `Reply`, a whole body as a dict, or a `Refusal`; ``replies`` is a list of
them, or a function of the `Captured` request. `provider` takes two flags besides:

    strict=True           asks `ullage.problems` and refuses a request that breaks a rule
    limit_tokens=8_000    refuses a request that is longer, in the vendor's words

The fixture ``serve`` opens such providers and closes them at the end of a test. `tests.servers.
loops` has the agent loops that go with them.
"""

from tests.servers.loopback import Captured, Provider, provider
from tests.servers.refusals import Refusal
from tests.servers.replies import Call, Reply

__all__ = ["Call", "Captured", "Provider", "Refusal", "Reply", "provider"]
