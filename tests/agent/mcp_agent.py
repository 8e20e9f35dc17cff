"""A client that splits a product, simulates, is refused once, and states its tokens: an agent, as far as a server sees."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import anyio
from mcp import ClientSession
from mcp.server.stdio import stdio_server


async def main() -> None:
    # The streams of a server over stdio are those of a client, seen from the other end.
    async with stdio_server() as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await call(session, "simulate")
        await call(session, "apply", lines="split_kernel up dim=ffn axis=x\nsplit_kernel down dim=ffn axis=x")
        await call(session, "apply", lines="merge_gather_broadcast up axis=x")
        await call(session, "simulate")
    print(json.dumps({"tokens": 42}), file=sys.stderr)


async def call(session: ClientSession, name: str, **arguments: Any) -> None:
    with anyio.fail_after(60):
        await session.call_tool(name, arguments)


asyncio.run(main())
