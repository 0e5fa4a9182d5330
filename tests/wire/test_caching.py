"""Caches that a request names or marks: more than one time, and explicit caches of tools and instructions."""

from typing import Any

import pytest
from google.genai.types import CreateCachedContentConfig

from palaver.errors import InvalidInput
from palaver.messages import thaw
from palaver.session import Dialog
from palaver.wire import Request
from tests.wire.scenes import BASH, Scene
from tests.wire.vendor_types import hold_to_types


def asked(name: str, **fields: Any) -> Request:  # noqa: ANN401 - fields of a call
    """Compile a question with instructions and a tool, and check it."""
    return Scene(system=["Be careful."], tools=[BASH]).user("What do you see?").request(name, **fields)


def test_each_place_is_cached_for_its_time() -> None:
    """Tools and instructions for an hour, the conversation for five minutes; a longer time holds for all that comes before."""
    cases: list[tuple[Any, list[str]]] = [
        ("1h", ["1h", "1h", "1h"]),
        ({"tools": "1h", "system": "1h"}, ["1h", "1h", ""]),
        ({"system": "1h"}, ["1h", "1h", ""]),
        ({"tools": "1h", "messages": "5m"}, ["1h", "", ""]),
        ({"messages": "1h", "tools": "5m"}, ["1h", "1h", "1h"]),
        ({}, ["", "", ""]),
    ]
    for ttl, times in cases:
        body = asked("anthropic", cache_ttl=ttl).body
        hold_to_types("anthropic", thaw(body))
        marked = (body["tools"][-1], body["system"][-1], body["messages"][-1]["content"][-1])
        assert [block["cache_control"].get("ttl", "") for block in marked] == times, ttl


@pytest.mark.parametrize("ttl", ["2h", {"head": "1h"}, {"tools": ["1h"]}])
def test_other_times_and_places_are_refused(ttl: Any) -> None:  # noqa: ANN401 - wrong values
    """A misspelt place was ignored, and another time was said to be a bug of palaver's."""
    with pytest.raises(InvalidInput, match="cache_ttl"):
        asked("anthropic", cache_ttl=ttl)


def test_times_of_each_place_are_recorded() -> None:
    """A recorded call is compiled to the same bytes."""
    dialog = Dialog("assistant")
    dialog.put_text("Hello.")
    sent = dialog.request("anthropic", "claude-opus-4-6", max_tokens=500, cache_ttl={"system": "1h"})
    dialog.calls.record(sent)
    assert dialog.calls[0].request().data == sent.data


def test_explicit_cache_takes_tools_and_instructions() -> None:
    """«CachedContent + tools»: the cache is made of them, and a request that names it has neither; the report says so."""
    whole = asked("gemini", tool_choice="bash")
    made = whole.explicit_cache(ttl="600s")
    assert made["model"] == whole.model
    assert set(made["config"]) == {"systemInstruction", "tools", "toolConfig", "ttl"}
    assert CreateCachedContentConfig.model_validate(made["config"]).ttl == "600s"
    for name, parameter in (("gemini", "cachedContent"), ("gemini-interactions", "cached_content")):
        request = asked(name, tool_choice="auto", parameters={parameter: "cachedContents/1"})
        moved = {"systemInstruction", "tools", "toolConfig", "system_instruction"}
        assert moved.isdisjoint(request.body)
        assert request.body[parameter] == "cachedContents/1"
        assert not request.report.lost()
        told = [change.what for change in request.report]
        assert [what in moved for what in told] == [True] * len(told)
        assert len(told) == (3 if name == "gemini" else 2)


def test_other_apis_make_no_explicit_cache() -> None:
    """The error says which can; without tools and instructions there is nothing to cache."""
    for request in (asked("anthropic"), asked("gemini-interactions"), Scene().user("hi").request("gemini")):
        with pytest.raises(InvalidInput, match="nothing that an explicit cache can have"):
            request.explicit_cache()
