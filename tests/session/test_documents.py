"""Documents and search results of Anthropic: their texts are cut where they stand.

The block keeps its type, title, source and settings; what left opens byte for byte by its ref.
"""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.returned import problems
from tests.second_reading import broken
from ullage import Limits, MemoryStore, Session
from ullage.core.history import canon
from ullage.wires import FORMATS

MODEL = "claude-opus-4-8"
TOOLS = [{"name": "bash", "input_schema": {"type": "object"}}]
LONG = "".join(f"line {n}: the quick brown fox\n" for n in range(2_000))
OTHER = "".join(f"row {n}: a lazy dog\n" for n in range(2_000))
ON = {"enabled": True}
PDF = {
    "type": "base64",
    "media_type": "application/pdf",
    "data": "JVBERi0x" * 9_000,
}
IMAGE = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": "iVBORw0K" * 200,
    },
}


def text(said, **more):
    return {"type": "text", "text": said, **more}


def document(source, **more):
    return {
        "type": "document",
        "source": source,
        "title": "The log",
        "citations": ON,
        **more,
    }


def plain(said):
    return {"type": "text", "media_type": "text/plain", "data": said}


def blocks(*items):
    return {"type": "content", "content": list(items)}


def hit(*said, **more):
    content = [text(each) for each in said]
    where = {"source": "https://example.org/a", "title": "A page"}
    return {
        "type": "search_result",
        **where,
        "content": content,
        "citations": ON,
        **more,
    }


CASES = {
    "a text": (document(plain(LONG), context="from the desk"), [LONG]),
    "a string": (document({"type": "content", "content": LONG}), [LONG]),
    "blocks": (
        document(blocks(text(LONG), text("short"), text(OTHER))),
        [LONG, OTHER],
    ),
    "blocks and a picture": (document(blocks(text(LONG), IMAGE)), [LONG]),
    "a search result": (hit(LONG), [LONG]),
    "a search result of several": (hit("short", LONG, OTHER), [LONG, OTHER]),
    "with a marker": (
        document(plain(LONG), cache_control={"type": "ephemeral"}),
        [LONG],
    ),
}
every_block = pytest.mark.parametrize(
    ("block", "texts"), CASES.values(), ids=CASES
)


def call(number=1):
    use = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "bash",
        "input": {},
    }
    return {"role": "assistant", "content": [use]}


def gave(*content, number=1):
    result = {
        "type": "tool_result",
        "tool_use_id": f"toolu_{number}",
        "content": list(content),
    }
    return {"role": "user", "content": [result]}


def asked(*messages):
    said = {"role": "user", "content": "go"}
    return {
        "model": MODEL,
        "max_tokens": 99,
        "tools": TOOLS,
        "messages": [said, *messages],
    }


def session(store=None, window_tokens=200_000):
    """One that knows the conversation from its beginning."""
    limits = Limits(window_tokens=window_tokens)
    made = Session(MODEL, store=store or MemoryStore(), limits=limits)
    made.fit(asked())
    return made


def texts_in(value):
    """Every text that a block shows, the data of a document included."""
    if isinstance(value, dict):
        own = [
            value[key]
            for key in ("text", "data")
            if isinstance(value.get(key), str)
        ]
        content = value.get("content")
        own += [content] if isinstance(content, str) else []
        return own + [
            each for item in value.values() for each in texts_in(item)
        ]
    return (
        [each for item in value for each in texts_in(item)]
        if isinstance(value, list)
        else []
    )


def without_texts(value):
    """A block with each long text left out, so that the rest can be compared."""
    written = json.dumps(value)
    for said in texts_in(value):
        if len(said) > 1_000 or "[ullage" in said:
            written = written.replace(json.dumps(said), '"…"')
    return json.loads(written)


def legal(view):
    assert problems("anthropic", view) == []
    assert broken("anthropic", view) == set()


def opened(store, ref):
    """What stands under a ref, whole."""
    return store.get("", ref).text


