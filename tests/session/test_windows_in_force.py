"""A fork that keeps a window of the messages is told what its parent was told, and keeps the marks on what it keeps."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.log import Entry, Handle, Instructions, ModelChange, Place, Quarantine, Section, Toolset, ToolSpec
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


ACTS = st.sampled_from(["say", "say", "say", "instructions", "toolset", "model", "pin", "unpin", "fork", "window"])


@settings(max_examples=100)
@given(
    acts=st.lists(st.tuples(ACTS, st.integers(0, 20)), min_size=4, max_size=25),
    last_n=st.integers(1, 4),
    first_k=st.integers(0, 3),
)
def test_a_window_is_told_what_the_whole_is_told(acts: list[tuple[str, int]], last_n: int, first_k: int) -> None:
    """Instructions, tools and model of a window are those of the whole, and so are the pins on what it keeps."""
    dialog = Dialog(owner="coder", store=MemoryStore())
    for number, (act, which) in enumerate(acts):
        if act == "say":
            dialog.put_text(f"m{number}")
        elif act == "fork":
            dialog = dialog.fork()
        elif act == "window":
            dialog = dialog.fork(last_n=which, first_k=1)
        elif act in {"pin", "unpin"}:
            if len(dialog.messages):
                dialog.marks.pin(dialog.messages.handle(which % len(dialog.messages)), pinned=act == "pin")
        else:
            dialog.record(_entry(act, number))
    child = dialog.fork(last_n=last_n, first_k=first_k)

    messages = list(dialog.messages)
    kept = messages if first_k + last_n >= len(messages) else messages[:first_k] + messages[len(messages) - last_n :]
    assert list(child.messages) == kept
    assert _told(child.view()) == _told(dialog.view())
    here = {child.messages.handle(index) for index in range(len(child.messages))}
    assert [place for place in child.marks.pins if place in here] == [
        place for place in dialog.marks.pins if place in here
    ]


def test_a_refused_block_stays_refused(five: Dialog) -> None:
    """What a provider refused is not sent again by a window whose parent knew it."""
    place = five.messages.handle(0)
    five.record(Quarantine(target=Place(dialog=place.dialog, seq=place.seq), reason="refused"), beside=True)[0]
    for number in range(3):
        five.put_text(f"later {number}")

    child = five.fork(last_n=1, first_k=1)

    shown = [block for one in child.view().exchanges for turn in one.turns for block in turn.blocks]
    assert [block.origin for block in shown] == [Handle(place.dialog, 8, 0)]


LABELLING = st.lists(
    st.tuples(st.sampled_from(["say", "say", "label", "unlabel", "fork"]), st.integers(0, 20)), min_size=4, max_size=25
)


@settings(max_examples=100)
@given(acts=LABELLING, last_n=st.integers(1, 4), first_k=st.integers(0, 3))
def test_a_window_keeps_the_labels_on_what_it_keeps(acts: list[tuple[str, int]], last_n: int, first_k: int) -> None:
    """Labels of a window are those of the whole on the entries that it keeps, wherever they were given, and what is given later is its own."""
    dialog = Dialog(owner="coder", store=MemoryStore())
    for number, (act, which) in enumerate(acts):
        if act == "say":
            dialog.put_text(f"m{number}")
        elif act == "fork":
            dialog = dialog.fork()
        elif len(dialog.messages):
            place = dialog.messages.handle(which % len(dialog.messages))
            dialog.marks.label(place, f"label {number}" if act == "label" else None)
    child = dialog.fork(last_n, first_k)

    def on_kept(of: Dialog) -> dict[Handle, str]:
        return {
            place: label for place, label in of.marks.labels.items() if any(place in span for span in child._spans())
        }

    kept = on_kept(dialog)
    assert on_kept(child) == kept
    if len(dialog.messages):
        dialog.marks.label(dialog.messages.handle(0), "given later")
        assert on_kept(child) == kept
