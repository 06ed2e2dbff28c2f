"""Conversations in SQLite: what a chat service keeps, and what it loads."""

import json
import os
import random
import sqlite3
import stat
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.loops import user
from tests.stores.killed import dies, forks, silent
from ullage import problems
from ullage.core.errors import ConfigError, FormatError, StoreError
from ullage.documents.conversation import ConversationStore
from ullage.wires import FORMATS, ToolSpec

SERVICE = """
CREATE TABLE Messages (
    Id TEXT PRIMARY KEY, SessionId TEXT NOT NULL, Role TEXT NOT NULL, Content TEXT NOT NULL,
    ToolCallsJson TEXT, ToolCallId TEXT, CreatedAt TEXT NOT NULL
);
CREATE TABLE Sessions (Id TEXT PRIMARY KEY, Title TEXT);
INSERT INTO Sessions VALUES ('s', 'a title');
INSERT INTO Messages VALUES
    ('a', 's', 'user', 'Look.', NULL, NULL, '2026-01-01'),
    ('b', 's', 'assistant', '', '[{"id": "1", "type": "function", "function":
        {"name": "read", "arguments": "{}"}}]', NULL, '2026-01-01'),
    ('c', 's', 'tool', 'a result', NULL, '1', '2026-01-01'),
    ('d', 's', 'assistant', 'Done.', NULL, NULL, '2026-01-02');
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "chat.db"


@pytest.fixture
def store(path):
    return ConversationStore(path, clock=lambda: 1_800_000_000)


@pytest.fixture
def service(path):
    """A chat service's database, as it was before."""
    with raw(path) as db:
        db.executescript(SERVICE)
    return path


def raw(path):
    return closing(sqlite3.connect(path, isolation_level=None))


def say(text, role="user"):
    return {"role": role, "content": text}


def called(number):
    function = {"name": "read", "arguments": "{}"}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": f"call_{number}",
            "content": f"result {number}",
        },
    ]


def talk(turns):
    """A question, so many calls, an answer."""
    middle = [message for number in range(turns) for message in called(number)]
    return [say("Look."), *middle, say("Done.", "assistant")]


def wire(stored):
    return [one.message for one in stored]


def dump(path):
    with raw(path) as db:
        return list(db.iterdump())


# ── the tables ───────────────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Database Schema Additions",
    "ALTER TABLE Messages ADD COLUMN IsCompacted INTEGER DEFAULT 0;",
    lives="ullage.documents.conversation.store.ConversationStore",
)
@pytest.mark.says(
    "three-layer-management",
    "Migration Path",
    "Run migration for schema changes",
    lives="ullage.documents.conversation.store.ConversationStore",
)
def test_a_service_opens_its_own_database_and_finds_everything_as_it_was(
    service,
):
    with raw(service) as db:
        before = db.execute("SELECT * FROM Messages").fetchall()
    store = ConversationStore(service)
    assert wire(store.load("s")) == [
        say("Look."),
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "read", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "content": "a result", "tool_call_id": "1"},
        say("Done.", "assistant"),
    ]
    with raw(service) as db:
        after = db.execute("SELECT * FROM Messages").fetchall()
        assert [row[: len(before[0])] for row in after] == before
        assert db.execute(
            "SELECT DISTINCT IsCompacted FROM Messages"
        ).fetchall() == [(0,)]
        assert db.execute("SELECT * FROM Sessions").fetchall() == [
            ("s", "a title")
        ]


