"""What a version leaves behind: a store, a ledger, and the view it sent. Made once a release:

python -m tests.compat.make          writes tests/compat/VERSION, which is never changed again
"""

import json
from hashlib import sha256
from pathlib import Path

import msgspec

import ullage

HERE = Path(__file__).parent
MODEL, TENANT, WINDOW_TOKENS = "gpt-4.1", "ada", 12_000
FILES, LINES = 14, 90
TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


def session(store, **more):
    """A session as the one that made the store."""
    limits = ullage.Limits(window_tokens=WINDOW_TOKENS)
    return ullage.Session(MODEL, limits=limits, store=store, tenant=TENANT, **more)


def request(history):
    """The keyword arguments of the call."""
    return {"model": MODEL, "messages": history, "tools": [TOOL]}


def step(number, lines=LINES):
    """A call of the model's, and what its tool returned."""
    names = [f"{number:02d}:{line:03d}" for line in range(lines)]
    text = "".join(f"{name} {sha256(name.encode()).hexdigest()[:24]}\n" for name in names)
    function = {"name": "read_file", "arguments": json.dumps({"path": f"part{number}.txt"})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return [said, {"role": "tool", "tool_call_id": call["id"], "content": text}]


def reply(number, said, prompt_tokens):
    """A reply of the provider's."""
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 20}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}],
        "usage": {**usage, "total_tokens": prompt_tokens + 20},
    }


def main(folder):
    """A conversation in which old results leave the window three times."""
    folder.mkdir(parents=True)
    writer = session(folder / "kept.db")
    history = [{"role": "user", "content": "Which files are broken? Never touch notes.txt."}]
    for number in range(FILES):
        view = writer.fit(request(history))
        said, result = step(number, LINES * (3 if number == 5 else 1))
        writer.observe(reply(number, said, view.sent.estimate))
        history += [said, result]
    view = writer.fit(request(history))
    (folder / "history.json").write_text(json.dumps(history) + "\n", encoding="utf-8")
    (folder / "view.json").write_text(json.dumps(view["messages"]) + "\n", encoding="utf-8")
    (folder / "ledger.json").write_bytes(msgspec.json.encode(writer.news()) + b"\n")
    writer.close()


if __name__ == "__main__":
    main(HERE / ullage.__version__)
