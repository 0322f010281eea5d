"""The official Python SDK as a client of our server: prints, as JSON, what it was told.

usage: TOKEN=... client.py URL
"""

import asyncio
import importlib.metadata
import json
import os
import sys

TOKEN = {"Authorization": f"Bearer {os.environ['TOKEN']}"}


async def talk(session, field):
    """What both major versions do alike; only their names differ."""
    progress = []

    async def on_progress(done, _total, _message):
        progress.append(done)

    async def call(name, arguments, **more):
        result = await session.call_tool(name, arguments, **more)
        return [getattr(result, field("is_error")), [piece.text for piece in result.content]]

    return {
        "tools": [tool.name for tool in (await session.list_tools()).tools],
        "echo": await call("echo", {"a": 41, "text": "Zoë 👋"}),
        "steps": await call("test_tool_with_progress", {}, progress_callback=on_progress),
        "failing": await call("test_error_handling", {}),
        "unknown": await call("nope", {}),
        "progress": progress,
    }


async def with_1(url):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url, headers=TOKEN) as (read, write, _), ClientSession(read, write) as session:
        version = (await session.initialize()).protocolVersion
        camel = {"is_error": "isError"}
        return {"version": version, **await talk(session, camel.get)}


async def with_2(url):
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async with httpx2.AsyncClient(headers=TOKEN, timeout=30) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            return {"version": client.protocol_version, **await talk(client, str)}


major = importlib.metadata.version("mcp").split(".")[0]
print(json.dumps(asyncio.run({"1": with_1, "2": with_2}[major](sys.argv[1]))))
