"""What a version leaves behind, and the views it sent. Made once a release:

python -m tests.compat.make          writes tests/compat/VERSION, which is never changed again

    history.json, view.json          a conversation, and what was sent of it in the end
    kept.db, ledger.json             a session's store; its ledger, as a host keeps it
    entries.json                     the same ledger, as the state of a framework carries it
    chat.db, chat_kept.db            a `Conversation`, its messages and its store
    chat_view.json                   what was sent of it in the end
    server.sql                       both on a PostgreSQL server, as pg_dump writes them down
    worded.json, worded_kept.db      a conversation with everything that is in our words: results
                                     cut on arrival, a record, an account; thoughts are bound to it
"""

import json
import subprocess
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import msgspec

import ullage
from tests.stores.postgres.server import Server, program
from ullage import documents
from ullage.documents.conversation import (
    Conversation,
    ConversationStore,
    PostgresConversations,
)
from ullage.integrations._entries import entry_of
from ullage.stores import PostgresStore

HERE = Path(__file__).parent
MODEL, TENANT, CHAT, WINDOW_TOKENS = "gpt-4.1", "ada", "c-17", 12_000
THINKER, THINKER_WINDOW_TOKENS, SMALL_WINDOW_TOKENS = (
    "claude-opus-5-5",
    30_000,
    7_000,
)
"""A model whose thoughts are bound to the messages before them; the guard acts in the small one."""
FILES, LINES = 14, 90
TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
        },
    },
}


def session(store, **more):
    """A session as the one that made the store."""
    limits = ullage.Limits(window_tokens=WINDOW_TOKENS)
    return ullage.Session(
        MODEL, limits=limits, store=store, tenant=TENANT, **more
    )


def request(history):
    """The keyword arguments of the call."""
    return {"model": MODEL, "messages": history, "tools": [TOOL]}


def step(number, lines=LINES):
    """A call of the model's, and what its tool returned."""
    names = [f"{number:02d}:{line:03d}" for line in range(lines)]
    text = "".join(
        f"{name} {sha256(name.encode()).hexdigest()[:24]}\n" for name in names
    )
    function = {
        "name": "read_file",
        "arguments": json.dumps({"path": f"part{number}.txt"}),
    }
    call = {"id": f"call_{number}", "type": "function", "function": function}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [
        said,
        {"role": "tool", "tool_call_id": call["id"], "content": text},
    ]


def reply(number, said, prompt_tokens):
    """A reply of the provider's."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 20}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [
            {"index": 0, "message": said, "finish_reason": "tool_calls"}
        ],
        "usage": {**usage, "total_tokens": prompt_tokens + 20},
    }


def conversation(kept, store):
    """A chat as the one that was left."""
    limits = ullage.Limits(window_tokens=WINDOW_TOKENS)
    policy = documents.load("three_layer", {"EnableDiskSpillover": False})
    return Conversation(
        kept,
        CHAT,
        MODEL,
        policy=policy,
        limits=limits,
        store=store,
        tenant=TENANT,
    )


def played(store):
    """A conversation in which old results leave the window three times: history, view, ledger."""
    writer = session(store)
    history = [
        {
            "role": "user",
            "content": "Which files are broken? Never touch notes.txt.",
        }
    ]
    for number in range(FILES):
        view = writer.fit(request(history))
        said, result = step(number, LINES * (3 if number == 5 else 1))
        writer.observe(reply(number, said, view.sent.estimate))
        history += [said, result]
    view, ledger = writer.fit(request(history))["messages"], writer.news()
    writer.close()
    return history, view, ledger


def chatted(kept, store):
    """A chat that is compacted on the way: what was sent in the end."""
    chat = conversation(kept, store)
    chat.append(
        [
            {
                "role": "user",
                "content": "Which parts are broken? Never touch notes.txt.",
            }
        ]
    )
    for number in range(FILES):
        view = chat.fit({"model": MODEL, "tools": [TOOL]})
        said, result = step(number)
        chat.session.observe(reply(number, said, view.sent.estimate))
        chat.append([said, result])
    view = chat.fit({"model": MODEL, "tools": [TOOL]})["messages"]
    chat.close()
    return view


def thinking_session(store, window_tokens=THINKER_WINDOW_TOKENS, **more):
    """A session as the one that made the store of the thoughtful conversation."""
    limits = ullage.Limits(window_tokens=window_tokens)
    return ullage.Session(
        THINKER, limits=limits, store=store, tenant=TENANT, **more
    )


def thinking_request(history):
    """The request for the next reply of a model that thinks."""
    tools = [
        {
            "name": "bash",
            "description": "Runs.",
            "input_schema": {"type": "object"},
        }
    ]
    thinking = {"type": "adaptive"}
    more = {"max_tokens": 1_000, "thinking": thinking, "tools": tools}
    return {"model": THINKER, "messages": history, **more}


def thought_step(number, lines):
    """A thought and a call of the model's, and what its tool returned."""
    thought = {
        "type": "thinking",
        "thinking": "hm",
        "signature": f"c2ln{number:04d}" * 8,
    }
    call = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "bash",
        "input": {"n": number},
    }
    text = "".join(
        f"{number}: line {line} of the log\n" for line in range(lines)
    )
    result = {
        "type": "tool_result",
        "tool_use_id": call["id"],
        "content": text,
    }
    return [
        {"role": "assistant", "content": [thought, call]},
        {"role": "user", "content": [result]},
    ]


def worded(store):
    """A conversation with a cut on arrival, a record and an account: history and last view."""
    history = [
        {
            "role": "user",
            "content": "Why does the gate stay shut? Never touch notes.txt.",
        }
    ]

    def work(numbers, window_tokens):
        """Steps of the model's; of each tenth the result is cut on arrival."""
        with thinking_session(store, window_tokens) as writer:
            for number in numbers:
                writer.fit(thinking_request(history))
                history.extend(
                    thought_step(number, 190 if number % 10 else 900)
                )
            return writer.fit(thinking_request(history))["messages"]

    work(range(1, 9), SMALL_WINDOW_TOKENS)
    answer = {"role": "assistant", "content": "The hinge is dry."}
    history.extend([answer, {"role": "user", "content": "Then oil it."}])
    return history, work(range(9, 32), THINKER_WINDOW_TOKENS)


def dumped(server):
    """Everything in the server's database, as statements for any client."""
    played(PostgresStore(server.url))
    with closing(PostgresConversations(server.url)) as kept:
        chatted(kept, PostgresStore(server.url))
    text = subprocess.run(
        [
            program("pg_dump"),
            "--inserts",
            "--no-owner",
            "--schema=ullage",
            server.url,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return "".join(
        f"{line}\n"
        for line in text.splitlines()
        if not line.startswith(("\\", "--"))
    )


def main(folder):
    """All of it, made in a folder of its own."""
    folder.mkdir(parents=True)
    history, view, ledger = played(folder / "kept.db")
    worded_history, worded_view = worded(folder / "worded_kept.db")
    chat_view = chatted(
        ConversationStore(folder / "chat.db"), folder / "chat_kept.db"
    )
    server = Server()
    try:
        (folder / "server.sql").write_text(dumped(server), encoding="utf-8")
    finally:
        server.stop()
    for name, value in {
        "history": history,
        "view": view,
        "ledger": ledger,
        "entries": dict(map(entry_of, ledger)),
        "chat_view": chat_view,
        "worded": {"history": worded_history, "view": worded_view},
    }.items():
        (folder / f"{name}.json").write_bytes(
            msgspec.json.encode(value) + b"\n"
        )


if __name__ == "__main__":
    main(HERE / ullage.__version__)
