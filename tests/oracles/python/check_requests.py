#!/usr/bin/env python3
"""Checks captured model requests, or a provider, against the providers' official Python SDKs.

  check_requests.py [--api API] bodies FILE...   validates request bodies against the SDK's types
  check_requests.py [--api API] client URL       runs the SDK as a client of the provider at URL

API is anthropic (the default), openai (Chat Completions), openai-responses or ollama.

FILE is a JSON array of request bodies, or one body. A key that the SDK does not know is a
violation. `client` runs a conversation with a tool named `hello` until the model stops calling it;
the provider's script has to end it within 20 turns.

Exit code: 0 when everything holds, 1 with one line per violation, 2 when called wrongly.
"""

import argparse
import importlib
import json
import os
import pkgutil
import sys
import typing

MAX_TURNS = 20

# The packages with an API's types, and the type of its requests.
TYPES = {
    "anthropic": (["anthropic.types"], "anthropic.types.message_create_params", "MessageCreateParamsStreaming"),
    "openai": (
        ["openai.types.chat", "openai.types.shared_params"],
        "openai.types.chat.completion_create_params",
        "CompletionCreateParamsStreaming",
    ),
    "openai-responses": (
        ["openai.types.responses", "openai.types.shared_params"],
        "openai.types.responses.response_create_params",
        "ResponseCreateParamsStreaming",
    ),
    "ollama": (["ollama._types"], "ollama._types", "ChatRequest"),
}


def strict_types(api):
    """Imports the SDK's types so that pydantic checks all of them, and all of each.

    The SDK types lists as `Iterable`, which pydantic would check only while it is iterated, and
    leaves unknown keys alone. Both are changed before the types are used. Models of responses are
    not affected: they are no typed dictionaries. The SDK of Ollama has models for requests too, which are made to refuse unknown keys.
    """
    typing.Iterable = typing.List
    from pydantic import ConfigDict, TypeAdapter

    packages, module, name = TYPES[api]
    for package in packages:
        for types in modules(package):
            for value in vars(types).values():
                # A class with a configuration of its own is open on purpose.
                if hasattr(value, "__required_keys__") and "__pydantic_config__" not in vars(value):
                    value.__pydantic_config__ = ConfigDict(extra="forbid")
    params = getattr(importlib.import_module(module), name)
    if api == "ollama":
        close_models(params)
    return TypeAdapter(params)


def modules(package):
    """The modules of a package, or the one module that it is."""
    types = importlib.import_module(package)
    found = pkgutil.iter_modules(types.__path__) if hasattr(types, "__path__") else []
    return [types] + [importlib.import_module(f"{package}.{one.name}") for one in found]


def close_models(request):
    """Makes the models of a request refuse unknown keys, but for a tool's schema, which is open on purpose."""
    import ollama._types as types

    for model in (types.Message.ToolCall.Function, types.Message.ToolCall, types.Message, request):
        model.model_config["extra"] = "forbid"
        model.model_rebuild(force=True)


def violations_of(adapter, body):
    """The violations of one body, each with its place."""
    from pydantic import ValidationError

    try:
        adapter.validate_python(body, strict=True)
        return []
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        errors = [(one["loc"], one["type"] == "missing", one["msg"]) for one in found]
        return readable(errors, body)


def readable(errors, value, path=()):
    """The errors at and below `value`, without those of union members that were not meant.

    Where a union is checked, pydantic reports the errors of every member, with the member's label
    as one more step of the place. The member meant is the one whose tag fits, and of those the one
    with the fewest errors.
    """
    lines, children, members = [], {}, {}
    for loc, missing, message in errors:
        if not loc:
            lines.append(f"{'.'.join(map(str, path)) or 'body'}: {message}")
            continue
        is_data = (missing and len(loc) == 1) or step_into(value, loc[0]) is not None
        (children if is_data else members).setdefault(loc[0], []).append((loc[1:], missing, message))
    if members:
        lines += readable(min(members.values(), key=unlikeness), value, path)
    for step, below in children.items():
        inner = step_into(value, step)
        lines += readable(below, inner[0] if inner else None, (*path, step))
    return lines


def step_into(value, step):
    """What is at `step`, in a tuple; none when `value` has no such step."""
    if isinstance(value, dict) and step in value:
        return (value[step],)
    if isinstance(value, list) and isinstance(step, int):
        return (value[step],)
    return None


def unlikeness(errors):
    """How little a union's member was meant: another kind of value, another tag, many errors."""
    other_kind = any(loc == () for loc, _, _ in errors)
    other_tag = any(loc in (("type",), ("role",)) for loc, _, _ in errors)
    return (other_kind, other_tag, len(errors))


def check_bodies(api, files):
    adapter = strict_types(api)
    count = 0
    violations = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            bodies = json.load(file)
        for at, body in enumerate(bodies if isinstance(bodies, list) else [bodies]):
            count += 1
            violations += [f"{name}: request {at}: {one}" for one in violations_of(adapter, body)]
    if count == 0:
        violations.append("no request to check")
    return count, violations


def check_client(url):
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="dummy", max_retries=0, timeout=30)
    tool = {
        "name": "hello",
        "description": "Greets someone.",
        "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    messages = [{"role": "user", "content": "Greet Ada."}]
    for turn in range(1, MAX_TURNS + 1):
        try:
            with client.messages.stream(
                model="claude-test", max_tokens=256, messages=messages, tools=[tool]
            ) as stream:
                streamed = "".join(stream.text_stream)
                message = stream.get_final_message()
        except anthropic.AnthropicError as error:
            return turn, [f"turn {turn}: {type(error).__name__}: {error}"]
        text = "".join(block.text for block in message.content if block.type == "text")
        if streamed != text:
            return turn, [f"turn {turn}: streamed {streamed!r}, but the message says {text!r}"]
        if message.stop_reason is None:
            return turn, [f"turn {turn}: the stream ended without a stop reason"]
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return turn, []
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": f"Hello, {call.input}!"}
            for call in calls
        ]
        messages.append({"role": "assistant", "content": message.content})
        messages.append({"role": "user", "content": results})
    return MAX_TURNS, [f"the conversation goes on after {MAX_TURNS} turns"]


def client_of(api):
    """The function that runs the API's SDK as a client."""
    if api == "anthropic":
        return check_client
    # Python in isolated mode does not look beside the script.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import clients

    return {"openai": clients.chat, "openai-responses": clients.responses, "ollama": clients.ollama}[api]


def main():
    parser = argparse.ArgumentParser(description="Checks requests and streams with the official SDK.")
    parser.add_argument("--api", choices=TYPES, default="anthropic")
    modes = parser.add_subparsers(dest="mode", required=True)
    modes.add_parser("bodies").add_argument("files", nargs="+", metavar="FILE")
    modes.add_parser("client").add_argument("url", metavar="URL")
    options = parser.parse_args()
    if options.mode == "bodies":
        count, violations = check_bodies(options.api, options.files)
    else:
        count, violations = client_of(options.api)(options.url)
    for violation in violations:
        print(violation, file=sys.stderr)
    print(f"{options.mode}: {count} requests, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