@pytest.mark.says(
    "three-layer-management",
    "Database Schema Additions",
    """CREATE TABLE IF NOT EXISTS CompactionParts (
    Id TEXT PRIMARY KEY,
    MessageId TEXT NOT NULL,
    Summary TEXT NOT NULL,
    CompactedMessageCount INTEGER NOT NULL,
    CompactedTokenCount INTEGER NOT NULL,
    CreatedAt TEXT NOT NULL,
    FOREIGN KEY (MessageId) REFERENCES Messages(Id)
);

CREATE INDEX IF NOT EXISTS idx_compaction_message ON CompactionParts(MessageId);""",
    lives="ullage.documents.conversation.store.ConversationStore",
)
def test_the_tables_are_those_of_the_document(service):
    with raw(service) as db:
        own = {row[1] for row in db.execute("PRAGMA table_info(Messages)")}
    ConversationStore(service)
    with raw(service) as db:
        there = {row[1] for row in db.execute("PRAGMA table_info(Messages)")}
        assert there - own == {"IsCompacted", "Wire"}
        columns = db.execute("PRAGMA table_info(CompactionParts)").fetchall()
        assert [
            (name, kind, bool(null), bool(key))
            for _, name, kind, null, _, key in columns
        ] == [
            ("Id", "TEXT", False, True),
            ("MessageId", "TEXT", True, False),
            ("Summary", "TEXT", True, False),
            ("CompactedMessageCount", "INTEGER", True, False),
            ("CompactedTokenCount", "INTEGER", True, False),
            ("CreatedAt", "TEXT", True, False),
        ]
        (key,) = db.execute(
            "PRAGMA foreign_key_list(CompactionParts)"
        ).fetchall()
        assert key[2:5] == ("Messages", "MessageId", "Id")
        (indexed,) = db.execute(
            "PRAGMA index_info(idx_compaction_message)"
        ).fetchall()
        assert indexed[2] == "MessageId"


def test_a_second_opening_changes_nothing(service):
    ConversationStore(service)
    first, when = dump(service), service.stat().st_mtime_ns
    ConversationStore(service)
    assert (dump(service), service.stat().st_mtime_ns) == (first, when)


def test_a_complete_file_is_opened_while_another_writes(service):
    ConversationStore(service)
    with raw(service) as db:
        db.execute("BEGIN IMMEDIATE")
        assert len(ConversationStore(service, busy_timeout_s=0).load("s")) == 4


def test_a_service_that_has_the_column_already_keeps_what_is_in_it(service):
    with raw(service) as db:
        db.execute(
            "ALTER TABLE Messages ADD COLUMN iscompacted INTEGER DEFAULT 0"
        )
        db.execute("UPDATE Messages SET iscompacted = 1 WHERE Id = 'a'")
    store = ConversationStore(service)
    assert [one.is_compacted for one in store.history("s")] == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (
            "CREATE TABLE Messages (Id TEXT, Body TEXT)",
            "no column content, role, sessionid",
        ),
        (
            "CREATE TABLE Messages (Id TEXT PRIMARY KEY, SessionId, Role, Content) WITHOUT ROWID",
            "WITHOUT ROWID",
        ),
        (
            "CREATE VIEW Messages AS SELECT 1 Id, 2 SessionId, 3 Role, 4 Content",
            "a view",
        ),
    ],
)
def test_what_is_no_table_of_conversations_is_refused_untouched(
    path, schema, why
):
    with raw(path) as db:
        db.execute(schema)
    before = dump(path)
    with pytest.raises(StoreError, match=why):
        ConversationStore(path)
    assert dump(path) == before


