"""What the peer server answers, by the user's text (fixtures/answers.json)."""

from pathlib import Path

from palaver.testing.provider_laws import Question
from tests.wire.scenes import BASH

__all__ = ["CUT", "FIXTURES", "QUESTIONS"]

FIXTURES = Path(__file__).parent / "fixtures" / "answers.json"

QUESTIONS = (
    Question("say hello"),
    Question("think first"),
    Question("look around", (BASH,)),
    Question("think and call", (BASH,)),
    Question("call without arguments", (BASH,)),
    Question("run out of room"),
    Question("say something forbidden"),
    Question("be limited", fails="rate"),
    Question("write a novel", fails="overflow"),
    Question("open the door", fails="auth"),
    Question("be another model", fails="model"),
    Question("take a wrong parameter", fails="refused"),
    Question("be busy", fails="down"),
    Question("be broken", fails="down"),
    Question("drop the request", fails="down"),
    Question("answer gibberish", fails="broken"),
    Question("hang up", fails="down"),
)
CUT = Question("hang up in the middle", fails="broken")
"""Only a streamed answer can be cut in the middle by this server."""
