"""The stand-in of the Responses API refuses what OpenAI refuses, and withholds reasoning whose prefix changed."""

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

NEWEST, OLDER = "gpt-6.2-sol", "gpt-5.6-sol"
TOOL: Json = {"type": "function", "name": "bash", "parameters": {"type": "object", "properties": {}}, "strict": False}
THOUGHT: Json = {"type": "reasoning"}
CALL: Json = {"type": "function_call", "name": "bash", "arguments": '{"command": "ls"}'}
QUESTION: Json = {"role": "user", "content": "And?"}


class Talk:
    """A conversation with the stand-in through the vendor's client."""

    def __init__(self, server: strict.StrictServer, model: str = NEWEST, **fields: object) -> None:
        self.server, self.items = server, list[Json]()
        self.fields: dict[str, object] = {"model": model, "tools": [TOOL], "store": False} | fields
        self.client = opened(openai.OpenAI(base_url=server.url, api_key="key", max_retries=0))

    def ask(self, said: Json | str | list[Json], *answer: Json | str) -> Json:
        """Ask, and keep the question and the answer."""
        if answer:
            self.server.answers(answer)
        given = [{"role": "user", "content": said}] if isinstance(said, str) else said
        self.items += given if isinstance(given, list) else [given]
        response = self.send()
        self.items += response["output"]
        return response

    def send(self, items: list[Json] | None = None, **fields: object) -> Json:
        """Send items, or the history, and return the response."""
        body = {"input": self.items if items is None else items} | self.fields | fields
        self.client.responses.create(**{name: value for name, value in body.items() if value is not None})  # type: ignore[call-overload]
        return copy.deepcopy(self.server.served[-1].body)

    def outputs(self, **fields: object) -> list[Json]:
        """Return outputs for the calls of the history that have none."""
        calls = {item["call_id"]: item["type"] for item in self.items if "call_id" in item}
        return [
            {"type": f"{kind}_output", "call_id": call, "output": "done"} | fields
            for call, kind in calls.items()
            if "output" not in kind
        ]


@pytest.fixture
def server() -> Iterator[strict.StrictServer]:
    """Return a running stand-in."""
    with strict.openai_responses() as running:
        yield running


@contextmanager
def refusal(text: str, status: int = 400, code: str | None = None) -> Iterator[None]:
    """Expect a refusal with this text, status and code."""
    with pytest.raises(openai.APIStatusError) as caught:
        yield
    assert caught.value.status_code == status
    assert text in caught.value.message
    assert caught.value.code == code


def withheld(response: Json) -> list[str]:
    """Return the reasons for which reasoning was withheld."""
    return [entry["reason"] for entry in response["input_transformations"]]


def long_talk(server: strict.StrictServer, model: str = NEWEST, **fields: object) -> Talk:
    """Return a conversation with reasoning, a call and its output."""
    talk = Talk(server, model, **fields)
    talk.ask([{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "List."}], THOUGHT, CALL)
    talk.ask(talk.outputs(), THOUGHT, "Two files.")
    talk.items.append(QUESTION)
    return talk


def test_an_unchanged_prefix_keeps_reasoning(server: strict.StrictServer) -> None:
    """What is appended, and what is no prefix, keeps all reasoning."""
    talk = long_talk(server)
    extra: list[Json] = [
        {"type": "additional_tools", "role": "developer", "tools": [TOOL | {"name": "more"}]},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"role": "developer", "content": "Be quick."},
    ]
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "bash"}]}
    assert withheld(talk.send()) == []
    assert withheld(talk.send([*talk.items, *extra])) == []
    assert withheld(talk.send(instructions="This turn only.", tool_choice=allowed, max_output_tokens=99)) == []


CHANGES: dict[str, Json] = {
    "tools": {"tools": [TOOL, TOOL | {"name": "more"}]},
    "a format": {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}},
    "no tools": {"tools": None},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_head_withholds_reasoning(server: strict.StrictServer, change: str) -> None:
    """GPT-6.2 withholds what was bound to other tools or another format, and lists it; older models do not."""
    assert withheld(long_talk(server).send(**CHANGES[change])) == ["prefix_mismatch"] * 2
    assert withheld(long_talk(server, OLDER).send(**CHANGES[change])) == []


