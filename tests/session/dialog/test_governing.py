"""What governs the next turn is the same in the process that put it and in every later one."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Conflict, Dialog, Message, Prompt, Runtime, Session, Store, UnknownPromptWarning, UserMessage
from palaver.errors import InvalidInput
from palaver.store import MemoryStore


def _runtime() -> Runtime:
    runtime = Runtime()
    for path in ("research/agent", "write/agent"):
        runtime.register_prompt(Prompt(path=path, prompt="Go on with {it}."))
    return runtime


def _paths(dialog: Dialog) -> str | None:
    """Give the path of what governs; a text that was put governs as nothing does."""
    top = dialog.top_prompt
    return None if top is None or top.is_temporary else top.path


ACTS: dict[str, Callable[[Dialog], object]] = {
    "prompt": lambda dialog: dialog.put_prompt("research/agent", {"it": "this"}),
    "other prompt": lambda dialog: dialog.put_prompt("write/agent", {"it": "that"}, role="system"),
    "text": lambda dialog: dialog.put_text("and now?"),
    "user": lambda dialog: dialog.append(UserMessage(content="by the way")),
    "answer": lambda dialog: dialog.append(Message(role="assistant", content="yes")),
    "result": lambda dialog: dialog.append(Message(role="tool", content="42", tool_call_id="c")),
    "label": lambda dialog: dialog.label(dialog.messages.handle(-1), "here") if dialog.messages else None,
}


@settings(max_examples=60)
@given(acts=st.lists(st.sampled_from([*ACTS, "fork", "reopen"]), max_size=12))
def test_a_reopened_dialog_is_governed_as_it_was(acts: list[str]) -> None:
    """After any acts, forks and reopenings between them: the prompt of the process that acted is the prompt of the next one."""
    store, runtime = MemoryStore(), _runtime()
    dialog = Session.create(store, "governed", runtime=runtime).root
    for act in acts:
        if act == "fork":
            dialog = dialog.fork()
        elif act == "reopen":
            dialog = Session.open("governed", store, runtime=runtime).dialog(dialog.dialog_id)
        else:
            ACTS[act](dialog)
    again = Session.open("governed", store, runtime=runtime).dialog(dialog.dialog_id)

    assert _paths(again) == _paths(dialog)
    assert Dialog.from_dict(again.to_dict(), runtime=runtime).to_dict()["log"] == again.to_dict()["log"]


def test_the_very_prompt_of_the_runtime_governs_again(store: Store) -> None:
    """What a later process gets is the registered object, with its parser and tools."""
    runtime = _runtime()
    Session.create(store, "one", runtime=runtime).root.put_prompt("research/agent", {"it": "this"})

    assert Session.open("one", store, runtime=runtime).root.top_prompt is runtime.get_prompt("research/agent")


def test_an_unknown_prompt_is_a_warning_once_someone_asks(store: Store) -> None:
    """Opening and reading need no prompt; asking for one that the runtime lacks warns and gives None."""
    Session.create(store, "one", runtime=_runtime()).root.put_prompt("research/agent", {"it": "this"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dialog = Session.open("one", store, runtime=Runtime()).root
        assert len(dialog.view().exchanges) == 1
    with pytest.warns(UnknownPromptWarning, match="research/agent"):
        assert dialog.top_prompt is None


def test_a_prompt_that_was_not_appended_does_not_govern(dialog: Dialog) -> None:
    """When rendering or appending fails, what governed before governs still."""
    dialog.put_text("before")
    before = dialog.top_prompt
    with pytest.raises(InvalidInput):
        dialog.put_prompt(Prompt(path="p", prompt="{missing}"))
    Session.open(dialog.session_id, dialog.store).root.put_text("faster")
    with pytest.raises(Conflict):
        dialog.put_prompt(Prompt(path="p", prompt="late"))
    assert dialog.top_prompt is before
