"""The official Python SDK as a client of a server on a pipe: prints, as JSON, what it was told.

usage: pipe.py PROGRAM ARGUMENTS...
"""

import asyncio
import importlib.metadata
import json
import sys

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client


async def talk(session, version):
    tools = [tool.name for tool in (await session.list_tools()).tools]
    called = await session.call_tool("hello", {"name": "Ada"})
    return {"version": version, "tools": tools, "hello": [piece.text for piece in called.content]}


async def with_1(server):
    from mcp import ClientSession

    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        return await talk(session, (await session.initialize()).protocolVersion)


async def with_2(server):
    from mcp import Client

    async with Client(stdio_client(server)) as client:
        return await talk(client, client.protocol_version)


server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
major = importlib.metadata.version("mcp").split(".")[0]
print(json.dumps(asyncio.run({"1": with_1, "2": with_2}[major](server))))
