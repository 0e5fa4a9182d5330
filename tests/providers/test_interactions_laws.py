"""Gemini's Interactions: the laws of providers, over the google-genai client and the strict stand-in."""

from collections.abc import Iterable, Iterator, Mapping

import pytest

from palaver.providers import Provider, connect_model
from palaver.testing import strict
from palaver.testing.provider_laws import ProviderLaws, Question
from palaver.testing.strict import HttpRequest, Json, NextAnswer, Refused
from tests.wire.scenes import BASH

THOUGHT: Json = {"type": "thought", "summary": [{"type": "text", "text": "Two and two make four."}]}
SEARCH: Json = {"type": "google_search_call", "id": "g1", "arguments": {"queries": ["x"]}}
FOUND: Json = {"type": "google_search_result", "result": [{"title": "X", "url": "https://example.org"}]}
NOVEL: Json = {"type": "novelty", "id": "n1", "pieces": [1, {"deep": None}]}


def call(name: str, **arguments: str) -> Json:
    """Return a call of the shell."""
    return {"type": "function_call", "id": name, "name": "bash", "arguments": arguments}


ANSWERS: Mapping[str, NextAnswer] = {
    "say hello": NextAnswer(["Hello: ünïcode 🙂 text."]),
    "think first": NextAnswer([THOUGHT, "The answer is 4."]),
    "look around": NextAnswer([{"type": "thought"}, "Looking.", call("a", command="ls"), call("b", command="pwd")]),
    "call without arguments": NextAnswer([THOUGHT, call("d")]),
    "search": NextAnswer([{"type": "thought"}, SEARCH, FOUND, "Found."]),
    "be novel": NextAnswer([NOVEL, "Done."]),
    "run out of room": NextAnswer(["This is only the beg"], stop="incomplete"),
    "say something forbidden": NextAnswer(["I"], stop="failed", fields={"errors": [{"code": "safety", "message": "No."}]}),
    "fail": NextAnswer(stop="failed", fields={"errors": [{"code": "internal", "message": "No."}]}),
    "hang up in the middle": NextAnswer(["This sentence has many pieces."], cut=3),
}  # fmt: skip
FAILURES: Mapping[str, tuple[str, int, str, str]] = {
    "be limited": ("rate", 429, "rate_limit_exceeded", "Resource has been exhausted."),
    "write a novel": ("overflow", 400, "invalid_request", "The input token count (12) exceeds the maximum number of tokens allowed (9)."),
    "open the door": ("auth", 401, "authentication", "API key not valid. Please pass a valid API key."),
    "be another model": ("model", 404, "not_found", "Model 'gemini-99' not found."),
    "take a wrong parameter": ("refused", 400, "invalid_request", "Unknown parameter 'foo'."),
    "be busy": ("down", 503, "unavailable", "The model is overloaded."),
    "be broken": ("down", 500, "internal", "An internal error has occurred."),
}  # fmt: skip


def reply(asked: HttpRequest) -> NextAnswer:
    """Answer by the text of the user, or fail."""
    text = asked.body["input"][0]["content"][0]["text"]
    if text in FAILURES:
        _, status, code, message = FAILURES[text]
        raise Refused(status, {"error": {"code": code, "message": message}})
    return ANSWERS[text]


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
class TestInteractions(ProviderLaws):
    """Interactions over the google-genai client. Nothing that the model says is lost on its way back."""

    model = "gemini-3.6-flash"
    server: strict.StrictServer

    @pytest.fixture(autouse=True)
    def _with_server(self) -> Iterator[None]:
        with strict.interactions() as server:
            server.script.otherwise = reply
            self.server = server
            yield

    def provider(self) -> Provider:
        """Ask the stand-in."""
        options = {"base_url": self.server.url}
        return connect_model(f"google-interactions/{self.model}", api_key="none", http_options=options)[0]

    def questions(self) -> Iterable[Question]:
        """Ask for every kind of step, and every failure."""
        for text in ANSWERS:
            search = {"provider_tools": {"web_search": True}} if text == "search" else {}
            if text != "hang up in the middle":
                yield Question(text, (BASH,), search, fails="down" if text == "fail" else "")
        for text, (kind, *_) in FAILURES.items():
            yield Question(text, fails=kind)

    def test_cut_answer_keeps_its_beginning(self) -> None:
        """The connection closes in the middle of a stream."""
        error = self._failure(self._request(Question("hang up in the middle"), stream=True))
        assert (error.kind, error.retryable, error.partial.text_content()) == ("broken", True, "This sentence h")