def test_what_is_no_database_is_refused_untouched(path):
    path.write_bytes(b"a letter to somebody " * 100)
    with pytest.raises(StoreError, match="not an SQLite database"):
        ConversationStore(path)
    assert path.read_bytes() == b"a letter to somebody " * 100


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_a_new_file_is_private_and_one_that_was_there_stays_as_it_was(
    path, tmp_path
):
    ConversationStore(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shared = tmp_path / "shared.db"
    shared.touch(0o644)
    shared.chmod(0o644)
    ConversationStore(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o644


# ── keeping and loading ──────────────────────────────────────────────────────────────────


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """if (compactionPart == null)
        {
            // No compaction, load all messages
            return await _messageRepository.GetBySessionIdAsync(sessionId, ct);
        }""",
    lives="ullage.documents.conversation.store.ConversationStore.load",
)
def test_without_a_compaction_everything_is_loaded_in_order(store, path):
    store.append("s", talk(3))
    store.append("other", [say("Elsewhere.")])
    store.append("s", [say("More.")])
    loaded = ConversationStore(path).load("s")
    assert wire(loaded) == [*talk(3), say("More.")]
    assert store.load("nobody") == ()


@pytest.mark.says(
    "three-layer-management",
    "Target State (opencode-aligned)",
    "Stops loading messages before marker",
    lives="ullage.documents.conversation.store.ConversationStore.load",
)
@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """// Load messages starting from compaction boundary
        var messages = new List<Message>();

        // First, add synthetic message with compaction summary
        messages.Add(new Message
        {
            Id = Guid.Empty,
            SessionId = sessionId,
            Role = "system",
            Content = $\"""
                [Previous conversation compacted]

                {compactionPart.Summary}

                [End of compacted summary - {compactionPart.CompactedMessageCount} messages, \
{compactionPart.CompactedTokenCount} tokens]
                \""",
            CreatedAt = compactionPart.CreatedAt
        });

        // Then load messages after the compaction boundary
        var recentMessages = await _messageRepository.GetMessagesAfterAsync(
            sessionId,
            compactionPart.MessageId,
            ct);

        messages.AddRange(recentMessages);
        return messages;""",
    lives="ullage.documents.conversation.store.ConversationStore.load",
)
@pytest.mark.says(
    "three-layer-management",
    "Testing Strategy",
    """public async Task LoadMessages_RespectsCompactionBoundary()
{
    // Verify messages before compaction are replaced with summary""",
    lives="ullage.documents.conversation.store.ConversationStore.load",
)
def test_after_a_compaction_the_summary_and_what_follows_the_boundary_are_loaded(
    store,
):
    ids = store.append("s", talk(3))
    store.mark_compacted(ids[5], "It was the cache.", tokens=1_234)
    summary, *rest = store.load("s")
    assert summary.message == {
        "role": "system",
        "content": "[Previous conversation compacted]\n\nIt was the cache.\n\n"
        "[End of compacted summary - 5 messages, 1234 tokens]",
    }
    assert summary.id == "00000000-0000-0000-0000-000000000000"
    assert summary.created_at == store.newest_compaction("s").created_at
    assert wire(rest) == talk(3)[5:], "the boundary's own message too"


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """var compactionPart = new CompactionPart
        {
            Id = Guid.NewGuid(),
            MessageId = messages[messagesToCompact.Count].Id,  // First non-compacted message
            Summary = summary,
            CompactedMessageCount = messagesToCompact.Count,
            CompactedTokenCount = accumulatedTokens,
            CreatedAt = DateTimeOffset.UtcNow
        };

        await _partRepository.CreateAsync(compactionPart, ct);

        // Mark old messages as compacted (don't delete, for audit trail)
        foreach (var message in messagesToCompact)
        {
            message.IsCompacted = true;
            await _messageRepository.UpdateAsync(message, ct);
        }""",
    lives="ullage.documents.conversation.store.ConversationStore.mark_compacted",
)
def test_what_is_compacted_is_marked_and_kept(store, path):
    ids = store.append("s", talk(3))
    part = store.mark_compacted(ids[3], "so far", tokens=77)
    assert wire(store.history("s")) == talk(3)
    assert [one.is_compacted for one in store.history("s")] == [True] * 3 + [
        False
    ] * 5
    with raw(path) as db:
        assert db.execute("SELECT * FROM CompactionParts").fetchall() == [
            (part.id, ids[3], "so far", 3, 77, "2027-01-15T08:00:00+00:00")
        ]


