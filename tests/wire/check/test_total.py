"""Validators are total: any value is judged, none makes them fail, and they name no rule that they do not say they know."""

import json
from collections.abc import Iterator
from copy import deepcopy
from types import MappingProxyType
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.wire.check import RULES, encoding, media, validate
from palaver.wire.profiles import PROFILES
from palaver.wire.violations import Place, Rule
from tests.wire.check import pictures
from tests.wire.check.samples import SAMPLES

Json: TypeAlias = Any

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["", " ", "\ud800", "user"])
)
VALUES = st.recursive(
    SCALARS, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3), max_leaves=6
)  # fmt: skip


def _places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Give the path of everything inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield (*path, key)
        yield from _places(each, (*path, key))


PLACES = {name: tuple(_places(sample.body)) for name, sample in SAMPLES.items()}


def _holder(request: Json, path: tuple[str | int, ...]) -> Json:
    for step in path[:-1]:
        request = request[step]
    return request


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
def test_a_spoiled_request_is_judged(name: str, data: st.DataObject) -> None:
    """Whatever stands anywhere in a request, the validator answers, with rules it knows, and twice the same."""
    sample = SAMPLES[name]
    request = sample.request()
    path = data.draw(st.sampled_from(PLACES[name]))
    holder = _holder(request, path)
    action = data.draw(st.sampled_from(["replace", "drop", "double"]))
    if action == "drop":
        del holder[path[-1]]
    elif action == "double" and isinstance(holder, list):
        holder.append(deepcopy(_holder(request, (*path, 0))))
    else:
        holder[path[-1]] = data.draw(VALUES)
    found = validate(request, sample.profile, as_history=sample.as_history)
    assert {violation.rule for violation in found} <= RULES[sample.profile.name]
    assert found == validate(request, sample.profile, as_history=sample.as_history)
    assert all(str(violation).encode("utf-8") for violation in found)


@pytest.mark.parametrize("name", PROFILES)
@given(request=st.dictionaries(st.sampled_from(["messages", "input", "contents", "tools", "model", "system"]), VALUES))
def test_any_object_is_judged(name: str, request: dict[str, Any]) -> None:
    """An object that is no request at all is refused, not fallen over."""
    assert {violation.rule for violation in validate(request, PROFILES[name])} <= RULES[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_read_only_bodies_are_judged_alike(name: str) -> None:
    """Mappings and tuples stand for objects and lists."""

    def frozen(value: Json) -> Json:
        if isinstance(value, dict):
            return MappingProxyType({key: frozen(each) for key, each in value.items()})
        return tuple(frozen(each) for each in value) if isinstance(value, list) else value

    sample = SAMPLES[name]
    assert validate(frozen(sample.request()), sample.profile, as_history=sample.as_history) == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@given(value=JSON)
def test_a_size_is_what_is_written(value: object) -> None:
    """A body is measured as compact UTF-8 JSON, to the byte."""
    written = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
    rules = {Rule.REQUEST_BYTES}
    assert not rules & {each.rule for each in encoding.encoded(Place(value), written)}
    assert rules & {each.rule for each in encoding.encoded(Place(value), written - 1)}


@given(value=JSON)
def test_what_utf8_cannot_carry_is_found(value: object) -> None:
    """A surrogate anywhere is found exactly when the JSON text cannot be encoded."""
    written = json.dumps(value, ensure_ascii=False)
    found = {each.rule for each in encoding.encoded(Place(value), len(written) * 4)}
    assert (Rule.LONE_SURROGATE in found) == (not _encodable(written))
    assert (Rule.NUL in found) == ("\\u0000" in json.dumps(value).replace("\\\\", ""))


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@settings(max_examples=30)
@given(width=st.integers(1, 0x3FFF), height=st.integers(1, 0x3FFF))
def test_the_longer_side_is_read_from_the_header(width: int, height: int) -> None:
    """Each kind of image tells its size: one pixel more than the limit is refused, the limit itself is not."""
    heads = {
        "image/png": (pictures.png(width, height),),
        "image/gif": (pictures.gif(width, height),),
        "image/jpeg": (pictures.jpeg(width, height),),
        "image/webp": tuple(pictures.webp(kind, width, height) for kind in ("VP8 ", "VP8L", "VP8X")),
    }
    for media_type, variants in heads.items():
        for head in variants:
            assert max(media.pixels(head, media_type)) == max(width, height)


@given(data=st.binary(), media_type=st.sampled_from(["image/png", "image/gif", "image/jpeg", "image/webp"]))
def test_a_header_cut_short_has_no_size(data: bytes, media_type: str) -> None:
    """Bytes that are no image are read without falling over."""
    assert len(media.pixels(data, media_type)) in (0, 2)
