"""The stand-ins of the Gemini API check order, ids and signatures."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types

from palaver.testing import strict
from tests.clients import opened

Json = dict[str, Any]

MODEL = "gemini-3.6-flash"
THOUGHT: Json = {"text": "hm", "thought": True}
CALL: Json = {"functionCall": {"name": "bash", "args": {"command": "ls"}}}
QUESTION: Json = {"role": "user", "parts": [{"text": "Go."}]}
TOOLS: list[Json] = [{"functionDeclarations": [{"name": "bash", "description": "Run."}]}]
KEY = {"x-goog-api-key": "key"}


class Talk:
    """A conversation with the stand-in of generateContent."""

    def __init__(self, server: strict.StrictServer, model: str = MODEL) -> None:
        self.server, self.model = server, model
        self.contents: list[Json] = []

    def ask(self, content: Json, *answer: Json | str) -> Json:
        """Ask, and keep the question and the answer."""
        self.server.answers(answer)
        self.contents += [content, self.send([*self.contents, content])]
        return dict(self.contents[-1])

    def send(self, contents: list[Json] | None = None, **fields: object) -> Json:
        """Send contents, or the history, and return the content of the answer."""
        body = {"contents": self.contents if contents is None else contents, "tools": TOOLS} | fields
        kept = {name: value for name, value in body.items() if value is not None}
        served = self.server.ask(f"/v1beta/models/{self.model}:generateContent", kept, KEY)
        assert served.status == 200, served.message
        return dict(served.body["candidates"][0]["content"])

    def refused(self, text: str, contents: list[Json], status: int = 400, **fields: object) -> None:
        """Check that contents are refused."""
        body = {"contents": contents, "tools": TOOLS} | fields
        kept = {name: value for name, value in body.items() if value is not None}
        served = self.server.ask(f"/v1beta/models/{self.model}:generateContent", kept, KEY)
        assert served.status == status
        assert text in served.message, served.message


def responses(content: Json) -> Json:
    """Return responses to the calls of an answer."""
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    parts = [
        {"functionResponse": {"id": call.get("id"), "name": call["name"], "response": {"output": "done"}}}
        for call in calls
    ]
    return {"role": "user", "parts": parts}


@pytest.fixture
def gemini() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of generateContent."""
    with strict.gemini() as server:
        yield server


def called(server: strict.StrictServer, *answer: Json | str, model: str = MODEL) -> Talk:
    """Return a conversation that waits for an answer to responses."""
    talk = Talk(server, model)
    answered = talk.ask(QUESTION, *(answer or (THOUGHT, CALL)))
    talk.contents.append(responses(answered))
    return talk


def test_the_vendors_client_goes_on(gemini: strict.StrictServer) -> None:
    """Through the vendor's client, a history of its own answers is accepted, streamed or not; without signatures it is refused."""
    options = types.HttpOptions(base_url=gemini.url)
    client = opened(genai.Client(api_key="key", http_options=options))
    declared = types.Tool(function_declarations=[types.FunctionDeclaration(name="bash", description="Run.")])
    config = types.GenerateContentConfig(tools=[declared], automatic_function_calling={"disable": True})  # type: ignore[arg-type]
    for streamed in (False, True):
        gemini.answers([THOUGHT, "First.", CALL, CALL], ["Done."])
        contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="Go.")])]
        if streamed:
            parts = [
                part
                for chunk in client.models.generate_content_stream(model=MODEL, contents=contents, config=config)
                for candidate in chunk.candidates or []
                for part in (candidate.content and candidate.content.parts) or []
            ]
            said = types.Content(role="model", parts=[part for part in parts if part.text != ""])
        else:
            response = client.models.generate_content(model=MODEL, contents=contents, config=config)
            assert response.candidates
            assert response.candidates[0].content
            said = response.candidates[0].content
        calls = [part.function_call for part in said.parts or [] if part.function_call]
        replies = [
            types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": "x"}))
            for call in calls
        ]
        contents += [said, types.Content(role="user", parts=replies)]
        assert client.models.generate_content(model=MODEL, contents=contents, config=config).text == "Done."
        for part in said.parts or []:
            part.thought_signature = None
        with pytest.raises(errors.ClientError, match="is missing a `thought_signature`"):
            client.models.generate_content(model=MODEL, contents=contents, config=config)


def test_the_current_turn_is_signed(gemini: strict.StrictServer) -> None:
    """The first call of each step of the current turn has its signature; earlier turns, and older models, are not checked."""
    talk = called(gemini, THOUGHT, CALL, CALL)
    talk.send()
    first = talk.contents[1]["parts"][1]
    assert "thoughtSignature" not in talk.contents[1]["parts"][2]
    stripped = copy.deepcopy(talk.contents)
    del stripped[1]["parts"][1]["thoughtSignature"]
    talk.refused("Function call `bash` in the `2.` content block is missing a `thought_signature`.", stripped)
    talk.send([*stripped, {"role": "model", "parts": [{"text": "Done."}]}, QUESTION])
    stripped[1]["parts"][1]["thoughtSignature"] = "skip_thought_signature_validator"
    talk.send(stripped)
    edited = copy.deepcopy(talk.contents)
    edited[1]["parts"][1] = first | {"functionCall": first["functionCall"] | {"args": {}}}
    talk.refused("Invalid thought signature.", edited)
    older = called(gemini, CALL, model="gemini-2.5-pro")
    assert set(older.contents[1]["parts"][0]) == {"functionCall"}
    older.send()


