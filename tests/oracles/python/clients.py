"""The SDKs of OpenAI and Ollama as clients of a provider whose script calls a tool `hello` and then answers.

Each function returns how many requests it made and the violations that it found. What a stream says piece by piece has to be what the
SDK makes of it as a whole, and the counts have to be there.
"""

import json

MAX_TURNS = 20
PARAMETERS = {"type": "object", "properties": {"name": {"type": "string"}}}
FUNCTION = {"name": "hello", "description": "Greets someone.", "parameters": PARAMETERS}


def chat(url):
    """Chat Completions."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="dummy", max_retries=0, timeout=30)
    tools = [{"type": "function", "function": FUNCTION}]
    messages = [{"role": "user", "content": "Greet Ada."}]

    def turn():
        streamed = ""
        with client.chat.completions.stream(
            model="gpt-test", messages=messages, tools=tools, stream_options={"include_usage": True}
        ) as stream:
            for event in stream:
                if event.type == "content.delta":
                    streamed += event.delta
            whole = stream.get_final_completion()
        choice = whole.choices[0]
        if choice.finish_reason is None:
            return False, ["the stream ended without a reason"]
        found = differ(streamed, choice.message.content or "")
        found += counts(whole.usage and whole.usage.prompt_tokens, whole.usage and whole.usage.completion_tokens)
        calls = choice.message.tool_calls or []
        messages.append(
            {
                "role": "assistant",
                "content": choice.message.content,
                "tool_calls": [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": call.function.name, "arguments": call.function.arguments},
                    }
                    for call in calls
                ],
            }
        )
        for call in calls:
            found += arguments(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "Hello!"})
        return bool(calls), found

    return conversation(turn, openai.OpenAIError)


def responses(url):
    """The Responses API, with nothing stored."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key="dummy", max_retries=0, timeout=30)
    tools = [{"type": "function", "strict": False, **FUNCTION}]
    items = [{"role": "user", "content": "Greet Ada."}]

    def turn():
        streamed, whole = "", None
        with client.responses.stream(
            model="gpt-test", input=items, tools=tools, store=False, include=["reasoning.encrypted_content"]
        ) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    streamed += event.delta
                if event.type in ("response.completed", "response.incomplete"):
                    whole = event.response
        if whole is None:
            return False, ["the stream ended without a response"]
        found = differ(streamed, whole.output_text)
        found += counts(whole.usage and whole.usage.input_tokens, whole.usage and whole.usage.output_tokens)
        calls = [item for item in whole.output if item.type == "function_call"]
        # The SDK adds fields of its own to what it parsed.
        own = {"parsed_arguments": True, "content": {"__all__": {"parsed"}}}
        for item in whole.output:
            exclude = own if item.type in ("function_call", "message") else None
            items.append(item.model_dump(exclude=exclude, exclude_none=True))
        for call in calls:
            found += arguments(call.name, json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": "Hello!"})
        return bool(calls), found

    return conversation(turn, openai.OpenAIError)


def ollama(url):
    """Ollama's native API."""
    import ollama

    client = ollama.Client(host=url, timeout=30)
    tools = [{"type": "function", "function": FUNCTION}]
    messages = [{"role": "user", "content": "Greet Ada."}]

    def turn():
        text, thinking, calls, last = "", "", [], None
        for part in client.chat(model="test", messages=messages, tools=tools, stream=True):
            text += part.message.content or ""
            thinking += part.message.thinking or ""
            calls += part.message.tool_calls or []
            last = part
        if last is None or not last.done:
            return False, ["the stream ended without `done`"]
        found = [] if last.done_reason else ["the last line has no reason"]
        found += counts(last.prompt_eval_count, last.eval_count)
        messages.append({"role": "assistant", "content": text, "thinking": thinking, "tool_calls": calls})
        for call in calls:
            found += arguments(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_name": call.function.name, "content": "Hello!"})
        return bool(calls), found

    return conversation(turn, (ollama.ResponseError, ollama.RequestError))


def conversation(turn, errors):
    """Takes turns until one makes no call."""
    import httpx

    for number in range(1, MAX_TURNS + 1):
        try:
            goes_on, found = turn()
        except (errors, httpx.HTTPError, ValueError) as error:
            return number, [f"turn {number}: {type(error).__name__}: {error}"]
        if found or not goes_on:
            return number, [f"turn {number}: {one}" for one in found]
    return MAX_TURNS, [f"the conversation goes on after {MAX_TURNS} turns"]


def differ(streamed, whole):
    return [] if streamed == whole else [f"streamed {streamed!r}, but the whole says {whole!r}"]


def counts(read, written):
    return [] if read and written else [f"no counts: {read!r} read, {written!r} written"]


def arguments(name, given):
    sound = name == "hello" and isinstance(given, dict) and "name" in given
    return [] if sound else [f"not the scripted call: {name} {given!r}"]
