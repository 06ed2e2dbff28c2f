"""What Gemini alone has."""

import pytest

from tests.hidden_turns.talk import OWN, RECALL, Reply, start
from ullage import MemoryStore


@pytest.mark.parametrize("streamed", [False, True])
def test_geminis_next_call_passes_without_the_first(streamed):
    """The private call has the signature; its sibling must stand without it."""
    talk = start(("gemini", streamed))
    talk.model(Reply("", [RECALL, OWN]))
    talk.store = MemoryStore()
    talk.forgets()
    talk.model("Done.")
    assert "skip_thought_signature_validator" in str(talk.sent[-1])
