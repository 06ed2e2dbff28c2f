"""Makes `tests/fixtures/wire` again: what the vendors' SDKs really send.

    python -m tests.capture

Each conversation is given to the official SDK, which sends it to a provider on the loopback;
the body of the request is kept byte for byte. The conversations are written by us: one of
every block, item and part (`tests.wire`), and agent loops in which the history is made of the
SDK's own objects. No key, no network, no model.
"""

import importlib.metadata
import json
import sys
from pathlib import Path

from tests.servers import Call, Reply, provider
from tests.servers.loops import READ, loop, request, user
from tests.wire import history, in_bytes
from ullage.wires import FORMATS

FOLDER = Path(__file__).parent / "fixtures" / "wire"
SDKS = {
    "anthropic": "anthropic",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "gemini": "google-genai",
    "ollama": "ollama",
    "bedrock-converse": "boto3",
}
_FILES = ("src/café.py", "notes/猫.md", 'a "quoted" name', "empty")
_CONTENTS = {
    "src/café.py": "def naïve():\n    return '🙂'\n",
    "notes/猫.md": "# 猫\n\nAll is well.\t<b>&amp;</b>\u2028\x7f\n",
    'a "quoted" name': json.dumps(
        {"rows": [1, 2.5, 1e-9, None, True], "path": "C:\\a"}
    ),
    "empty": "",
}
SCRIPT = (
    Reply(
        "I shall look at two files.",
        [Call("read_file", {"path": f}) for f in _FILES[:2]],
        "Hm.",
    ),
    Reply(
        "",
        [
            Call(
                "read_file",
                {"path": _FILES[2], "lines": [1, 2.5], "all": None},
            )
        ],
        "More.",
    ),
    Reply("And the last.", [Call("read_file", {"path": _FILES[3]})]),
    Reply("The cache is cold; naïve() is warm 🙂.", thought="Now I know."),
)


def bodies(format):
    """The name and the bytes of every capture of a format."""
    with provider(format, ["Done."]) as server:
        messages = history(format)
        messages = (
            in_bytes(messages) if format == "bedrock-converse" else messages
        )
        yield "every-part", _sent(server, request(format, messages))
    with provider(format, SCRIPT) as server:
        messages = loop(
            server, None, lambda name, given: _CONTENTS[given["path"]]
        )
        yield "agent-loop", server.requests[-1].raw
    with provider(format, ["Done."]) as server:
        go_on = user(format, "Thanks.")
        tools = (
            (READ,) if format == "bedrock-converse" else ()
        )  # else its calls are refused (B8)
        yield (
            "next-task",
            _sent(server, request(format, [*messages, go_on], tools=tools)),
        )


def _sent(server, asked):
    client = server.client()
    server.ask(client.beta if server.format == "anthropic" else client, asked)
    return server.requests[-1].raw


def main():
    """Write every capture, and say what made it."""
    for format in FORMATS:
        for name, raw in bodies(format):
            (FOLDER / f"{format}-{name}.json").write_bytes(raw)
    names = sorted(set(SDKS.values()))
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in names
    )
    sys.stdout.write(f"made with {versions}\n")


if __name__ == "__main__":
    main()
