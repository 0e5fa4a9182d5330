"""Blocks of a store and the dialogs that are written in them: what a block took back is in no view, no manifest and no replay log."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from palaver import Dialog, Prompt, Session, Store
from palaver.log import TurnStarted
from palaver.session.carried.replay import read_log
from palaver.view import fold


def undone(dialog: Dialog, *writes: Callable[[], object]) -> None:
    """Write in a block, look at what the model would see, and take all of it back."""
    with suppress(ZeroDivisionError), dialog.store.together():
        for write in writes:
            write()
            dialog.view()
            dialog.record_call(dialog.request("openai-chat", "gpt-4o"))
        raise ZeroDivisionError


def begun(store: Store) -> Dialog:
    """Give a dialog that was looked at."""
    dialog = Session.create(store, "s").root
    dialog.put_text("first")
    dialog.view()
    return dialog


def texts(dialog: Dialog) -> list[str]:
    """Give what was said."""
    return [message.text_content() for message in dialog.messages]


WRITES: dict[str, Callable[[Dialog], list[Callable[[], object]]]] = {
    "said": lambda dialog: [lambda: dialog.put_text("undone"), lambda: dialog.put_text("undone, too")],
    "labelled": lambda dialog: [lambda: dialog.label(dialog.messages.handle(0), "undone")],
    "begun": lambda dialog: [lambda: dialog.record(TurnStarted(agent="a")), lambda: dialog.put_text("undone")],
    "reloaded": lambda dialog: [lambda: other(dialog).put_text("undone"), dialog.reload],
}


def other(dialog: Dialog) -> Dialog:
    """Give another object for the same dialog."""
    return Session.open(dialog.session_id, dialog.store).dialog(dialog.dialog_id)


@pytest.mark.parametrize("reload", [True, False])
@pytest.mark.parametrize("what", sorted(WRITES))
def test_what_a_block_took_back_is_nowhere(store: Store, what: str, *, reload: bool) -> None:
    """Messages, marks, turns and calls, also when others write in their place: views are a fresh fold's, calls are given back to the byte."""
    dialog = begun(store)
    undone(dialog, *WRITES[what](dialog))
    if reload:
        dialog.reload()
    assert texts(dialog) == ["first"]
    assert not dialog.labels
    assert not dialog.in_turn
    for number in range(5):
        dialog.put_text(f"then {number}")
        assert dialog.view() == fold(store, dialog.dialog_id)
        dialog.record_call(dialog.request("openai-chat", "gpt-4o"))
    assert texts(dialog) == ["first", *(f"then {number}" for number in range(5))]
    assert [call.request().digest for call in dialog.invocations] == [
        call.sent["digest"] for call in dialog.invocations
    ]
    assert len(dialog.invocations) == 5


def test_it_is_nowhere_when_others_have_written_as_much_since(store: Store) -> None:
    """The numbers are the same, what stands there is not."""
    dialog = begun(store)
    undone(dialog, lambda: dialog.put_text("undone"))
    for number in range(4):
        other(dialog).put_text(f"another's {number}")
    assert texts(dialog.reload()) == ["first", *(f"another's {number}" for number in range(4))]
    assert dialog.view() == fold(store, dialog.dialog_id)


def test_what_a_block_leaves_is_known(store: Store) -> None:
    """One that ends well: nothing is read anew, and what was said in it is there for this object and for others."""
    dialog = begun(store)
    with store.together():
        dialog.put_text("second")
        dialog.label(dialog.messages.handle(1), "here")
    assert texts(dialog) == texts(other(dialog)) == ["first", "second"]
    assert dialog.view() == fold(store, dialog.dialog_id)
    dialog.put_prompt(Prompt(path="a", prompt="third"))
    assert texts(dialog) == ["first", "second", "third"]


def test_what_follows_is_told_of_a_block_when_it_has_ended(store: Store, tmp_path: Path) -> None:
    """A replay log never holds what was taken back, and all of what was not."""
    dialog = Session.create(store, "s", log_base=tmp_path / "log").root
    dialog.put_text("first")
    undone(dialog, lambda: dialog.put_text("undone"))
    with store.together():
        dialog.put_text("second")
    dialog.put_text("third")
    (carried,) = read_log(tmp_path / "log")[1]
    assert [line.body for line in carried.lines] == [body for _, body in store.bodies(dialog.dialog_id)]
    assert texts(dialog) == ["first", "second", "third"]
