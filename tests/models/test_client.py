"""What the adapters share: which exceptions are failures of a call, and which are ours to see."""

import json
from collections.abc import AsyncGenerator

import pytest

from palaver.errors import BrokenAnswer, InvalidInput, ProviderDown
from palaver.models.answers import AnswerReader, ChatAnswer
from palaver.models.client import ClientProvider, transport_failed
from palaver.models.failures import Fault
from palaver.wire import Request
from tests.models.asking import answer, ask

CHUNK = {"id": "c", "choices": [{"delta": {"content": "Half"}}]}
LAST = {"id": "c", "choices": [{"delta": {}, "finish_reason": "stop"}]}


class Line(ClientProvider[object]):
    """A provider whose line carries these pieces, and breaks where one is an exception."""

    def __init__(self, *pieces: object) -> None:
        """Lay the line."""
        super().__init__("line", "openai-chat", None)
        self.pieces = pieces

    def _make(self) -> object:
        return object()

    async def _close(self, client: object) -> None:
        """Leave it."""

    def _reader(self, request: Request) -> AnswerReader:
        return ChatAnswer(request, self.name)

    async def _answers(self, request: Request) -> AsyncGenerator[object, None]:
        del request
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def _fault(self, error: Exception, model: str) -> Fault | str | None:
        del error, model
        return None


def test_a_line_that_breaks_before_anything_came_is_down() -> None:
    """There is no answer that could be broken."""
    with pytest.raises(ProviderDown, match="reset") as caught:
        answer(Line(ConnectionResetError("reset")), ask(stream=True))
    assert caught.value.partial is None


def test_a_line_that_breaks_in_the_middle_leaves_what_came() -> None:
    """Marked as what it is."""
    with pytest.raises(BrokenAnswer) as caught:
        answer(Line(CHUNK, ConnectionResetError("reset")), ask(stream=True))
    assert caught.value.partial.content == "Half"
    assert caught.value.partial.error


def test_a_line_that_breaks_after_the_end_harms_nothing() -> None:
    """The provider had said why the answer ends: nothing of it is missing."""
    assert answer(Line(CHUNK, LAST, ConnectionResetError("reset")), ask(stream=True)).content == "Half"


def test_a_line_that_ends_early_is_broken() -> None:
    """Also where nobody raises anything."""
    with pytest.raises(BrokenAnswer, match="before its end"):
        answer(Line(CHUNK), ask(stream=True))


@pytest.mark.parametrize("piece", [None, "text", 7, ["a"]])
def test_what_is_no_object_is_broken(piece: object) -> None:
    """JSON of another kind is no answer, streamed or not."""
    for stream in (False, True):
        with pytest.raises(BrokenAnswer, match="no JSON object"):
            answer(Line(piece), ask(stream=stream))


@pytest.mark.parametrize("error", [TypeError("a defect"), InvalidInput("ours"), KeyError("x")])
def test_a_defect_is_not_taken_for_a_failure_of_the_provider(error: Exception) -> None:
    """It comes through as it is."""
    with pytest.raises(type(error)):
        answer(Line(CHUNK, error), ask(stream=True))
    assert transport_failed(error, "p", "m") is None


def test_cut_json_is_a_broken_answer() -> None:
    """As a client raises it that reads a line of a stream."""
    try:
        json.loads('{"a":')
    except ValueError as error:
        with pytest.raises(BrokenAnswer, match="no JSON"):
            answer(Line(CHUNK, error), ask(stream=True))
