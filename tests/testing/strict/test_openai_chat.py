"""The stand-ins of chat completions refuse what OpenAI, and other servers, refuse."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest

from palaver.testing import strict
from tests.clients import opened

Json = dict[str, Any]

TOOLS: list[Json] = [
    {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
]
THOUGHT: Json = {"type": "reasoning", "text": "hm"}
CALL: Json = {"type": "function", "name": "bash", "arguments": '{"command": "ls"}'}
QUESTION: Json = {"role": "user", "content": "Go."}


@contextmanager
def talking(name: str) -> Iterator[tuple[strict.StrictServer, openai.OpenAI]]:
    """Return a running server with these rules, and a client of it."""
    with strict.openai_chat(server=name) as server:
        yield server, opened(openai.OpenAI(base_url=server.url, api_key="key", max_retries=0))


def sent(client: openai.OpenAI, server: strict.StrictServer, messages: list[Json], **fields: object) -> Json:
    """Send messages, and return the message of the answer."""
    body: dict[str, object] = {"model": "m", "messages": messages, "tools": TOOLS} | fields
    client.chat.completions.create(**{name: value for name, value in body.items() if value is not None})  # type: ignore[call-overload]
    return dict(copy.deepcopy(server.served[-1].body["choices"][0]["message"]))


def called(client: openai.OpenAI, server: strict.StrictServer, **fields: object) -> list[Json]:
    """Return a conversation with a thought, a call and its result."""
    server.answers([THOUGHT, CALL])
    message = sent(client, server, [QUESTION], **fields)
    return [QUESTION, message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "done"}]


@contextmanager
def refusal(text: str, status: int = 400) -> Iterator[None]:
    """Expect a refusal with this text and status."""
    with pytest.raises(openai.APIStatusError) as caught:
        yield
    assert caught.value.status_code == status
    assert text in f"{caught.value} {caught.value.body}"


def test_calls_are_written_as_the_api_nests_them() -> None:
    """A call in the form of the API, or flat, is the same answer."""
    nested = {"type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    with talking("openai") as (server, client):
        server.answers([CALL], [nested])
        first, second = (
            sent(client, server, [QUESTION], model="gpt-4o")["tool_calls"][0]["function"] for _ in range(2)
        )
    assert first == second == {"name": "bash", "arguments": '{"command": "ls"}'}


def test_answer_that_cannot_be_written_is_named() -> None:
    """A slip in a test's answer is status 500 and says what is missing, where the client would else see a lost connection."""
    with talking("openai") as (server, client):
        server.answers([{"type": "function", "arguments": "{}"}])
        with pytest.raises(openai.InternalServerError, match=r"the answer that the test gave it: KeyError: 'name'"):
            sent(client, server, [QUESTION], model="gpt-4o")
        assert [served.status for served in server.refused] == [500]


@pytest.mark.parametrize("model", ["gpt-5.6-luna", "gpt-6-sol", "gpt-6.2-astra"])
def test_newer_models_take_no_functions_in_chat(model: str) -> None:
    """Functions are refused from GPT-5.6 on, also where effort is unset; effort `none` helps where the model takes it."""
    with talking("openai") as (server, client):
        sent(client, server, [QUESTION], model=model, tools=None)
        with refusal(f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions."):
            sent(client, server, [QUESTION], model=model)
        if model == "gpt-6.2-astra":
            with refusal("Unsupported value: 'none'"):
                sent(client, server, [QUESTION], model=model, reasoning_effort="none")
            return
        sent(client, server, [QUESTION], model=model, reasoning_effort="none")


def test_openai_neither_returns_nor_takes_reasoning() -> None:
    """OpenAI has no field for reasoning in chat."""
    with talking("openai") as (server, client):
        messages = called(client, server, model="gpt-5.2")
        assert set(messages[1]) == {"role", "content", "tool_calls"}
        sent(client, server, messages, model="gpt-5.2")
        messages[1]["reasoning_content"] = "hm"
        with refusal("Unknown parameter: 'messages[1].reasoning_content'"):
            sent(client, server, messages, model="gpt-5.2")


def test_chat_parameters_of_reasoning_models() -> None:
    """Sampling is refused while a model reasons, and the old limit by all models that do."""
    with talking("openai") as (server, client):
        sent(client, server, [QUESTION], model="gpt-5.2", temperature=0.5)
        with refusal("Only the default (1) value is supported"):
            sent(client, server, [QUESTION], model="gpt-5.2", temperature=0.5, reasoning_effort="low")
        with refusal("Use 'max_completion_tokens' instead"):
            sent(client, server, [QUESTION], model="gpt-5.2", max_tokens=9)
        sent(client, server, [QUESTION], model="gpt-4.1", max_tokens=9, temperature=0.5)
        with refusal("does not exist", status=404):
            sent(client, server, [QUESTION])
        with refusal("Invalid value: 'compaction'"):
            sent(client, server, [{"role": "user", "content": [{"type": "compaction"}]}], model="gpt-4.1")
        call = {"id": "c" * 41, "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        with refusal("string too long"):
            sent(client, server, [QUESTION, {"role": "assistant", "content": None, "tool_calls": [call]},
                                  {"role": "tool", "tool_call_id": "c" * 41, "content": "x"}], model="gpt-4.1")  # fmt: skip


def test_chat_calls_have_results() -> None:
    """Each call has a result before anything else, and each result a call."""
    with talking("vllm") as (server, client):
        messages = called(client, server)
        sent(client, server, [*messages, QUESTION])
        with refusal("must be followed by tool messages responding to each 'tool_call_id'"):
            sent(client, server, [*messages[:2], QUESTION])
        with refusal("must be a response to a preceeding message with 'tool_calls'"):
            sent(client, server, [QUESTION, messages[2]])
        with refusal("expected a string, got null"):
            sent(client, server, [QUESTION, {"role": "assistant", "content": None}, QUESTION])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deepseek", "The `reasoning_content` in the thinking mode must be passed back to the API."),
        ("kimi", "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"),
    ],
)
def test_reasoning_must_come_back(name: str, text: str) -> None:
    """DeepSeek and Kimi refuse a call without its reasoning."""
    with talking(name) as (server, client):
        messages = called(client, server)
        assert messages[1]["reasoning_content"] == "hm"
        sent(client, server, messages)
        del messages[1]["reasoning_content"]
        with refusal(text):
            sent(client, server, messages)
        sent(client, server, messages, extra_body={"thinking": {"type": "disabled"}})


