"""The tree of errors: 26 classes, each an error with facts and a hint."""

import inspect
import pickle

import pytest

from palaver import errors
from palaver.errors import NotFound, PalaverError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, PalaverError)]
EXAMPLES: list[PalaverError] = [
    errors.PalaverError("It went wrong.", hint="Do this."),
    errors.InvalidInput("The role is 3.", hint="Name a role, such as 'user'."),
    errors.InvalidMessage("No.", faults=[("role", "unknown")]),
    errors.InvalidConfig("unknown.", file="a.yaml", line=3, key="agents[0].modle", close=["model"]),
    errors.UnsupportedTranscript("a.bin", "it is binary", tried=["pi"]),
    errors.PolicyFailed("mine", ZeroDivisionError("division by zero")),
    errors.NotFound("planning", what="alias"),
    errors.MissingFile("nope.png", hint="Look elsewhere."),
    errors.Erased("session", "a" * 32, 1.7e9, "receipt-1"),
    errors.Ambiguous("run", ["run-1", "run-2"]),
    errors.Conflict("d" * 32, expected=3, actual=5),
    errors.Busy("d" * 32, expected=3, actual=5),
    errors.StoreError("No space is left.", reason="full"),
    errors.StoreDamaged("page 4", "its sum is wrong"),
    errors.StoreBusy("Busy."),
    errors.InfeasibleBudget(1_000, 1_500, {"instructions": 1_200, "newest user message": 300}),
    errors.ProviderError("No.", kind="auth", provider="openai", model="gpt-5", status=400, code="x", request_id="r-1"),
    errors.ContextOverflow("Too long.", limit=1_000, asked=2_000, provider="openai"),
    errors.RateLimited("Later.", retry_after=2.5, status=429),
    errors.AgentFailure("It ended.", trace="the trace", kind="steps"),
    errors.RepairFailed("no number", 3, trace="the trace"),
    errors.DecisionNeeded((), trace="the trace"),
    errors.ParseError("No tag.", content="hi", missing=["note"]),
    errors.InvalidRequest("anthropic", ["a", "b"]),
    errors.MissingExtra("The adapter", "litellm"),
    errors.NotReproducible("The prompt is gone.", request={}),
]


def test_every_class_is_exported_and_has_an_example() -> None:
    """DESIGN 6.12: each can be imported, and the properties below hold for every class."""
    assert sorted(errors.__all__) == sorted(kind.__name__ for kind in CLASSES)
    assert {type(example) for example in EXAMPLES} == set(CLASSES)
    assert len(CLASSES) == 26


def test_an_error_reads_as_a_sentence_with_a_hint() -> None:
    """str() shows the message and the hint on one line, without the quotes that a KeyError adds."""
    for error in EXAMPLES:
        shown = str(error)
        assert shown.startswith(error.message)
        assert shown.endswith(error.hint)
        assert "\n" not in shown
        assert not shown.startswith(("'", '"'))
    words = PalaverError("The server said: slow down", hint="Wait."), PalaverError('It said "Slow down."', hint="Wait.")
    assert [str(error) for error in words] == ["The server said: slow down. Wait.", 'It said "Slow down." Wait.']


def facts(error: PalaverError) -> dict[str, str]:
    """Return an error's attributes as text: an exception among them equals no copy of itself."""
    return {name: repr(value) for name, value in vars(error).items()} | {"file": repr(getattr(error, "filename", None))}


def test_an_error_survives_pickling() -> None:
    """A process pool returns errors with their attributes."""
    for error in EXAMPLES:
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert facts(again) == facts(error)


def test_errors_are_the_ones_python_taught() -> None:
    """A caller who does not know palaver catches ValueError, KeyError and FileNotFoundError."""
    assert issubclass(errors.InvalidMessage, ValueError)
    assert issubclass(errors.NotFound, KeyError)
    assert issubclass(errors.MissingFile, FileNotFoundError)


def test_not_found_lists_close_names() -> None:
    """The name, the kind of thing and the close matches are data and are shown."""
    error = NotFound("gpt5", what="model", close=["gpt-5", "gpt-5-mini"])
    assert (error.what, error.name, error.close) == ("model", "gpt5", ("gpt-5", "gpt-5-mini"))
    assert str(error) == "There is no model 'gpt5'. Close: gpt-5, gpt-5-mini."


def test_an_infeasible_budget_has_a_fixed_breakdown() -> None:
    """Law 8: the answer is where the tokens go, and the caller's mapping is copied."""
    given = {"instructions": 1_200}
    error = errors.InfeasibleBudget(1_000, 1_200, given)
    given["instructions"] = 0
    assert dict(error.breakdown) == {"instructions": 1_200}
    with pytest.raises(TypeError):
        error.breakdown["instructions"] = 1  # type: ignore[index]
    assert "1,200" in str(error)


def test_retryable_follows_the_kind() -> None:
    """Rate limits, outages and broken answers may succeed later, keys and models do not, unless the adapter knows better."""
    kinds = ("auth", "model", "refused", "overflow", "rate", "down", "broken", "script")
    later = {kind for kind in kinds if errors.ProviderError("No.", kind=kind).retryable}
    assert later == {"rate", "down", "broken"}
    assert errors.ProviderError("Busy.", kind="refused", retryable=True).retryable
    assert errors.RateLimited("Later.").retryable
    assert not errors.RateLimited("Out of credit.", retryable=False).retryable
