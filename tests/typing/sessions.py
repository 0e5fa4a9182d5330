"""How sessions and dialogs look to their users' type checker. mypy reads this file; nothing runs it."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_type

from palaver import Dialog, DialogTreeNode, Message, Prompt, Session, open_store
from palaver.context.summary import Summarizer
from palaver.log import Handle
from palaver.session.compaction import CompactionPreview
from palaver.store import Store
from palaver.view import View
from palaver.wire import Request


def a_dialog_takes_one_or_several(dialog: Dialog, message: Message) -> None:
    """One message gives one back, several give a tuple."""
    assert_type(dialog.append(message), Message)
    assert_type(dialog.append([message]), tuple[Message, ...])
    assert_type(dialog.put_text("hi"), Message)
    assert_type(dialog.put_prompt(Prompt(path="p", prompt="{x}"), {"x": 1}), Message)


def a_dialog_is_read(dialog: Dialog) -> None:
    """Messages are a sequence that nobody can write to."""
    messages: Sequence[Message] = dialog.messages
    assert_type(messages[0], Message)
    assert_type(dialog.messages[1:], tuple[Message, ...])
    assert_type(dialog.tail, Message | None)
    assert_type(dialog.marks.labels, Mapping[Handle, str])
    dialog.messages[0] = messages[0]  # type: ignore[index]


def a_dialog_branches(dialog: Dialog) -> None:
    """Forks are dialogs, and the tree has types."""
    assert_type(dialog.fork(last_n=2), Dialog)
    assert_type(dialog.parent, Dialog | None)
    assert_type(dialog.children, tuple[Dialog, ...])
    assert_type(dialog.tree_node, DialogTreeNode)
    assert_type(dialog.to_dict(), dict[str, Any])


def a_dialog_is_viewed(dialog: Dialog) -> None:
    """A policy may be an object, a name or a configuration; viewing writes nothing."""
    assert_type(dialog.view("default", 4000), View)
    assert_type(dialog.request("anthropic", "claude-sonnet-4-5"), Request)
    assert_type(dialog.compaction.commit(dialog.view("default", 4000)), Handle)


async def a_compaction_is_previewed(dialog: Dialog, summarizer: Summarizer) -> None:
    """A checker knows the keywords, whether the call is awaited or not."""
    assert_type(dialog.compaction.preview("fold", budget=4000), CompactionPreview)
    assert_type(await dialog.compaction.apreview(summarizer, focus="tests"), CompactionPreview)
    dialog.compaction.preview(fokus="tests")  # type: ignore[call-arg]
    dialog.compaction.preview(model=1)  # type: ignore[arg-type]


def a_session_is_opened() -> None:
    """A store is named by its address or given."""
    with Session.open("sessions.db", "name") as session:
        assert_type(session, Session)
        assert_type(session.root, Dialog)
        assert_type(session.resume(), Dialog)


def a_store_is_opened_for_a_block() -> None:
    """A store is a context manager, whatever its address says."""
    with open_store("work.db") as store:
        assert_type(store, Store)
        assert_type(Session.create(store, "planning"), Session)