def test_a_changed_item_withholds_reasoning(server: strict.StrictServer) -> None:
    """A word of an earlier item counts; ids and statuses do not."""
    talk = long_talk(server)
    items = copy.deepcopy(talk.items)
    items[0]["content"] = "Be long."
    assert withheld(talk.send(items)) == ["prefix_mismatch"] * 2
    items = copy.deepcopy(talk.items)
    items[4]["output"] = ""
    assert withheld(talk.send(items)) == ["prefix_mismatch"]
    plain = [{name: value for name, value in item.items() if name != "status"} for item in talk.items]
    assert withheld(talk.send(plain)) == []


def test_reasoning_is_read_within_a_family(server: strict.StrictServer) -> None:
    """A switch between families withholds reasoning without an error."""
    assert withheld(long_talk(server, OLDER).send(model="gpt-6-sol")) == ["model_mismatch"] * 2
    assert withheld(long_talk(server, "gpt-6.2-astra").send(model=NEWEST)) == []


def test_foreign_reasoning_is_refused(server: strict.StrictServer) -> None:
    """Encrypted content that is edited, or of another organization, is refused."""
    talk = long_talk(server)
    talk.items[2]["encrypted_content"] = "gAAA"
    with refusal("could not be decrypted or parsed", code="invalid_encrypted_content"):
        talk.send()
    with strict.openai_responses(organizations={"other": "elsewhere"}) as other:
        talk = long_talk(other)
        talk.client = talk.client.with_options(api_key="other")
        with refusal("did not match the target organization", code="invalid_encrypted_content"):
            talk.send()


def test_reasoning_and_what_follows_come_together(server: strict.StrictServer) -> None:
    """Reasoning without its following item is refused, and so is an item with its id without its reasoning; items need no ids."""
    talk = long_talk(server)
    assert (
        withheld(talk.send([{name: value for name, value in item.items() if name != "id"} for item in talk.items]))
        == []
    )
    with refusal("of type 'reasoning' was provided without its required following item"):
        talk.send([*talk.items[:3], QUESTION])
    with refusal("of type 'function_call' was provided without its required 'reasoning' item"):
        talk.send([item for item in talk.items if item.get("type") != "reasoning"])
    plain = [
        {name: value for name, value in item.items() if name != "id"}
        for item in talk.items
        if item.get("type") != "reasoning"
    ]
    assert withheld(talk.send(plain)) == []
    with refusal("Duplicate item found with id", code="duplicate_item"):
        talk.send([*talk.items, talk.items[2], talk.items[3]])


