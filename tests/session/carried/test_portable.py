"""Dialogs as dictionaries: scenario A9, and that a whole tree comes back as it was."""

import json
import warnings
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Dialog, Message, Prompt, Role, Runtime, Store
from palaver.errors import InvalidInput
from palaver.log import Custom, Inbox, Instructions, Section, Toolset, ToolSpec
from palaver.session import UnknownPromptWarning
from palaver.store import MemoryStore

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def _tree() -> Dialog:
    """Make a tree with all sorts of entries: root, two children, a grandchild."""
    root = Dialog(owner="coder", session_name="run_001")
    root.record(Instructions(sections=(Section(name="s", text="be brief"),)), Toolset(tools=(ToolSpec(name="ls"),)))
    root.put_text("hello", role=Role.SYSTEM)
    root.put_image(PNG, caption="look")
    child = root.fork(last_n=1)
    root.put_text("later \ud800\0")
    root.pin(root.messages.handle(0))
    root.label(root.messages.handle(1), "image")
    child.append(Message(role="assistant", content="half", response_id="r1"))
    child.append(Message(role="assistant", content="whole", response_id="r1", usage={"input_tokens": 3}))
    root.fork().annotate(Inbox(message=Message(role="user", content="psst")))
    child.fork().record(Custom(custom_type="mine", data={"a": [1, None]}))
    return root


def test_a09_round_trip_with_the_prompt_registered() -> None:
    """A9: the node and the prompt's path are recorded; the path is resolved, and the dialog goes on."""
    runtime = Runtime()
    prompt = Prompt(path="research/agent", prompt="hi")
    runtime.register_prompt(prompt)
    dialog = Dialog(owner="coder", runtime=runtime)
    dialog.put_prompt("research/agent")
    fields = dialog.to_dict()
    assert fields["tree_node"] == dialog.tree_node.to_dict()
    assert fields["top_prompt_path"] == "research/agent"
    again = Dialog.from_dict(fields, log_base=None, runtime=runtime)
    assert again.top_prompt is prompt
    assert again.messages == dialog.messages
    again.put_text("more")
    assert len(dialog.messages) == 1


def test_a09_an_unknown_prompt_is_a_warning() -> None:
    """A9, R39: without the prompt the dialog is loaded without one, and says so."""
    dialog = Dialog(owner="coder")
    dialog.put_prompt(Prompt(path="gone", prompt="hi"))
    with pytest.warns(UnknownPromptWarning, match="gone"):
        assert Dialog.from_dict(dialog.to_dict(), runtime=Runtime()).top_prompt is None


def test_r39_no_warning_for_a_text() -> None:
    """A text leaves nothing to be resolved, so that loading is silent."""
    dialog = Dialog(owner="coder")
    dialog.put_text("hi")
    assert dialog.to_dict()["top_prompt_path"] is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Dialog.from_dict(dialog.to_dict()).top_prompt is None


def test_a_prompt_is_saved_under_the_key_it_is_registered_by() -> None:
    """A prompt in a namespace is found again, though its own path names none."""
    runtime = Runtime()
    runtime.register_prompt(Prompt(path="p", prompt="x"), namespace="pack")
    dialog = Dialog(owner="coder", runtime=runtime)
    dialog.put_prompt("pack:p")
    assert Dialog.from_dict(dialog.to_dict(), runtime=runtime).top_prompt is dialog.top_prompt


def _identical(one: Dialog, two: Dialog) -> None:
    for mine, theirs in zip(_walk(one), _walk(two), strict=True):
        assert mine.messages == theirs.messages
        assert mine.tree_node == theirs.tree_node
        assert mine.depth == theirs.depth
        assert (mine.labels, mine.pins) == (theirs.labels, theirs.pins)


def _walk(root: Dialog) -> list[Dialog]:
    return [root, *(below for child in root.children for below in _walk(child))]


def test_a_whole_tree_is_the_same_again() -> None:
    """Through JSON and back: entries, bytes, ids, tree, marks and media are the same, and so is the dictionary."""
    root = _tree()
    fields = json.loads(json.dumps(root.to_dict()))
    again = Dialog.from_dict(fields)
    assert again.to_dict() == fields
    _identical(root, again)
    for dialog in _walk(root):
        last = dialog.store.last(dialog.dialog_id)
        assert again.store.last(dialog.dialog_id) == last
        stored = list(again.store.bodies(dialog.dialog_id))
        assert stored == list(dialog.store.bodies(dialog.dialog_id))
    assert again.session_name == "run_001"
    assert next(iter(again.messages[1].contents[1].images)).data == PNG  # type: ignore[union-attr]
    assert again.parent is None


