"""Branches: told apart, told of, and gone back to."""

import pytest

from palaver import AssistantMessage, ToolMessage, ToolResultContent, UserMessage
from palaver.agent.approvals import annotate
from palaver.errors import Conflict, InvalidInput, NotFound
from palaver.log import BranchSummary, Handle, Inbox, Toolset, ToolSpec
from palaver.messages import Speaker, ToolCallContent, Trust
from palaver.providers import APIS
from palaver.session import Dialog, Session
from palaver.store import MemoryStore


def texts(messages: object) -> list[str]:
    """Return the texts of messages."""
    return [message.text_content() for message in messages]  # type: ignore[attr-defined]


def work(dialog: Dialog, call_id: str, name: str, result: str = "ok", **args: object) -> None:
    """Let the model call a tool, and the tool answer."""
    dialog.append(AssistantMessage(contents=(ToolCallContent(id=call_id, name=name, args=args),)))
    dialog.append(ToolMessage.from_result(ToolResultContent(id=call_id, content=result)))


def told(dialog: Dialog, place: Handle) -> BranchSummary:
    """Return a branch summary."""
    entry = dialog.recall(place)
    assert isinstance(entry, BranchSummary)
    return entry


@pytest.fixture
def session(five: Dialog) -> Session:
    """Return the session of five messages."""
    return Session.open(five.store, five.session_id)


@pytest.fixture
def branch(five: Dialog) -> Dialog:
    """Return a branch of five messages on which something was done."""
    child = five.fork()
    child.put_text("Try it with a list; never touch b.py.")
    work(child, "c1", "Read", "x = 1", file_path="a.py")
    work(child, "c2", "Write", file_path="a.py", content="x = []")
    work(child, "c3", "Bash", "1 passed", command="pytest tests/test_a.py")
    child.append(AssistantMessage(content="A list does it."))
    return child


# --- diff -------------------------------------------------------------------------------------------------------------------------


def test_two_branches_differ_from_their_ancestor_on(five: Dialog, session: Session) -> None:
    """What both begin with is common; what each holds alone is on its side; a silent fork is no difference, a window is one."""
    child = five.fork()
    assert not session.diff(five, child)
    five.put_text("parent")
    child.put_text("child")
    found = session.diff(five, child)
    assert found
    assert (found.ancestor, found.common) == (Handle(five.dialog_id, 4), 5)
    assert str(found).splitlines() == [
        f"5 messages in common, up to {found.ancestor}.",
        f"--- {five.dialog_id[:12]}: 1 message, 1 entry",
        f"- {Handle(five.dialog_id, 5)}  user: parent",
        f"+++ {child.dialog_id[:12]}: 1 message, 1 entry",
        f"+ {Handle(child.dialog_id, 0)}  user: child",
    ]
    found = session.diff(child, child.fork(last_n=2, first_k=1))
    assert (texts(found.one.messages), found.other.entries) == (["m1", "m2", "m3"], 0)
    other = session.new_dialog("other")
    other.put_text("b")
    assert (session.diff(five, other).ancestor, session.diff(five, other).common) == (None, 0)
    with pytest.raises(InvalidInput):
        session.diff(other, Dialog(owner="x"))


# --- merge ------------------------------------------------------------------------------------------------------------------------


def test_a_merge_says_what_happened_and_where(five: Dialog, branch: Dialog, session: Session) -> None:
    """The entry names the branch, where it parted and what it was made from, with the lowest trust; a second merge has only what is new."""
    before = list(branch.messages)
    entry = told(five, session.merge(branch, five))
    assert entry.dialog == branch.dialog_id
    assert entry.left is not None
    assert (entry.left.dialog, entry.left.seq) == (five.dialog_id, 4)
    assert [(run.dialog, run.start, run.stop) for run in entry.sources or ()] == [(branch.dialog_id, 0, 8)]
    assert entry.trust == "outside"  # tools spoke on the branch
    for fact in ("never touch b.py", "a.py", "pytest tests/test_a.py", branch.dialog_id[:12]):
        assert fact in entry.summary
    assert list(branch.messages) == before
    block = five.view().exchanges[-1].turns[0].blocks[0]
    assert (block.derived, block.speaker, block.trust) == ("summary", Speaker.SUMMARY, Trust.OUTSIDE)
    with pytest.raises(InvalidInput, match="were not merged"):
        session.merge(branch, five)
    branch.put_text("One more thing.")
    again = told(five, session.merge(branch, five, "It was {decided}: no."))
    assert again.summary.endswith("\nIt was {decided}: no.")
    assert again.trust == "human"
    assert "never touch b.py" not in again.summary