def test_a_shortened_thought_breaks_its_signature(gemini: strict.StrictServer) -> None:
    """The text of a thought may leave; shortened beside its signature it is refused."""
    talk = called(gemini, {"text": "a long thought", "thought": True}, CALL)
    thought, call = talk.contents[1]["parts"]
    question, results = talk.contents[0], talk.contents[2]
    talk.send([question, {"role": "model", "parts": [call]}, results])
    talk.refused(
        "Invalid thought signature.", [question, {"role": "model", "parts": [thought | {"text": "a"}, call]}, results]
    )


def test_calls_and_responses_pair(gemini: strict.StrictServer) -> None:
    """Responses repeat the ids of all calls, directly after them, not between."""
    talk = called(gemini, CALL, CALL)
    question, said, results = talk.contents
    one, two = results["parts"]
    talk.send([question, said, {"role": "user", "parts": [two, one]}])
    talk.refused("is equal to the number of function call parts", [question, said, {"role": "user", "parts": [one]}])
    talk.refused("is equal to the number of function call parts", [question, said, QUESTION])
    other = {"functionResponse": two["functionResponse"] | {"id": "x"}}
    talk.refused("`id`s must be those of the function calls", [question, said, {"role": "user", "parts": [one, other]}])
    talk.refused(
        "comes immediately after a function call turn", [question, {"role": "model", "parts": [{"text": "x"}]}, results]
    )
    mixed = {"role": "model", "parts": [said["parts"][0], one, said["parts"][1], two]}
    talk.refused("must not be interleaved", [question, mixed, QUESTION])
    talk.refused("comes immediately after a user turn", [said, results])
    talk.refused("multiturn requests end with a user role or a function response", [question, said])


def test_names_in_snake_case_and_calls_without_ids_are_read(gemini: strict.StrictServer) -> None:
    """The API reads the names of its protocol buffers, too; arguments keep theirs; without ids, calls and responses pair by their order."""
    talk = called(gemini, THOUGHT, {"functionCall": {"name": "bash", "args": {"work_dir": "/"}}})
    _, (thought, call), (result,) = (content["parts"] for content in talk.contents)
    plain = {name: value for name, value in call["functionCall"].items() if name != "id"}
    said = {
        "role": "model",
        "parts": [thought, {"function_call": plain, "thought_signature": call["thoughtSignature"]}],
    }
    response = {name: value for name, value in result["functionResponse"].items() if name != "id"}
    contents = [QUESTION, said, {"role": "user", "parts": [{"function_response": response}]}]
    talk.send(contents, system_instruction={"parts": [{"text": "Be brief."}]})
    plain["args"] = {"workDir": "/"}
    talk.refused("Invalid thought signature", contents)


def test_parts_of_the_server_go_back(gemini: strict.StrictServer) -> None:
    """Calls that the server ran, and parts of no known kind, go back verbatim."""
    talk = Talk(gemini)
    own = [
        {"toolCall": {"toolType": "GOOGLE_SEARCH", "id": "s1"}},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH", "id": "s1"}},
    ]
    said = talk.ask(QUESTION, *own, {"novelty": 1}, CALL)
    contents = [QUESTION, said, responses(said)]
    talk.send(contents)
    edited = copy.deepcopy(contents)
    edited[1]["parts"][2]["novelty"] = 2
    talk.refused('Unknown name "novelty"', edited)
    edited = copy.deepcopy(contents)
    edited[1]["parts"][1]["toolResponse"]["response"] = {}
    talk.refused("Invalid thought signature.", edited)


def test_a_cache_has_system_and_tools(gemini: strict.StrictServer) -> None:
    """A cached content excludes a system instruction and tools in the request."""
    cached = gemini.ask("/v1beta/cachedContents", {"model": f"models/{MODEL}", "tools": TOOLS}, KEY).body["name"]
    talk = Talk(gemini)
    talk.send([QUESTION], cachedContent=cached, tools=None)
    talk.refused("CachedContent can not be used with GenerateContent request setting", [QUESTION], cachedContent=cached)
    talk.refused("CachedContent not found", [QUESTION], 403, cachedContent="cachedContents/x", tools=None)


