"""The public face is a list that people agreed on: a name comes or goes only together with tests/public_api.txt."""

from pathlib import Path

import palaver

PINNED = Path(__file__).with_name("public_api.txt").read_text(encoding="utf-8").split()


def test_the_face_is_what_is_pinned() -> None:
    """`palaver.__all__` names exactly what the pinned list names, in the same, sorted order."""
    assert list(getattr(palaver, "__all__", [])) == PINNED


def test_the_pinned_list_is_sorted_and_names_nothing_twice() -> None:
    """A merge of two additions cannot hide a name or bring it in twice."""
    assert sorted(set(PINNED)) == PINNED


def test_a_public_name_can_be_had_and_says_what_it_is() -> None:
    """Each name resolves, is listed by dir(), and is documented (a constant by the module it comes from)."""
    for name in PINNED:
        value = getattr(palaver, name)
        assert name in dir(palaver)
        assert getattr(value, "__doc__", None)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The lazy face fails as a module does: hasattr() and `from palaver import x` rely on it."""
    assert not hasattr(palaver, "no_such_name")