@every_block
def test_at_first_sight_its_texts_are_cut_and_the_block_stays(block, texts):
    """As the newest result too: head and tail are in view, with the notice in the text itself."""
    store, request = MemoryStore(), asked(call(), gave(text("Found:"), block))
    before = copy.deepcopy(request)
    view = session(store).fit(request)
    (shown,) = view["messages"][2]["content"][0]["content"][1:]
    assert without_texts(shown) == without_texts(block)
    cut = [said for said in texts_in(shown) if "[ullage" in said]
    assert len(cut) == len(texts)
    for said, original in zip(cut, texts, strict=True):
        assert 2_000 < len(said) < len(original)
        assert said.startswith(original[:500])
        assert canon.ref_of(original) in said
        assert opened(store, canon.ref_of(original)) == original
    assert view["messages"][2]["content"][0]["content"][0] == text("Found:")
    legal(view)
    assert request == before
    assert session(store).fit(request) == view
    assert session(MemoryStore()).fit(request) == view


@every_block
def test_in_a_small_window_the_newest_shows_more_than_a_line(block, texts):
    view = session(window_tokens=16_000).fit(asked(call(), gave(block)))
    shown = view["messages"][-1]["content"][0]["content"][0]
    assert shown["type"] == block["type"]
    assert any(said.startswith(texts[0][:500]) for said in texts_in(shown))
    legal(view)


@every_block
def test_in_a_record_it_leaves_like_any_other_result(block, texts):
    """Its messages go with it, and each text and what stood beside it opens from the index."""
    store, messages = MemoryStore(), []
    windows = session(store, window_tokens=32_000)
    for number in range(1, 25):
        fresh = json.loads(
            json.dumps(block).replace("line 7:", f"line 7 of {number}:")
        )
        fresh.pop("cache_control", None)  # no request may have so many
        messages += [call(number), gave(fresh, number=number)]
        view = windows.fit(asked(*messages))
        legal(view)
    first = json.loads(json.dumps(texts[0]).replace("line 7:", "line 7 of 1:"))
    assert len(view["messages"]) < len(messages)
    assert opened(store, canon.ref_of(first)) == first


def test_what_the_user_hands_over_gives_way_before_what_the_user_says():
    """It is not quoted as the user's words, and its block stays."""
    store, question = MemoryStore(), "Which line has the fox? " * 40
    content = [document(plain(LONG * 3)), text(question)]
    view = session(store, window_tokens=16_000).fit(
        asked({"role": "user", "content": content})
    )
    shown, said = view["messages"][-1]["content"]
    assert said == text(question)
    assert without_texts(shown) == without_texts(content[0])
    assert canon.ref_of(LONG * 3) in shown["source"]["data"]
    assert opened(store, canon.ref_of(LONG * 3)) == LONG * 3
    legal(view)


def test_an_account_quotes_what_was_said_beside_a_document_and_names_the_document():
    store = MemoryStore()
    fits = session(store, window_tokens=16_000)
    handed = {
        "role": "user",
        "content": [document(plain(LONG)), text("Mind the fox.")],
    }
    messages = [handed]
    for number in range(1, 30):
        messages += [
            call(number),
            gave(text(f"{number} " + OTHER[:9_000]), number=number),
        ]
        view = fits.fit(asked(*messages))
        legal(view)
    written = json.dumps(view)
    assert "Mind the fox." in written
    assert "line 1000: the quick" not in written
    assert opened(store, canon.ref_of(LONG)) == LONG


@pytest.mark.parametrize(
    "source", [PDF, {"type": "url", "url": "https://example.org/a.pdf"}]
)
def test_a_medium_stays_whole(source):
    block = document(source)
    view = session().fit(asked(call(), gave(block)))
    assert view["messages"][2]["content"][0]["content"] == [block]


def test_a_block_with_more_beside_its_text_than_a_view_can_hold_is_no_frame():
    """It leaves whole, as before: a frame would stay however large it is."""
    block = document(plain("short"), context=LONG)
    parts = FORMATS["anthropic"].parse(gave(block), "here").parts
    assert [type(item).__name__ for item in parts[0].content] == ["Opaque"]


