"""The tree of errors: drawn as it is, and each error a carrier of facts."""

import inspect
import pickle
import re

import pytest

from palaver import errors
from palaver.errors import NotFound, PalaverError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, PalaverError)]
EXAMPLES: list[PalaverError] = [
    errors.PalaverError("It went wrong.", hint="Do this."),
    errors.InvalidMessage("No.", faults=[("role", "unknown")]),
    errors.MissingMedia("nope.png", hint="Look elsewhere."),
    errors.InvalidPrompt("No.", missing=["who"]),
    errors.IllegalEntry("No.", kind="call_result", rule="one result a call"),
    errors.UnsupportedTranscript("a.bin", "it is binary", tried=["pi"]),
    errors.InvalidConfig("unknown.", file="a.yaml", line=3, key="agents[0].modle", close=["model"]),
    errors.UnknownModel("gpt", close=["gpt-5"]),
    errors.MissingBlob("0" * 64),
    errors.NotFound("x", what="alias"),
    errors.Ambiguous("run", ["run-1", "run-2"]),
    errors.Conflict("d" * 32, expected=3, actual=5),
    errors.StoreTooNew(7, 5),
    errors.StoreDamaged("page 4", "its sum is wrong"),
    errors.StoreBusy("Busy."),
    errors.LeaseHeld("indexer", "host-1", 7, 1_700_000_000.0),
    errors.UnsupportedCapability("search"),
    errors.InfeasibleBudget(1_000, 1_500, {"instructions": 1_200, "newest user message": 300}),
    errors.InvalidRequest("anthropic", ["a", "b"]),
    errors.MediaUnavailable("Gone."),
    errors.MissingExtra("The adapter", "litellm"),
    errors.ProviderError("No.", provider="openai", model="gpt-5", status=400, code="invalid", request_id="r-1"),
    errors.AuthenticationFailed("No key."),
    errors.ContextOverflow("Too long.", limit=1_000, asked=2_000, provider="openai"),
    errors.RateLimited("Later.", retry_after=2.5, status=429),
    errors.BrokenAnswer("Cut.", partial="as far as it came"),
    errors.AgentFailure("It ended.", session="the trace"),
    errors.RepairFailed("no number", 3, session="the trace"),
    errors.StepsExhausted(5, session="the trace"),
    errors.DecisionNeeded((), session="the trace"),
    errors.ReplayDiffers("Differs.", handle="d:1", role="user", expected="a", found="b", at=3),
]


def drawn_parents() -> dict[str, tuple[str, set[str]]]:
    """Read the drawing in the docstring of errors.py: name -> (parent, other bases named in brackets)."""
    assert errors.__doc__ is not None
    parents: dict[str, tuple[str, set[str]]] = {}
    path: list[str] = []
    for line in errors.__doc__.splitlines():
        found = re.match(r"^    ((?:[│ ]   )*)(?:[├└]── )?([A-Z]\w+)(?: \((\w+)\))?", line)
        if not found:
            continue
        depth = (line.index(found[2]) - 4) // 4
        path[depth:] = [found[2]]
        parents[found[2]] = (path[depth - 1] if depth else "Exception", {found[3]} if found[3] else set())
    return parents


def test_the_drawing_is_the_tree() -> None:
    """DESIGN decision 16: every class is drawn under its base, none is missing, none is only drawn."""
    real = {
        kind.__name__: (kind.__bases__[0].__name__, {base.__name__ for base in kind.__bases__[1:]}) for kind in CLASSES
    }
    assert drawn_parents() == real


def test_every_class_is_exported() -> None:
    """What can be raised can be caught by name."""
    assert sorted(errors.__all__) == sorted(kind.__name__ for kind in CLASSES)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_reads_as_a_sentence_with_a_hint(error: PalaverError) -> None:
    """str() shows the message and the hint, with no repr quoting, on one line."""
    shown = str(error)
    assert shown.startswith(error.message)
    assert shown.endswith(error.hint)
    assert "\n" not in shown
    assert not shown.startswith(("'", '"'))


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_with_its_facts(error: PalaverError) -> None:
    """A process pool hands errors back whole."""
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_bad_input_is_a_value_error_and_not_found_a_key_error() -> None:
    """Callers who know nothing of palaver catch the errors Python taught them."""
    assert issubclass(errors.InvalidMedia, ValueError)
    assert issubclass(errors.UnknownPrompt, KeyError)


def test_not_found_names_the_thing_and_what_is_close() -> None:
    """The name, the kind of thing and the close matches are data and are shown."""
    error = errors.UnknownModel("gpt5", close=["gpt-5", "gpt-5-mini"])
    assert (error.what, error.name, error.close) == ("model", "gpt5", ("gpt-5", "gpt-5-mini"))
    assert str(error) == "There is no model 'gpt5'. Close: gpt-5, gpt-5-mini."
    assert NotFound("planning", what="alias").what == "alias"


def test_a_conflict_says_what_was_expected_and_what_is_there() -> None:
    """DESIGN decision 3: the loser of a race can decide."""
    error = errors.Conflict("d" * 32, 3, 5)
    assert (error.dialog_id, error.expected, error.actual) == ("d" * 32, 3, 5)
    assert "fork" in error.hint


def test_an_infeasible_budget_carries_a_breakdown_that_cannot_change() -> None:
    """D-scenarios: the answer is where the tokens go."""
    given = {"instructions": 1_200}
    error = errors.InfeasibleBudget(1_000, 1_200, given)
    given["instructions"] = 0
    assert dict(error.breakdown) == {"instructions": 1_200}
    with pytest.raises(TypeError):
        error.breakdown["instructions"] = 1  # type: ignore[index]
    assert "1,200" in str(error)


def test_a_failed_call_says_whether_it_may_succeed_later() -> None:
    """By kind, unless the adapter knows better: rate limits, outages and cut answers; not keys, models or requests."""
    later = {kind.__name__ for kind in CLASSES if issubclass(kind, errors.ProviderError) and kind.retryable}
    assert later == {"RateLimited", "ProviderDown", "BrokenAnswer"}
    assert errors.RequestRefused("Busy with it.", retryable=True).retryable
    assert not errors.RateLimited("Out of credit.", retryable=False).retryable