def test_deepseek_has_further_rules() -> None:
    """Content is null beside calls, and the old reasoner takes no reasoning."""
    with talking("deepseek") as (server, client):
        messages = called(client, server)
        with refusal("must be null or not empty"):
            sent(client, server, [messages[0], messages[1] | {"content": ""}, messages[2]])
        with refusal("must not contain `reasoning_content`"):
            sent(client, server, messages, model="deepseek-reasoner")


def test_mistral_has_a_closed_schema() -> None:
    """A foreign field is unprocessable; its own thinking chunks return; ids have nine characters; no user after a result."""
    with talking("mistral") as (server, client):
        messages = called(client, server)
        assert messages[1]["content"][0]["type"] == "thinking"
        sent(client, server, messages)
        with refusal("extra_forbidden", status=422):
            sent(client, server, [messages[0], messages[1] | {"reasoning_content": "hm"}, messages[2]])
        with refusal("Unexpected role 'user' after role 'tool'"):
            sent(client, server, [*messages, QUESTION])
        messages[1]["tool_calls"][0]["id"] = messages[2]["tool_call_id"] = "call_1"
        with refusal("must be a-z, A-Z, 0-9, with a length of 9"):
            sent(client, server, messages)


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_templates_read_arguments(name: str) -> None:
    """Servers with templates refuse arguments that are no JSON object."""
    with talking(name) as (server, client):
        messages = called(client, server)
        for arguments in ('{"command": "l', "[]"):
            messages[1]["tool_calls"][0]["function"]["arguments"] = arguments
            with pytest.raises(openai.BadRequestError):
                sent(client, server, messages)


def test_signed_details_return_unmodified() -> None:
    """OpenRouter's details and the signatures of Gemini's layer are checked."""
    with talking("openrouter") as (server, client):
        messages = called(client, server)
        sent(client, server, messages)
        messages[1]["reasoning_details"][1]["data"] = "edited"
        with refusal("Invalid `signature`"):
            sent(client, server, messages)
    with talking("gemini") as (server, client):
        messages = called(client, server)
        sent(client, server, messages)
        google = messages[1]["tool_calls"][0]["extra_content"]["google"]
        google["thought_signature"] = "edited"
        with refusal("Invalid thought signature."):
            sent(client, server, messages)
        del messages[1]["tool_calls"][0]["extra_content"]
        with refusal("Function call `bash` in the `2.` content block is missing a `thought_signature`."):
            sent(client, server, messages)
        sent(client, server, [*messages, {"role": "assistant", "content": "Done."}, QUESTION])


def test_ollama_stops_with_stop() -> None:
    """A streamed answer with calls may end with `stop`."""
    with talking("ollama") as (server, client):
        server.answers([CALL])
        chunks = list(
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Go."}], stream=True)
        )
        reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
        assert reasons == ["stop"]


@pytest.mark.parametrize("name", ["openai", "deepseek", "minimax", "vllm", "glm"])
def test_streamed_and_whole_completions_are_the_same(name: str) -> None:
    """The chunks add up to the whole message."""
    with talking(name) as (server, client):
        server.answers([THOUGHT, "Some words.", CALL], [THOUGHT, "Some words.", CALL])
        model = "gpt-5.2" if name == "openai" else "m"
        whole = sent(client, server, [QUESTION], model=model)
        added: Json = {"role": "assistant", "content": ""}
        for chunk in client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "Go."}], stream=True
        ):
            for choice in chunk.choices:
                delta = choice.delta.to_dict()
                for field, value in delta.items():
                    if isinstance(value, str) and field != "role":
                        added[field] = added.get(field, "") + value
        texts = {field: value for field, value in whole.items() if isinstance(value, str)}
        assert {field: value for field, value in added.items() if value} == texts
