"""The validators: a case for each rejection, what providers accept, and any value judged."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.messages.media import pixel_size
from palaver.providers import profile
from palaver.wire import Breach, validate
from palaver.wire.place import Spot, fits, walked
from tests.wire import pictures
from tests.wire.cases import CASES, UNTESTED, Case, edited, rich
from tests.wire.scenes import MODELS
from tests.wire.vendor_types import hold_to_types

RULES = {name: {case.rule for case in cases} | UNTESTED[name] for name, cases in CASES.items()}
"""The rules that each validator knows: each has a case, but for those that no request of a reasonable size breaks."""
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["", "\ud800", "user"])
VALUES = st.recursive(
    SCALARS,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
    max_leaves=6,
)


@cache
def base(
    name: str, model: str = "", *, prefill: bool = False, thinks: bool = False, cache: bool = True
) -> dict[str, Any]:
    """Return the request that a case edits."""
    fields: dict[str, Any] = {"cache": cache, **({"format": None} if prefill or thinks or "2.5" in model else {})}
    if thinks:
        fields["parameters"] = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    return rich(name, model, prefill=prefill, **fields)


def judged(name: str, case: Case) -> dict[Breach, str]:
    """Return the rules that a case breaks, with the place of the first break."""
    whole = base(
        name, case.model, prefill=case.prefill, thinks="parameters" in case.call, cache=case.call.get("cache", True)
    )
    found = validate(edited(whole, case.edits), profile(name, case.model or MODELS[name], case.columns))
    return {violation.rule: violation.path for violation in reversed(found)}


def test_each_case_breaks_its_rule() -> None:
    """A spoiled request breaks the rule of its case; an accepted one breaks none."""
    for name in CASES:
        for case in CASES[name]:
            found = judged(name, case)
            assert (case.rule in found) if case.rule else found == {}, case.edits.keys()


def test_rich_request_is_taken_by_the_real_types() -> None:
    """The request that the cases spoil is one to the provider's own package."""
    for name in CASES:
        hold_to_types(name, base(name))


def test_violation_names_its_place() -> None:
    """A violation says where it stands, in the spelling of code."""
    assert judged("openai-chat", Case(None, {"messages/9/content": None})) == {Breach.FIELD_TYPE: "messages[9].content"}


def test_trailing_white_space_is_refused_where_prefill_is() -> None:
    """Models that accept a prefill refuse white space at its end; a history that others do not go on from may have it."""
    body = edited(base("anthropic", "claude-haiku-4-5", prefill=True), {"messages/5/content/0/text": "A heron. "})
    old, new = profile("anthropic", "claude-haiku-4-5"), profile("anthropic", "claude-opus-4-6")
    assert {each.rule for each in validate(body, old)} == {Breach.TEXT_TRAILING}
    assert {each.rule for each in validate(body, new)} == {Breach.ROLE_LAST}
    assert validate(body, new, as_history=True) == ()


# --- any value -------------------------------------------------------------------------------------------------------------


def places(value: object, path: str = "") -> Iterator[str]:
    """Return the place of everything inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield f"{path}{key}"
        yield from places(each, f"{path}{key}/")


@given(name=st.sampled_from(tuple(CASES)), data=st.data())
def test_spoiled_request_is_judged(name: str, data: st.DataObject) -> None:
    """Whatever stands anywhere in a request, the validator answers, with rules it knows, and twice the same; what fits a shape has no fault in it."""
    whole = base(name)
    request = edited(whole, {data.draw(st.sampled_from(sorted(places(whole)))): data.draw(VALUES)})
    found = validate(request, profile(name, MODELS[name]))
    shape = profile(name, MODELS[name]).api.shape
    assert not (fits(request, shape) and [*walked(Spot(request), shape)])
    assert {violation.rule for violation in found} <= RULES[name]
    assert found == validate(request, profile(name, MODELS[name]))
    assert all(str(violation).encode("utf-8") for violation in found)


# --- pixels ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(width=st.integers(1, 0x3FFF), height=st.integers(1, 0x3FFF))
def test_pixels_are_read_from_the_header(width: int, height: int) -> None:
    """Each kind of image says its size in its header."""
    webp = (pictures.webp(kind, width, height) for kind in ("VP8 ", "VP8L", "VP8X"))
    for head in (pictures.png(width, height), pictures.gif(width, height), pictures.jpeg(width, height), *webp):
        assert pixel_size(head) == (width, height)
