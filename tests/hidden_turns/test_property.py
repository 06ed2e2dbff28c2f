"""Any script of the model's, any cut of the stream, any habit of the client's.

`tests.hidden_turns.talk` judges each request that the model gets and all that the client gets.
"""

from hypothesis import given
from hypothesis import strategies as st

from tests.hidden_turns.talk import HABITS, OWN, RECALL, Reply, Talk
from ullage.wires import FORMATS

texts = st.sampled_from(
    ("", "Let me look.", "Line 5\n  failed. ", "é🙂", "x" * 40)
)
thoughts = st.sampled_from(("", "Hm.", "I need the rest of it."))
private = st.lists(st.just(RECALL), min_size=1, max_size=2)
own = st.lists(st.just(OWN), min_size=1, max_size=2)
mixed = st.lists(st.sampled_from((RECALL, OWN)), min_size=1, max_size=4)
hidden = st.builds(Reply, texts, private, thoughts)
last = st.builds(Reply, texts, mixed | own, thoughts) | st.builds(
    Reply, texts.filter(str.strip), st.just(()), thoughts
)


@st.composite
def rounds(draw):
    """The rounds of one reply: the client has a call, or the model says something at the end."""
    ending = draw(
        last.filter(lambda reply: not reply.calls or OWN in reply.calls)
    )
    return [*draw(st.lists(hidden, max_size=3)), ending]


scripts = st.lists(rounds(), min_size=1, max_size=4)


@given(
    format=st.sampled_from(list(FORMATS)),
    streamed=st.booleans(),
    seed=st.integers(0, 99),
    habits=st.lists(st.sampled_from(list(HABITS)), max_size=3, unique=True),
    script=scripts,
    has_ids=st.booleans(),
)
def test_whatever_is_said_and_however_it_is_sent_back(
    format, streamed, seed, habits, script, has_ids
):
    ids = has_ids or format != "gemini"
    talk = Talk(
        format, streamed=streamed, seed=seed, habits=habits, has_ids=ids
    )
    talk.user("What failed?")
    asked = False
    for rounds in script:
        if asked:
            talk.user("And then?")
        talk.model(*rounds)
        said = "".join("".join(reply.text for reply in rounds).split())
        assert "".join("".join(talk.texts).split()) == said
        assert talk.calls == ["read_file"] * rounds[-1].calls.count(OWN)
        asked = not talk.calls
    if asked:
        talk.user("Well?")
    talk.model("Done.")
    assert talk.recalled == sum(
        call == RECALL for rs in script for r in rs for call in r.calls
    )
