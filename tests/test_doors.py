"""Doors load the names that they list, and nothing before."""

import subprocess
import sys
from importlib import import_module

import pytest

import palaver
from palaver import lllm, wire

DOORS = (
    "palaver",
    "palaver.lllm",
    *(f"palaver.{room}" for room in ("context", "erasure", "providers", "tokens", "tools", "transcripts", "wire")),
)


@pytest.mark.parametrize("package", DOORS)
def test_a_door_has_exactly_the_names_it_lists(package: str) -> None:
    """Each name of `__all__` can be loaded, `dir()` lists it, and another name is missing."""
    door = import_module(package)
    assert sorted(door.__all__) == sorted(set(door.__all__))
    for name in door.__all__:
        assert getattr(door, name) is not None, name
        assert name in dir(door), name
    with pytest.raises(AttributeError, match="no_such_name"):
        door.no_such_name  # noqa: B018 - reading it is the point


def test_a_submodule_does_not_hide_a_name_of_the_door() -> None:
    """`palaver.wire.compile` is the function, even after the module of that name was imported first."""
    import_module("palaver.wire.compile")
    assert callable(wire.compile)
    program = "import palaver.wire.compile; from palaver import wire; assert callable(wire.compile)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_face_and_lllm_share_their_values() -> None:
    """A name of `palaver` is the same value in `palaver.lllm`."""
    assert all(getattr(lllm, name) is getattr(palaver, name) for name in palaver.__all__)
