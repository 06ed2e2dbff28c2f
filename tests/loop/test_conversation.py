"""A conversation in a database: compacted, killed, loaded again from its newest summary on."""

import sqlite3

import pytest
from msgspec.structs import replace

from tests import histories
from tests.conversations import (
    LOG,
    RULE,
    STEPS,
    TURNS,
    Model,
    bare,
    calls,
    opened,
    summaries,
    texts,
)
from tests.stores.killed import dies, forks, silent
from ullage import ConfigError, Limits, StoreError
from ullage.documents.conversation import Conversation, ConversationStore
from ullage.policy import DEFAULT
from ullage.stores import SqliteStore
from ullage.tools.replay import reading
from ullage.wires import FORMATS
from ullage.wires.rules.checker import problems_of


def played(conversation, format, messages):
    """The views of a conversation that is played through."""
    came = [
        getattr(conversation, call)(given)
        for call, given in calls(format, messages)
    ]
    return [view for view in came if isinstance(view, dict)]


@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Layer 3: CONVERSATION COMPACTION (Overflow imminent)",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "LLM summarizes older messages",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Preserves key decisions/context",
)
@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Inserts compaction boundary marker",
    lives="ullage.documents.conversation.Conversation",
)
@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """// Load messages with compaction boundary awareness
    var messages = await _compactionService.LoadMessagesWithCompactionBoundaryAsync(
        session.Id, ct);

    var chatMessages = messages.Select(m => m.ToChatMessage()).ToList();""",
    lives="ullage.documents.conversation.Conversation",
)
@pytest.mark.says(
    "three-layer-management",
    "Integration with ChatService",
    """var compactionResult = await _compactionService.CompactConversationAsync(
                session.Id,
                await _messageRepository.GetBySessionIdAsync(session.Id, ct),
                currentTokens,
                contextLimit,
                ct);

            if (compactionResult.WasCompacted)
            {
                // Reload messages with compaction boundary
                messages = await _compactionService.LoadMessagesWithCompactionBoundaryAsync(
                    session.Id, ct);
                chatMessages = messages.Select(m => m.ToChatMessage()).ToList();""",
)
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_it_is_loaded_from_its_newest_summary_and_nothing_is_lost(
    format, tmp_path
):
    model, messages = Model(), histories.wire(format, TURNS)
    conversation, wire = opened(tmp_path, format, model), FORMATS[format]
    views = played(conversation, format, messages)
    for view in views:
        assert not problems_of(format, wire.history(view))
        assert len(summaries(format, wire.history(view))) <= 1
    (text,) = summaries(format, wire.history(views[-1]))
    assert (
        wire.parse(wire.history(views[-1])[0], "m").role == "user"
    )  # tools speak in it (F53)
    made = len(model.asked)
    assert made > 1
    assert f"Part {made}." in text
    assert (
        "Part 1." in model.asked[1].texts[0]
    )  # what was before goes in with what is new
    assert RULE in text
    assert "TypeError: x is None" in text
    assert "Find out why the tests fail." in text
    assert (
        conversation.session.window.estimate
        <= conversation.session.window.limit_tokens
    )
    kept = ConversationStore(tmp_path / "chat.db", format=format)
    history = kept.history("s")
    assert [stored.message for stored in history] == messages
    marked = [stored.is_compacted for stored in history]
    assert marked == sorted(marked, reverse=True)
    assert kept.newest_compaction("s").compacted_message_count == sum(marked)
    again = opened(tmp_path, format, model)
    assert wire.history(again.fit(bare(format))) == wire.history(views[-1])
    assert len(model.asked) == made
    shown, found = texts(format, wire.history(views[-1])), {}
    reading.reachable(again.session, shown, found)
    said = "\n".join([*shown, *found.values()])
    assert [
        n
        for n in range(STEPS)
        if f"Step {n}." not in said or f"{n}\n{LOG}" not in said
    ] == []


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_store_that_has_never_seen_the_outputs_is_given_all_of_them(
    format, tmp_path
):
    """The outputs' file was lost, or another is used, after the first compactions."""
    messages, wire = histories.wire(format, TURNS), FORMATS[format]
    model, half = Model(), len(messages) // 2
    played(opened(tmp_path, format, model), format, messages[:half])
    assert model.asked
    before = len(model.asked)
    fresh = opened(
        tmp_path, format, model, store=SqliteStore(tmp_path / "fresh.db")
    )
    view = played(fresh, format, messages[half:])[-1]
    assert len(model.asked) > before
    shown, found = texts(format, wire.history(view)), {}
    reading.reachable(fresh.session, shown, found)
    said = "\n".join([*shown, *found.values()])
    assert [
        n
        for n in range(STEPS)
        if f"Step {n}." not in said or f"{n}\n{LOG}" not in said
    ] == []


