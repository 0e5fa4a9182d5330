"""The public face is a list that people agreed on: a name comes or goes only together with tests/public_api.txt."""

from pathlib import Path

import palaver
from palaver import lllm

PINNED = Path(__file__).with_name("public_api.txt").read_text(encoding="utf-8").split()


def test_the_face_is_what_is_pinned() -> None:
    """`palaver.__all__` names exactly what the pinned list names, sorted, nothing twice."""
    assert list(getattr(palaver, "__all__", [])) == PINNED == sorted(set(PINNED))


def test_a_public_name_can_be_had_and_says_what_it_is() -> None:
    """Each name resolves, is listed by dir(), and is documented (a constant by the module it comes from)."""
    for name in PINNED:
        value = getattr(palaver, name)
        assert name in dir(palaver)
        assert getattr(value, "__doc__", None)
    assert not hasattr(palaver, "no_such_name"), "the lazy face fails as a module does"


def test_the_names_of_lllm_can_be_imported_with_a_star() -> None:
    """`from palaver.lllm import *` gives the names of `palaver` and those of LLLM's own documents."""
    names: dict[str, object] = {}
    exec("from palaver.lllm import *", names)  # noqa: S102 - a star import is allowed at the top of a module only
    assert set(lllm.__all__) <= names.keys()
    assert {"Agent", "Dialog", "StringFormatterRenderer", "InvokeResult"} <= set(lllm.__all__)
    assert names["Agent"] is palaver.Agent