@pytest.mark.says(
    "three-layer-management",
    "Compaction Service",
    """// Find most recent compaction marker
        var compactionPart = await _partRepository.GetMostRecentCompactionAsync(sessionId, ct);""",
    lives="ullage.documents.conversation.store.ConversationStore.newest_compaction",
)
@pytest.mark.parametrize("second", [3, 7])
def test_the_newest_compaction_holds_wherever_its_boundary_is(store, second):
    ids = store.append("s", talk(4))
    store.mark_compacted(ids[5], "first", tokens=5)
    store.append("other", [say("Elsewhere.")])
    part = store.mark_compacted(ids[second], "second", tokens=7)
    assert store.newest_compaction("s") == part
    assert part.compacted_message_count == second
    assert wire(store.load("s"))[1:] == talk(4)[second:]
    assert [one.is_compacted for one in store.history("s")] == [
        n < second for n in range(10)
    ]
    assert store.newest_compaction("other") is None


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=8))
def test_load_is_the_newest_summary_and_the_tail_of_the_history(
    tmp_path_factory, steps
):
    store = ConversationStore(tmp_path_factory.mktemp("talks") / "chat.db")
    said, ids, standing = [], [], None
    for step, (turns, wish) in enumerate(steps):
        ids += store.append("s", talk(turns))
        said += talk(turns)
        begins = [
            n for n, one in enumerate(said) if n and one["role"] != "tool"
        ]
        boundary = begins[wish % len(begins)]
        store.mark_compacted(ids[boundary], f"summary {step}", tokens=step)
        standing = boundary, f"summary {step}"
    loaded = wire(store.load("s"))
    if standing is None:
        assert loaded == said
    else:
        assert standing[1] in loaded[0]["content"]
        assert loaded[1:] == said[standing[0] :]
    assert wire(store.history("s")) == said


def test_system_messages_at_the_head_stay_there(store):
    ids = store.append("s", [say("Be brief.", "system"), *talk(2)])
    part = store.mark_compacted(ids[4], "so far", tokens=9)
    assert part.compacted_message_count == 3
    head, summary, *rest = wire(store.load("s"))
    assert head == say("Be brief.", "system")
    assert "so far" in summary["content"]
    assert rest == talk(2)[3:]


def test_text_of_any_kind_comes_back_as_it_was(store):
    odd = [
        say("\ud83d\x00 naïve 漢字"),
        {**say("x"), "name": "who", "extra": {"deep": [None, 1.5]}},
    ]
    store.append("s", odd)
    assert wire(store.load("s")) == odd
    with pytest.raises(StoreError, match="lone surrogate"):
        store.append("\ud83d", odd)


def test_what_the_service_reads_is_beside_the_json(store, path):
    store.append("s", talk(1))
    with raw(path) as db:
        rows = db.execute(
            "SELECT Role, Content, ToolCallsJson FROM Messages"
        ).fetchall()
    assert [row[:2] for row in rows] == [
        ("user", "Look."),
        ("assistant", ""),
        ("tool", "result 0"),
        ("assistant", "Done."),
    ]
    assert json.loads(rows[1][2]) == called(0)[0]["tool_calls"]


def test_sdk_objects_are_kept_as_their_fields(store):
    from openai.types.chat import ChatCompletionMessage

    store.append(
        "s",
        [
            say("Look."),
            ChatCompletionMessage(role="assistant", content="Done."),
        ],
    )
    kept = store.load("s")[1].message
    assert (kept["role"], kept["content"]) == ("assistant", "Done.")


# ── boundaries, on every wire ────────────────────────────────────────────────────────────