def test_what_is_too_little_to_compact_is_loaded_whole(tmp_path):
    messages = histories.wire("openai-chat", TURNS[:4])
    conversation = opened(tmp_path, "openai-chat")
    assert (
        played(conversation, "openai-chat", messages)[-1]["messages"]
        == messages
    )
    assert conversation.messages == messages
    assert conversation.usage.input_tokens == 0


def test_what_cannot_be_meant_is_refused(tmp_path):
    conversation = opened(tmp_path, "openai-chat")
    with pytest.raises(ConfigError, match="it is kept already"):
        conversation.fit(
            histories.request(
                "openai-chat", [{"role": "user", "content": "x"}]
            )
        )
    with pytest.raises(ConfigError, match="no compaction"):
        opened(tmp_path, "openai-chat", policy="continuation")


# ── a process may die at any step ────────────────────────────────────────────────────────


@forks
@silent
def test_killed_at_any_step_of_a_compaction_the_history_is_whole_and_the_boundary_there_or_not(
    tmp_path,
):
    format, messages = "openai-chat", histories.wire("openai-chat", TURNS[:40])
    kept = ConversationStore(tmp_path / "chat.db", format=format)
    kept.append("s", messages)
    opened(tmp_path, format).session.close()

    def compacts(conversation):
        assert summaries(format, conversation.fit(bare(format))["messages"])

    def prepare():
        return (opened(tmp_path, format, Model()),)

    after, seen = 0, set()
    while dies(compacts, after, prepare=prepare, file="chat.db"):
        part, loaded = (
            kept.newest_compaction("s"),
            [each.message for each in kept.load("s")],
        )
        assert [stored.message for stored in kept.history("s")] == messages
        marked = sum(stored.is_compacted for stored in kept.history("s"))
        assert marked == (part.compacted_message_count if part else 0)
        assert len(loaded) == len(messages) - marked + bool(part)
        assert not problems_of(format, loaded)
        seen.add(bool(part))
        after += 1
    assert seen == {False, True}
    assert after > 10
    assert kept.newest_compaction("s") is not None
    last = opened(tmp_path, format).fit(bare(format))
    assert len(summaries(format, last["messages"])) == 1


def test_a_database_that_fails_leaves_the_old_boundary(tmp_path):
    messages = histories.wire("openai-chat", TURNS[:40])
    conversation = opened(tmp_path, "openai-chat")
    conversation.append(messages)
    with sqlite3.connect(tmp_path / "chat.db") as db:
        db.execute(
            "CREATE TRIGGER no BEFORE UPDATE ON Messages BEGIN SELECT RAISE(ABORT, 'not here'); END"
        )
    with pytest.raises(StoreError, match="mark_compacted"):
        conversation.fit(bare("openai-chat"))
    kept = ConversationStore(tmp_path / "chat.db")
    assert kept.newest_compaction("s") is None
    assert [stored.message for stored in kept.load("s")] == messages


def test_a_compaction_may_be_any_stage_and_what_stands_before_its_summary_is_not_lost(
    tmp_path,
):
    """A policy is data here too: nobody asks which function its compaction is."""
    ours = DEFAULT.on_request

    def mine(window, /):
        return ours(window)

    policy = replace(DEFAULT, name="mine-1", on_request=mine)
    kept = ConversationStore(tmp_path / "kept.db")
    with Conversation(
        kept, "x", "gpt-4.1", policy=policy, limits=Limits(window_tokens=8_000)
    ) as it:
        it.append([{"role": "user", "content": "The task: mend the loader."}])
        for number in range(40):
            it.append(
                [
                    {
                        "role": "assistant",
                        "content": f"Step {number} is done. " * 60,
                    }
                ]
            )
            it.append([{"role": "user", "content": f"Go on, {number}."}])
            view = it.fit({"model": "gpt-4.1"})
            assert not problems_of("openai-chat", view["messages"])
        assert len(it.messages) < 40, "compactions were written down"
        assert "The task: mend the loader." in str(view["messages"])
    assert len(kept.history("x")) == 81
