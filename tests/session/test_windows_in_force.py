"""A fork that keeps a window of the messages is told what its parent was told, and keeps the marks on what it keeps."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.log import Entry, Handle, Instructions, ModelChange, Section, Toolset, ToolSpec
from palaver.session import Dialog
from palaver.store import MemoryStore
from palaver.view import View


def _entry(kind: str, number: int) -> Entry:
    if kind == "instructions":
        return Instructions(sections=(Section(name="role", text=f"instructions {number}"),))
    if kind == "toolset":
        return Toolset(tools=(ToolSpec(name=f"tool_{number}"),))
    return ModelChange(model=f"model-{number}")


def _told(view: View) -> tuple[object, ...]:
    """Return what a model is told beside the messages."""
    return [block.content for block in view.system if block.speaker == "harness"], view.tools, view.model


def _marks(dialog: Dialog, kept: set[Handle]) -> list[Mapping[Handle, object]]:
    """Return the marks on these messages."""
    marks = (dict.fromkeys(dialog.marks.pins), dialog.marks.labels, dialog.marks.quarantined)
    return [{place: mark for place, mark in each.items() if place in kept} for each in marks]


MARKS = ("pin", "unpin", "label", "unlabel", "quarantine")


def _mark(dialog: Dialog, act: str, number: int, which: int) -> None:
    if not len(dialog.messages):
        return
    place = dialog.messages.handle(which % len(dialog.messages))
    if act == "quarantine":
        dialog.marks.quarantine(place, "refused")
    elif act.endswith("pin"):
        dialog.marks.pin(place, pinned=act == "pin")
    else:
        dialog.marks.label(place, f"label {number}" if act == "label" else None)


ACTS = st.sampled_from(["say", "say", "say", "say", "instructions", "toolset", "model", "fork", "window", *MARKS])


@settings(max_examples=150)
@given(
    acts=st.lists(st.tuples(ACTS, st.integers(0, 20)), min_size=4, max_size=25),
    last_n=st.integers(1, 4),
    first_k=st.integers(0, 3),
)
def test_a_window_is_told_what_the_whole_is_told(acts: list[tuple[str, int]], last_n: int, first_k: int) -> None:
    """Instructions, tools and model of a window are those of the whole, and so are the marks on what it keeps; later marks are not."""
    dialog = Dialog(owner="coder", store=MemoryStore())
    for number, (act, which) in enumerate(acts):
        if act == "say":
            dialog.put_text(f"m{number}")
        elif act == "fork":
            dialog = dialog.fork()
        elif act == "window":
            dialog = dialog.fork(last_n=which, first_k=1)
        elif act in MARKS:
            _mark(dialog, act, number, which)
        else:
            dialog.record(_entry(act, number))
    child = dialog.fork(last_n=last_n, first_k=first_k)

    messages = list(dialog.messages)
    kept = messages if first_k + last_n >= len(messages) else messages[:first_k] + messages[len(messages) - last_n :]
    assert list(child.messages) == kept
    assert _told(child.view()) == _told(dialog.view())
    here = {child.messages.handle(index) for index in range(len(child.messages))}
    assert (marks := _marks(child, here)) == _marks(dialog, here)
    for place in sorted(here):
        dialog.marks.label(place, "given later")
    assert _marks(child, here) == marks
