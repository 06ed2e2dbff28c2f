"""The least a proxy of aiohttp at both ends costs: ``python -m lab.bench.proxy.floor URL``.

It reads a body, sends it on and gives the answer. It prints its port.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
from aiohttp import web


async def _main(url: str) -> None:
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), auto_decompress=False
    ) as client:

        async def answer(request: web.BaseRequest) -> web.StreamResponse:
            headers = {
                name: value
                for name, value in request.headers.items()
                if name.lower()
                not in ("host", "connection", "transfer-encoding")
            }
            body = await request.read()
            async with client.request(
                request.method,
                url + request.raw_path,
                headers=headers,
                data=body or None,
            ) as reply:
                response = web.StreamResponse(
                    status=reply.status, headers=reply.headers
                )
                await response.prepare(request)
                async for part in reply.content.iter_any():
                    await response.write(part)
                await response.write_eof()
                return response

        def roomy(*given: object) -> web.BaseRequest:
            loop = asyncio.get_running_loop()
            return web.BaseRequest(*given, loop, client_max_size=1 << 30)  # type: ignore[arg-type]

        server = web.Server(answer, request_factory=roomy, access_log=None)
        runner = web.ServerRunner(server)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