OWN_CALLS: list[tuple[Json, Json]] = [
    (CALL, {}),
    ({"type": "custom_tool_call", "name": "grep", "input": "x"}, {}),
    ({"type": "shell_call", "action": {"commands": ["ls"]}}, {"output": []}),
    ({"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}}, {"status": "completed"}),
]


@pytest.mark.parametrize(
    ("call", "fields"), OWN_CALLS, ids=lambda value: value.get("type", "") if isinstance(value, dict) else ""
)
def test_calls_have_outputs_of_their_kind(server: strict.StrictServer, call: Json, fields: Json) -> None:
    """A call of any kind has one output of its kind."""
    talk = Talk(server)
    talk.ask("Go.", THOUGHT, call)
    outputs = talk.outputs(**fields)
    assert withheld(talk.send([*talk.items, *outputs])) == []
    with refusal("No tool output found for"):
        talk.send([*talk.items, QUESTION])
    with refusal("No tool call found for"):
        talk.send([QUESTION, *outputs])
    other = "function_call_output" if call is not CALL else "custom_tool_call_output"
    with refusal("No tool call found for"):
        talk.send([*talk.items, {"type": other, "call_id": outputs[0]["call_id"], "output": "x"}])


def test_calls_of_programs_keep_their_caller(server: strict.StrictServer) -> None:
    """A program goes back with its fingerprint; outputs repeat the caller of their call."""
    program = {"type": "program", "call_id": "p1", "code": "bash()"}
    caller = {"type": "program", "caller_id": "p1"}
    talk = Talk(server)
    talk.ask("Go.", THOUGHT, program, CALL | {"caller": caller})
    outputs = talk.outputs()
    outputs = [output | {"caller": caller} for output in outputs if output["type"] == "function_call_output"]
    talk.send([*talk.items, *outputs])
    with refusal("must be that of its call", code="invalid_value"):
        talk.send([*talk.items, {name: value for name, value in outputs[0].items() if name != "caller"}])
    with refusal("No program found with call_id p1", code="invalid_value"):
        talk.send(
            [item | {"id": None} for item in talk.items if item.get("type") not in ("program", "reasoning")] + outputs
        )
    talk.items[2]["code"] = "other()"
    with refusal("fingerprint is not valid", code="invalid_program_fingerprint"):
        talk.send([*talk.items, *outputs])


def test_items_of_the_server_go_back_verbatim(server: strict.StrictServer) -> None:
    """Items of tools that the server runs, and of no known kind, are accepted as they were sent."""
    items: list[Json] = [
        {"type": "mcp_list_tools", "server_label": "files"},
        {"type": "mcp_call", "server_label": "files", "name": "ls", "arguments": "{}", "output": "a"},
        {"type": "web_search_call", "action": {"type": "search", "query": "q"}},
        {"type": "novelty", "x": 1},
    ]
    talk = Talk(server)
    talk.server.answers([*items, THOUGHT, "Well."])
    body = {"model": NEWEST, "input": "Go.", "store": False}
    headers = {"authorization": "Bearer key"}
    output = server.ask("/v1/responses", body, headers).body["output"]
    history = [QUESTION, *output, QUESTION]
    assert server.ask("/v1/responses", body | {"input": history}, headers).status == 200
    edited = [item | {"x": 2} if item["type"] == "novelty" else item for item in output]
    assert (
        "Invalid value: 'novelty'"
        in server.ask("/v1/responses", body | {"input": [*edited, QUESTION]}, headers).message
    )


def test_compaction_items(server: strict.StrictServer) -> None:
    """A trigger comes last; a threshold puts an item before the answer; what precedes the newest may be dropped."""
    talk = long_talk(server)
    item = talk.send([*talk.items, {"type": "compaction_trigger"}])["output"]
    assert [made["type"] for made in item] == ["compaction"]
    talk.send([*item, QUESTION])
    with refusal("must be the final input item", code="invalid_value"):
        talk.send([{"type": "compaction_trigger"}, QUESTION])
    talk.items.pop()
    talk.fields["context_management"] = [{"type": "compaction", "compact_threshold": 1}]
    made = talk.ask("And?", THOUGHT, "So.")["output"]
    assert [part["type"] for part in made] == ["compaction", "reasoning", "message"]
    at = talk.items.index(made[0])
    for items in (talk.items, talk.items[at:]):
        assert withheld(talk.send([*items, QUESTION])) == []
    edited = [made[0] | {"encrypted_content": "gAAA"}, *made[1:], QUESTION]
    with refusal("could not be verified", code="invalid_encrypted_content"):
        talk.send(edited)


def test_parameters_of_reasoning_models(server: strict.StrictServer) -> None:
    """Sampling is refused, and effort `none` by the models that always reason."""
    talk = Talk(server)
    for name in ("temperature", "top_p"):
        with refusal(f"Unsupported parameter: '{name}'", code="unsupported_parameter"):
            talk.send([QUESTION], **{name: 0.5})
    with refusal("Unsupported value: 'none' is not supported with the 'gpt-6.2-sol' model", code="unsupported_value"):
        talk.send([QUESTION], reasoning={"effort": "none"})
    assert [item["type"] for item in talk.send([QUESTION], model=OLDER, reasoning={"effort": "none"})["output"]] == [
        "message"
    ]
    Talk(server, "gpt-4.1").send([QUESTION], temperature=0.5)


def test_state_on_the_server_is_refused(server: strict.StrictServer) -> None:
    """The stand-in keeps nothing: ids of earlier responses and items are unknown, as after `store: false`."""
    talk = Talk(server)
    with refusal("Previous response with id 'r' not found", code="previous_response_id_not_found"):
        talk.send([QUESTION], previous_response_id="r")
    with refusal("Items are not persisted when `store` is set to false", status=404):
        talk.send([{"type": "item_reference", "id": "rs_1"}, QUESTION])
    with refusal("does not exist", status=404, code="model_not_found"):
        talk.send([QUESTION], model="gpt-9")
    with refusal("Unknown parameter: 'betas'", code="unknown_parameter"):
        talk.send([QUESTION], extra_body={"betas": []})
    with refusal("Unknown parameter: 'input[0].name'", code="unknown_parameter"):
        talk.send([QUESTION | {"name": "x"}])
    with refusal("string too long", code="string_above_max_length"):
        talk.send([CALL | {"call_id": "c" * 65}, QUESTION])
    with refusal("string does not match pattern", code="invalid_value"):
        talk.send([CALL | {"call_id": "c", "name": "a b"}, QUESTION])
    with refusal("Supported values are: 'output_text' and 'refusal'", code="invalid_value"):
        talk.send([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}, QUESTION])


def test_streamed_and_whole_responses_are_the_same(server: strict.StrictServer) -> None:
    """The vendor's client puts the events together to the whole response."""
    content: list[Json | str] = [
        {"type": "compaction"},
        THOUGHT,
        "Some words.",
        CALL,
        {"type": "custom_tool_call", "name": "grep", "input": "x"},
    ]
    server.answers(content, content, strict.NextAnswer(["Cut."], stop="max_output_tokens"))
    talk = Talk(server)
    whole = talk.client.responses.create(model=NEWEST, input="Go.").to_dict(mode="json")
    with talk.client.responses.stream(model=NEWEST, input="Go.") as stream:
        streamed = stream.get_final_response().to_dict(mode="json")
    for response in (whole, streamed):
        response.pop("id")
        for item in response["output"]:  # type: ignore[attr-defined]
            for name in ("id", "call_id", "encrypted_content", "parsed_arguments"):
                item.pop(name, None)
            for part in item.get("content") or []:
                part.pop("parsed", None)
    assert streamed["output"] == whole["output"]
    events = list(talk.client.responses.create(model=NEWEST, input="Go.", stream=True))
    assert events[-1].type == "response.incomplete"


@pytest.mark.parametrize(
    ("tools", "model", "said"),
    [
        ([TOOL | {"defer_loading": True}], NEWEST, "tool_search"),
        ([{"type": "tool_search"}], "gpt-4.1", "not supported"),
        ([TOOL | {"allowed_callers": ["programmatic"]}], NEWEST, "programmatic_tool_calling"),
        ([{"type": "custom", "name": "sql", "format": {"type": "regex"}}], NEWEST, "grammar"),
    ],
)
def test_tools_need_what_finds_or_calls_them(
    server: strict.StrictServer, tools: list[Json], model: str, said: str
) -> None:
    """A deferred tool needs a search, which old models lack, and one that programs call needs the tool of programs."""
    talk = Talk(server, model, tools=tools)
    with talk.client, pytest.raises(openai.BadRequestError, match=said):
        talk.ask("Hello.")


@pytest.mark.parametrize(
    "output",
    [
        {"type": "shell_call_output", "call_id": "call_1", "output": "done"},
        {"type": "apply_patch_call_output", "call_id": "call_1", "status": "done"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ],
)
def test_outputs_have_the_shape_of_their_kind(server: strict.StrictServer, output: Json) -> None:
    """The output of a shell is a list of chunks, that of a patch has a status, and an approval answers a request."""
    call = {
        "type": output["type"].removesuffix("_output"),
        "call_id": "call_1",
        "action": {},
        "operation": {},
        "status": "completed",
    }
    call = {
        key: value
        for key, value in call.items()
        if key not in {"shell_call": ["operation"], "apply_patch_call": ["action"]}.get(call["type"], ())
    }
    talk = Talk(server)
    with talk.client, pytest.raises(openai.BadRequestError):
        talk.ask([call, output] if "call_id" in output else [output])
