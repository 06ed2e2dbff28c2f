"""An MCP server written out by hand, for what no SDK lets one say: ``python scripted.py``.

What a call is answered with is in its arguments, so that a test reads on one page.
"""

import json
import os
import signal
import sys
import time

PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
TEXT = {
    "type": "object",
    "properties": {"content": {"type": "string"}},
    "required": ["content"],
}
ROWS = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "name": {"type": "string"},
                },
                "required": ["id", "name"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["rows"],
    "additionalProperties": False,
}
STRICT = {
    "type": "object",
    "properties": {"key": {"type": "string", "pattern": "^a+$"}},
}


def line(n):
    return f"line {n} of a log: all is well here\n"


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said):
    return {"type": "text", "text": said}


def say(given, meta):
    return {"content": [text("".join(map(line, range(given["lines"]))))]}


def both(given, meta):
    said = say(given, meta)
    return {
        **said,
        "structuredContent": {"content": said["content"][0]["text"]},
    }


def rows(given, meta):
    made = {
        "rows": [{"id": n, "name": f"name {n}"} for n in range(given["rows"])]
    }
    return {"content": [text(json.dumps(made))], "structuredContent": made}


def strict(given, meta):
    key = {"key": "a" * given["chars"]}
    return {"content": [text("see the structure")], "structuredContent": key}


def result(given, meta):
    return given["result"]


def progress(given, meta):
    for n in range(given["steps"]):
        params = {
            "progressToken": meta["progressToken"],
            "progress": n,
            "total": given["steps"],
        }
        send(method="notifications/progress", params=params)
    return {"content": [text("done")]}


def flood(given, meta):
    for _ in range(given["kilobytes"]):
        os.write(2, b"e" * 1_023 + b"\n")
    return {"content": [text("said")]}


def crash(given, meta):
    if given["code"] < 0:
        os.kill(os.getpid(), -given["code"])
        time.sleep(60)
    os._exit(given["code"])


CALLS = {
    each.__name__: each
    for each in (say, both, rows, strict, result, progress, flood, crash)
}
SCHEMAS = {"both": TEXT, "rows": ROWS, "strict": STRICT}


def main(names):
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell may have it ignored
    for received in sys.stdin:
        message = json.loads(received)
        id, method, params = (
            message.get("id"),
            message.get("method"),
            message.get("params", {}),
        )
        if id is None or method is None:
            continue
        if method == "initialize":
            about = {"name": "scripted", "version": "1"}
            told = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
            }
            send(id=id, result={**told, "serverInfo": about})
        elif method == "tools/list":
            schema = {"type": "object"}
            tools = [
                {"name": name, "inputSchema": schema}
                for name in [*CALLS, *names]
            ]
            for tool in tools:
                if tool["name"] in SCHEMAS:
                    tool["outputSchema"] = SCHEMAS[tool["name"]]
            send(id=id, result={"tools": tools})
        elif method == "tools/call":
            meta = params.get("_meta", {})
            send(
                id=id,
                result=CALLS[params["name"]](
                    params.get("arguments", {}), meta
                ),
            )
        elif method == "ping":
            send(id=id, result={})
        else:
            send(id=id, error={"code": -32601, "message": f"no {method}"})


if __name__ == "__main__":
    main(sys.argv[1:])