def test_fields_of_generate_content(gemini: strict.StrictServer) -> None:
    """Unknown names, empty contents, unknown models and levels are refused."""
    talk = Talk(gemini)
    talk.refused('Unknown name "messages"', [QUESTION], messages=[])
    talk.refused("contents is not specified", [])
    talk.refused("contents.parts must not be empty", [{"role": "user", "parts": []}])
    talk.refused("Please use a valid role", [{"role": "assistant", "parts": [{"text": "x"}]}])
    levels = {"thinkingConfig": {"thinkingLevel": "minimal"}}
    talk.send([QUESTION], generationConfig=levels)
    talk.model = "gemini-3.8-flash"
    talk.refused("Thinking level MINIMAL is not supported", [QUESTION], generationConfig=levels)
    talk.refused(
        "only one of thinking budget",
        [QUESTION],
        generationConfig={"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 1}},
    )
    talk.model = "gemini-9"
    talk.refused("models/gemini-9 is not found", [QUESTION], 404)


# --- interactions --------------------------------------------------------------------------------------------------------

STEP: Json = {"type": "user_input", "content": [{"type": "text", "text": "Go."}]}
FUNCTION: Json = {"type": "function_call", "name": "bash", "arguments": {"command": "ls"}}


def interact(server: strict.StrictServer, steps: object, text: str = "", **fields: object) -> list[Json]:
    """Send steps; return those of the answer, or check that they are refused."""
    served = server.ask("/v1beta/interactions", {"model": MODEL, "input": steps, "store": False} | fields, KEY)
    assert text in served.message
    assert (served.status == 200) == (not text), served.message
    return list(served.body.get("steps", []))


def test_interactions_through_the_vendors_client() -> None:
    """The vendor's client reads whole and streamed interactions."""
    with strict.interactions() as server:
        client = opened(genai.Client(api_key="key", http_options=types.HttpOptions(base_url=server.url)))
        content: list[Json | str] = [
            {"type": "thought", "summary": [{"type": "text", "text": "hm"}]},
            "Some words.",
            FUNCTION,
        ]
        server.answers(content, content)
        whole = client.interactions.create(model=MODEL, input="Go.", store=False)
        assert getattr(whole, "status", "") == "requires_action"
        events = list(client.interactions.create(model=MODEL, input="Go.", store=False, stream=True))
        kinds = [event.event_type for event in events]
        assert kinds[0] == "interaction.created"
        assert kinds.count("step.start") == kinds.count("step.stop") == 3
        assert kinds[-1] == "interaction.completed"


def test_steps_go_back_with_their_signatures() -> None:
    """A thought, and each step of a tool that the server ran, goes back signed and unchanged; a thought before a call stays."""
    server = strict.interactions()
    server.answers(
        [{"type": "thought"}, {"type": "google_search_call"}, {"type": "google_search_result", "result": []}, FUNCTION]
    )
    said = interact(server, [STEP])
    result = {"type": "function_result", "call_id": said[3]["id"], "name": "bash", "result": "done"}
    interact(server, [STEP, *said, result])
    interact(server, [STEP, *said[1:], result], "the thought before function call 'bash' is missing")
    for at in (0, 1, 2):
        unsigned = [
            {key: value for key, value in step.items() if key != "signature"} if n == at else step
            for n, step in enumerate(said)
        ]
        interact(server, [STEP, *unsigned, result], "missing a signature")
    dummy = {"type": "thought", "signature": "skip_thought_signature_validator"}
    interact(server, [STEP, dummy, *said[3:], result])
    edited = [*said[:2], said[2] | {"result": [{"title": "x"}]}, said[3]]
    interact(server, [STEP, *edited, result], "the signature is not valid")


def test_steps_have_an_order() -> None:
    """Each call has one result, and the model does not speak last."""
    server = strict.interactions()
    server.answers([{"type": "thought"}, FUNCTION, FUNCTION])
    said = interact(server, [STEP])
    result = {"type": "function_result", "name": "bash", "result": "done"}
    results = [result | {"call_id": step["id"]} for step in said[1:]]
    interact(server, [STEP, *said, *reversed(results)])
    interact(server, [STEP, *said, *(step | {"name": ""} for step in results)], "has no name")
    interact(server, [STEP, *said, results[0]], "Function calls without results")
    interact(server, [STEP, *said, STEP], "function calls without results")
    interact(server, [STEP, *results], "waits for a result")
    interact(server, [STEP, *said], "The last step must be of the user")
    interact(server, "Go.")
    interact(server, [{"type": "text", "text": "Go."}])
    interact(server, [], "must not be empty")


def test_interactions_keep_no_state() -> None:
    """An earlier interaction is unknown, and so are fields and kinds that the API lacks; own steps go back verbatim."""
    server = strict.interactions()
    interact(server, "Go.", "Interaction 'v1_1' not found", previous_interaction_id="v1_1")
    interact(server, "Go.", "Unknown parameter 'contents'", contents=[])
    interact(server, [{"type": "message"}], "unknown step type 'message'")
    interact(server, [STEP | {"role": "user"}], "unknown field 'role'")
    server.answers([{"type": "novelty", "x": 1}, "Well."])
    said = interact(server, [STEP])
    interact(server, [STEP, *said, STEP])
    interact(server, [STEP, said[0] | {"x": 2}, said[1], STEP], "unknown step type 'novelty'")
