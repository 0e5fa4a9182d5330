"""What the peer server knows to answer, by the user's words (fixtures/answers.json)."""

from pathlib import Path

from palaver.errors import (
    AuthenticationFailed,
    BrokenAnswer,
    ContextOverflow,
    ModelUnavailable,
    ProviderDown,
    RateLimited,
    RequestRefused,
)
from palaver.testing.provider_laws import Question
from tests.wire.scenes import BASH

__all__ = ["CUT", "FIXTURES", "QUESTIONS"]

FIXTURES = Path(__file__).parent / "fixtures"

QUESTIONS = (
    Question("say hello"),
    Question("think first"),
    Question("look around", (BASH,)),
    Question("think and call", (BASH,)),
    Question("call without arguments", (BASH,)),
    Question("run out of room"),
    Question("say something forbidden"),
    Question("be limited", fails=RateLimited),
    Question("write a novel", fails=ContextOverflow),
    Question("open the door", fails=AuthenticationFailed),
    Question("be another model", fails=ModelUnavailable),
    Question("take a wrong parameter", fails=RequestRefused),
    Question("be busy", fails=ProviderDown),
    Question("be broken", fails=ProviderDown),
    Question("drop the request", fails=ProviderDown),
    Question("answer gibberish", fails=BrokenAnswer),
    Question("hang up", fails=ProviderDown),
)
CUT = Question("hang up in the middle", fails=BrokenAnswer)
"""Only a streamed answer can be cut in the middle by this server."""
