"""The common part of the adapters: which exceptions are failures of a call, and which are defects."""

from collections.abc import AsyncGenerator
from json import JSONDecodeError

import pytest

from palaver.errors import InvalidInput, ProviderError
from palaver.models.answers import AnswerReader, ChatAnswer
from palaver.models.client import ClientProvider, transport_error
from palaver.wire import Request
from tests.models.asking import answer, ask

CHUNK = {"id": "c", "choices": [{"delta": {"content": "Half"}}]}
LAST = {"id": "c", "choices": [{"delta": {}, "finish_reason": "stop"}]}
RESET = ConnectionResetError("reset")


class Line(ClientProvider[object]):
    """A provider that sends these pieces, and raises those that are exceptions."""

    def __init__(self, *pieces: object) -> None:
        """Set the pieces."""
        super().__init__("line", "openai-chat", None)
        self.pieces = pieces

    def _make(self) -> object:
        return object()

    async def _close(self, client: object) -> None:
        """Do nothing."""

    def _reader(self, request: Request) -> AnswerReader:
        return ChatAnswer(request, self.name)

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        del request
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def _mapped(self, error: Exception, model: str) -> None:
        del error, model


def test_broken_line_is_an_error_with_what_arrived() -> None:
    """Before anything arrived, the provider is down; afterwards, its answer is broken."""
    cases: list[tuple[list[object], str, str | None]] = [
        ([RESET], "down", None),
        ([CHUNK, RESET], "broken", "Half"),
        ([CHUNK], "broken", "Half"),
        ([CHUNK, JSONDecodeError("cut", '{"a":', 5)], "broken", "Half"),
        ([None], "broken", ""),
        ([["a"]], "broken", ""),
    ]
    for pieces, kind, partial in cases:
        with pytest.raises(ProviderError) as caught:
            answer(Line(*pieces), ask(stream=True))
        assert (caught.value.kind, caught.value.provider) == (kind, "line")
        found = caught.value.partial
        assert (found and found.text_content()) == partial
        assert found is None or found.error


def test_line_may_break_after_the_stop_reason() -> None:
    """Nothing of the answer is missing then."""
    assert answer(Line(CHUNK, LAST, RESET), ask(stream=True)).content == "Half"


def test_defect_is_not_a_failure_of_the_provider() -> None:
    """It is raised unchanged."""
    cases: list[Exception] = [TypeError("a defect"), InvalidInput("ours"), KeyError("x")]
    for error in cases:
        with pytest.raises(type(error)):
            answer(Line(CHUNK, error), ask(stream=True))
        assert transport_error(error, "p", "m") is None