def test_title_and_source_say_which_block_it_is():
    """Two blocks with the same text and another title are two messages of the history."""
    wire = FORMATS["anthropic"]
    digests = {
        canon.digest_of(wire.parse(gave(block), "here"))
        for block in (
            hit("x"),
            hit("x", title="B"),
            hit("x", source="b"),
            document(plain("x")),
        )
    }
    assert len(digests) == 4


SAID = st.text(min_size=1, max_size=40).filter(str.strip)
SOURCES = st.one_of(
    SAID.map(plain),
    SAID.map(lambda said: {"type": "content", "content": said}),
    st.lists(SAID.map(text), min_size=1, max_size=4).map(
        lambda items: blocks(*items)
    ),
)
BLOCKS = st.one_of(
    SOURCES.map(document),
    st.lists(SAID, min_size=1, max_size=4).map(lambda said: hit(*said)),
)


@given(st.lists(BLOCKS, min_size=1, max_size=3), SAID, st.data())
def test_any_edit_changes_its_text_and_nothing_else(content, new, data):
    """Read again, every other leaf is as it was; the caller's block is untouched."""
    wire = FORMATS["anthropic"]
    for raw in (gave(*content), {"role": "user", "content": content}):
        message, before = wire.parse(raw, "here"), copy.deepcopy(raw)
        leaves = list(_leaves(message))
        number, item, _ = data.draw(
            st.sampled_from([each for each in leaves if each[2]])
        )
        edited = wire.edit(raw, message, [(number, item, new)])
        assert raw == before
        again = list(_leaves(wire.parse(edited, "here")))
        changed = [
            (*leaf[:2], new) if leaf[:2] == (number, item) else leaf
            for leaf in leaves
        ]
        assert [leaf for leaf in again if leaf[2]] == [
            leaf for leaf in changed if leaf[2]
        ]
        legal(
            asked(
                *(
                    [call(), edited]
                    if "tool_use_id" in raw["content"][0]
                    else [edited]
                )
            )
        )


def _leaves(message):
    """Each leaf by its place: what a passage says; of a frame nothing, for no edit may touch it."""
    for number, part in enumerate(message.parts):
        items = part.content if hasattr(part, "content") else (part,)
        for item, leaf in enumerate(items):
            is_passage = type(leaf).__name__ == "Passage"
            yield number, item, leaf.text if is_passage else ""


def guarded(said, **more):
    """What a user says on Converse, marked for a guardrail to look at."""
    return {"guardContent": {"text": {"text": said, **more}}}


@pytest.mark.parametrize(
    ("more", "is_quoted"),
    [
        ({}, True),
        ({"qualifiers": ["query"]}, True),
        ({"qualifiers": ["grounding_source"]}, False),
    ],
)
def test_what_a_user_says_under_a_guardrail_is_the_users_words(
    more, is_quoted
):
    """A source that the answer is held against is a document like any."""
    rule = "Never touch the production database. " * 12
    messages = [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"text": "What may I do?"}]},
        {"role": "user", "content": [guarded(rule, **more), {"text": "!"}]},
    ]
    model = "anthropic.claude-opus-4-8"
    limits = Limits(window_tokens=16_000)
    fits = Session(
        model, format="bedrock-converse", limits=limits, recall=True
    )
    for number in range(30):
        use = {"toolUseId": f"t{number}", "name": "read", "input": {}}
        body = {
            "toolUseId": f"t{number}",
            "content": [{"text": f"{number} {OTHER[:9_000]}"}],
        }
        messages += [
            {"role": "assistant", "content": [{"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": body}]},
        ]
        view = fits.fit({"modelId": model, "messages": messages})
    written = json.dumps(view["messages"])
    assert len(view["messages"]) < len(messages)
    assert (rule.strip() in written) is is_quoted
