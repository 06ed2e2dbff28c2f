"""A provider that answers at once, as a process: ``python -m lab.bench.proxy.upstream``.

It prints its port. ``GET /sizes`` gives the sizes of the bodies it was sent since the last time.
"""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

_TEXT = "It is done."
_CHAT = {
    "id": "chatcmpl_1",
    "object": "chat.completion",
    "created": 1_795_000_000,
    "model": "gpt-4.1",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": _TEXT},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
}
_ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": _TEXT}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
}


def _answered(path: str, size: int) -> bytes:
    tokens = size // 4
    if path.endswith("/messages"):
        usage = {"input_tokens": tokens, "output_tokens": 9}
        return json.dumps({**_ANTHROPIC, "usage": usage}).encode()
    usage = {
        "prompt_tokens": tokens,
        "completion_tokens": 9,
        "total_tokens": tokens + 9,
    }
    return json.dumps({**_CHAT, "usage": usage}).encode()


async def _main() -> None:
    sizes: list[int] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        body = await request.read()
        if request.path == "/sizes":
            told, sizes[:] = json.dumps(sizes), []
            return web.Response(text=told)
        if request.method == "POST":
            sizes.append(len(body))
        said = _answered(request.path, len(body))
        return web.Response(body=said, content_type="application/json")

    def roomy(*given: object) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(*given, loop, client_max_size=1 << 30)  # type: ignore[arg-type]

    runner = web.ServerRunner(
        web.Server(answer, request_factory=roomy, access_log=None)
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
