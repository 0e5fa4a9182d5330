"""Places and violations: where a fault stands, said so that a reader finds it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from palaver.wire.violations import Place, Rule

KEYS = st.text() | st.integers(-3, 3)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=3), inside, max_size=3),
)


def test_a_path_is_spelt_as_code_spells_it() -> None:
    """Members stand after a dot, elements in brackets, and the body itself is nothing."""
    body = Place({"messages": [{"content": "hi"}]})
    assert str(body["messages"][0]["content"].breaks(Rule.NUL, "no")) == "messages[0].content: no [nul]"
    assert body.breaks(Rule.NUL, "no").path == ""
    assert str(body.breaks(Rule.NUL, "no")) == "request: no [nul]"


def test_the_last_element_tells_its_number() -> None:
    """An element asked for from the end stands where it stands."""
    assert Place([7, 8])[-1] == Place(8, (1,))


def test_what_utf8_cannot_carry_is_escaped_in_a_path() -> None:
    """A path can always be printed."""
    assert Place({})["\ud800"].breaks(Rule.NUL, "").path == "\\ud800"


@given(value=VALUES, path=st.lists(KEYS, max_size=4))
def test_a_place_is_total(value: object, path: list[str | int]) -> None:
    """Any walk through any value ends in a place, which can be asked anything."""
    place = Place(value)
    for step in path:
        place = place[step]
    assert isinstance(place.text, str)
    assert place.number is None or not isinstance(place.number, bool)
    assert len(list(place)) <= len(place)
    assert bool(place) == (place.value is not None)
    assert all(name in place for name, _ in place.members())


@given(value=VALUES)
def test_elements_and_members_are_where_they_say(value: object) -> None:
    """What a place gives is found again under its own path."""
    place = Place(value)
    assert [place[number] for number in range(len(list(place)))] == list(place)
    for name, member in place.members():
        assert member == place[name]