def turns_on(format):
    """Two turns with a call each, as people write them in this format."""
    wire = FORMATS[format]
    messages = [user(format)]
    for number in range(2):
        name, arguments = "read_file", {"path": f"{number}.log"}
        match format:
            case "anthropic":
                call = {
                    "type": "tool_use",
                    "id": f"t{number}",
                    "name": name,
                    "input": arguments,
                }
                messages.append({"role": "assistant", "content": [call]})
            case "bedrock-converse":
                call = {
                    "toolUse": {
                        "toolUseId": f"t{number}",
                        "name": name,
                        "input": arguments,
                    }
                }
                messages.append({"role": "assistant", "content": [call]})
            case "gemini":
                call = {"functionCall": {"name": name, "args": arguments}}
                messages.append({"role": "model", "parts": [call]})
            case "openai-responses":
                text = json.dumps(arguments)
                call = {
                    "type": "function_call",
                    "call_id": f"t{number}",
                    "name": name,
                }
                call["arguments"] = text
                messages.append(call)
            case "ollama":
                call = {"function": {"name": name, "arguments": arguments}}
                messages.append(
                    {"role": "assistant", "content": "", "tool_calls": [call]}
                )
            case _:
                body = {"name": name, "arguments": json.dumps(arguments)}
                call = {
                    "id": f"t{number}",
                    "type": "function",
                    "function": body,
                }
                messages.append(
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [call],
                    }
                )
        result = wire.result(wire.call(call), "a result")
        match format:
            case "anthropic" | "bedrock-converse":
                result = {"role": "user", "content": [result]}
            case "gemini":
                result = {"role": "user", "parts": [result]}
        messages.append(result)
    return messages


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_what_is_loaded_is_legal_on_every_wire(path, format):
    store = ConversationStore(path, format=format)
    ids = store.append("s", turns_on(format))
    store.mark_compacted(ids[3], "so far", tokens=9)
    loaded = wire(store.load("s"))
    assert len(loaded) == 3
    spec = ToolSpec(
        "read_file", "Reads.", {"type": "object", "properties": {}}
    )
    tool = FORMATS[format].tool(spec)
    tools = (
        [{"functionDeclarations": [tool]}] if format == "gemini" else [tool]
    )
    head = {"max_tokens": 100} if format == "anthropic" else {}
    request = {
        "model": "m",
        **head,
        "tools": tools,
        FORMATS[format].key: loaded,
    }
    assert problems(request, format) == []


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_a_boundary_between_a_call_and_its_result_is_refused_with_a_better_one(
    path, format
):
    store = ConversationStore(path, format=format)
    ids = store.append("s", turns_on(format))
    before = dump(path)
    with pytest.raises(ConfigError, match=ids[3]):
        store.mark_compacted(ids[4], "so far", tokens=9)
    assert dump(path) == before


def test_what_cannot_be_meant_is_refused(store, path):
    ids = store.append("s", [say("Be brief.", "system"), *talk(1)])
    with pytest.raises(ConfigError, match="no message before it"):
        store.mark_compacted(ids[1], "nothing", tokens=0)
    with pytest.raises(StoreError, match="no such message"):
        store.mark_compacted("nobody", "nothing", tokens=0)
    with pytest.raises(FormatError, match=r"messages\[1\]"):
        store.append("s", [say("x"), {"role": "nobody"}])
    assert len(store.history("s")) == 5
    with pytest.raises(ConfigError, match="format"):
        ConversationStore(path, format="telex")


def test_what_the_service_refuses_is_not_kept_in_part(service):
    with raw(service) as db:
        db.execute(
            "CREATE TRIGGER no BEFORE INSERT ON Messages WHEN new.Content = 'stop' "
            "BEGIN SELECT RAISE(ABORT, 'not here'); END"
        )
    store = ConversationStore(service)
    with pytest.raises(StoreError, match="append failed"):
        store.append("s", [say("one"), say("stop")])
    assert len(store.load("s")) == 4


# ── a process may die at any step ────────────────────────────────────────────────────────


@forks
@silent
def test_killed_at_any_step_of_a_compaction_it_is_there_or_it_is_not(
    store, path
):
    ids = store.append("s", talk(3))
    without, after = store.load("s"), 0
    while dies(
        lambda: store.mark_compacted(ids[5], "so far", tokens=9), after
    ):
        again = ConversationStore(path)
        assert wire(again.history("s")) == talk(3)
        assert again.load("s") == without
        assert again.newest_compaction("s") is None
        after += 1
    assert after > 5
    assert wire(store.load("s"))[1:] == talk(3)[5:]
    assert [one.is_compacted for one in store.history("s")] == [
        n < 5 for n in range(8)
    ]


@forks
@silent
def test_killed_at_any_step_of_a_migration_the_next_one_completes_it(service):
    before, after = dump(service), 0
    while dies(lambda: ConversationStore(service), after):
        assert dump(service) == before
        after += 1
    assert after > 5
    assert len(ConversationStore(service).load("s")) == 4


@forks
@silent
def test_killed_while_messages_are_written_none_of_them_is_there(store):
    store.append("s", talk(1))
    after = random.Random(1).randrange(2, 5)
    assert dies(lambda: store.append("s", talk(3)), after)
    assert wire(store.load("s")) == talk(1)