def test_a_merge_beside_an_open_call_gives_valid_requests(five: Dialog, branch: Dialog, session: Session) -> None:
    """It may come while a call is open; the parent goes on with its result; every request is valid for its provider."""
    five.append(AssistantMessage(contents=(ToolCallContent(id="p1", name="ls", args={}),)))
    session.merge(branch, session.dialog(five.dialog_id))
    five.append(ToolMessage.from_result(ToolResultContent(id="p1", content="a.py")))
    five.put_text("Go on.")
    five.reload()
    for profile in APIS:
        assert "What happened on branch" in str(five.request(profile, "m", max_tokens=64).body)


# --- rewind -----------------------------------------------------------------------------------------------------------------------


def test_a_rewind_is_previewed(five: Dialog, branch: Dialog, session: Session) -> None:
    """The preview says what leaves, and which files stay as tools left them; applied between a call and its result, requests are valid."""
    before = five.store.nodes(five.session_id)
    preview = session.rewind(branch.messages.handle(6), branch)
    assert (preview.kept, len(preview.leaving), preview.entries, preview.files) == (7, 6, 6, ("a.py",))
    assert texts(preview.leaving)[-1] == "A list does it."
    assert "Files stay as they are: a.py." in str(preview)
    assert five.store.nodes(five.session_id) == before
    rewound = preview.apply()
    rewound.put_text("Do it otherwise.")
    for profile in APIS:
        rewound.request(profile, "m", max_tokens=64)
    assert session.root.dialog_id == five.dialog_id, "another branch was rewound"


def test_rewind_lists_queued_and_declared_files() -> None:
    """A message in the inbox that leaves is in the preview, and a file is one that the tool's declaration names."""
    session = Session.create(MemoryStore(), "queued")
    root = session.root
    root.record(Toolset(tools=(ToolSpec(name="keep", parameters={}, writes=("where",)),)))
    root.append(UserMessage(content="go"))
    handle = root.messages.handle(0)
    root.append(AssistantMessage(contents=(ToolCallContent("c1", "keep", args={"where": "a.txt"}),)))
    annotate(session.store, root.dialog_id, Inbox(message=UserMessage(content="wait for me")))
    preview = session.rewind(handle, root)
    assert (preview.files, [message.content for message in preview.queued]) == (("a.txt",), ["wait for me"])
    assert "wait for me" in str(preview)
    assert [message.content for message in session.rewind(None, root.fork()).queued] == [], "they stay with the parent"


def test_a_rewind_is_a_branch_and_can_be_undone(five: Dialog, session: Session) -> None:
    """Done, it is the dialog to go on with; undone, the one that was left is; both stay whole, whatever was said on either."""
    rewound = session.rewind(five.messages.handle(2)).apply()
    assert session.root.dialog_id == session.newest.dialog_id == rewound.dialog_id
    rewound.put_text("another way")
    assert texts(five.messages) == ["m0", "m1", "m2", "m3", "m4"]
    back = session.undo_rewind(rewound)
    assert session.root.dialog_id == session.newest.dialog_id == session.resume().dialog_id == five.dialog_id
    back.put_text("m5")
    assert texts(rewound.messages) == ["m0", "m1", "m2", "another way"]
    with pytest.raises(InvalidInput, match="not made by a rewind"):
        session.undo_rewind(five)
    empty = session.rewind(None).apply()
    assert not empty.messages
    assert session.undo_rewind(empty).dialog_id == five.dialog_id


def test_an_outdated_preview_is_not_applied(five: Dialog, session: Session) -> None:
    """What was said since the preview is a Conflict; nothing to rewind, and unknown places, are refused."""
    preview = session.rewind(five.messages.handle(1))
    five.put_text("said meanwhile")
    count = len(five.store.nodes(five.session_id))
    with pytest.raises(Conflict):
        preview.apply()
    assert len(five.store.nodes(five.session_id)) == count
    with pytest.raises(InvalidInput, match=r"[Nn]othing would leave"):
        session.rewind(five.messages.handle(-1))
    with pytest.raises(NotFound):
        session.rewind("0123456789ab:0")