def test_r38_a_branch_alone_keeps_its_parents() -> None:
    """A dictionary of a grandchild brings its ancestors: parent, depth and shared messages survive."""
    leaf = _tree().children[0].children[0]
    again = Dialog.from_dict(leaf.to_dict())
    assert again.depth == leaf.depth == 2
    assert again.parent is not None
    assert again.parent.parent is not None
    assert again.parent.parent.tree_node.is_root
    assert again.messages == leaf.messages
    assert again.tree_node == leaf.tree_node


def test_c10_a_dictionary_is_a_copy(dialog: Dialog) -> None:
    """Changing the dictionary changes neither the dialog nor what was read from it."""
    dialog.put_text("hi", metadata={"tags": ["a"]})
    fields = dialog.to_dict()
    again = Dialog.from_dict(fields)
    fields["messages"][0]["metadata"]["tags"].append("b")
    fields["log"]["dialogs"][0]["entries"].clear()
    assert dialog.messages[0].metadata["tags"] == ["a"]
    assert again.messages == dialog.messages


def test_a_dictionary_of_another_program() -> None:
    """Messages alone make a dialog: its own id, owner and name; its place in a tree that is not there is kept as metadata."""
    place = {"dialog_id": "a" * 32, "parent_id": "b" * 32, "split_point": 1}
    fields = {
        "session_name": "old",
        "owner": "coder",
        "tree_node": place,
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u", "name": "user"}],
    }
    again = Dialog.from_dict(fields)
    assert (again.dialog_id, again.owner, again.session_name) == ("a" * 32, "coder", "old")
    assert [message.content for message in again.messages] == ["s", "u"]
    assert again.tree_node.is_root
    assert again.store.node(again.dialog_id).metadata["tree_node"] == place


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"messages": "text"},
        {"log": {"version": 99}},
        {"log": {"version": 1}},
        {"log": {"version": 1, "session": {}, "dialogs": [], "blobs": {}}},
        {"log": 3},
    ],
)
def test_what_is_no_dialog_is_refused(fields: Mapping[str, Any]) -> None:
    """A dictionary that holds no dialog is the caller's error."""
    with pytest.raises(InvalidInput):
        Dialog.from_dict(fields)


def test_damaged_dictionaries_are_refused() -> None:
    """A missing entry, or a session that the store has, is refused and not guessed at."""
    root = _tree()
    fields = root.to_dict()
    with pytest.raises(InvalidInput, match="exists"):
        Dialog.from_dict(fields, store=root.store)
    del fields["log"]["dialogs"][0]["entries"][1]
    with pytest.raises(InvalidInput, match="gap"):
        Dialog.from_dict(fields)


def test_into_a_named_store(store: Store) -> None:
    """A dictionary can be read into any store."""
    again = Dialog.from_dict(_tree().to_dict(), store=store)
    assert again.store is store
    assert len(again.messages) == 3


@settings(max_examples=30)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["say", "say", "fork", "label"]), st.integers(0, 5), st.text(max_size=20), st.integers(0, 3)
        ),
        max_size=20,
    )
)
def test_any_tree_is_the_same_again(steps: list[tuple[str, int, str, int]]) -> None:
    """Whatever tree was grown: reading its dictionary gives the same dictionary, from the root and from every branch."""
    dialogs = [Dialog(owner="o", store=MemoryStore())]
    for what, which, text, number in steps:
        dialog = dialogs[which % len(dialogs)]
        if what == "fork":
            dialogs.append(dialog.fork(last_n=number))
        elif what == "say" or not len(dialog.messages):
            dialog.put_text(text)
        else:
            dialog.label(dialog.messages.handle(0), text)
    assert Dialog.from_dict(dialogs[0].to_dict()).to_dict() == dialogs[0].to_dict()
    for dialog in dialogs:
        _identical(Dialog.from_dict(dialog.to_dict()), dialog)
