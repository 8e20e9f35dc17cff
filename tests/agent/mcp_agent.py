"""An agent: starts the server of its configuration, splits a product, simulates, is refused once, states its tokens."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters


async def main() -> None:
    config = json.loads(Path(os.environ["ROOFLANG_MCP_CONFIG"]).read_text(encoding="utf-8"))
    with anyio.fail_after(60):
        async with Client(StdioServerParameters(**config["mcpServers"]["rooflang"])) as client:
            await client.call_tool("simulate", {})
            lines = "split_kernel up dim=ffn axis=x\nsplit_kernel down dim=ffn axis=x"
            await client.call_tool("apply", {"lines": lines})
            await client.call_tool("apply", {"lines": "merge_gather_broadcast up axis=x"})
            await client.call_tool("simulate", {})
    print(json.dumps({"tokens": 42}), file=sys.stderr)


anyio.run(main)
