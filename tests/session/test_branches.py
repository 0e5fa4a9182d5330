"""Branches: told apart, told of, and gone back to."""

import pytest

from palaver import AssistantMessage, Store, ToolMessage, ToolResultContent
from palaver.errors import Conflict, InvalidInput, NotFound
from palaver.log import BranchSummary, Handle
from palaver.messages import Speaker, ToolCallContent, Trust
from palaver.session import Dialog, Session
from palaver.wire import PROFILES


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
    return Session.open(five.session_id, five.store)


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
    """What both begin with is common; what each holds alone is on its side; the other way round the sides are swapped."""
    child = five.fork()
    five.put_text("parent")
    child.put_text("child")
    child.put_text("more")
    found = session.diff(five, child)
    assert (found.ancestor, found.common) == (Handle(five.dialog_id, 4), 5)
    assert (texts(found.one.messages), texts(found.other.messages)) == (["parent"], ["child", "more"])
    assert (found.one.dialog_id, found.other.entries) == (five.dialog_id, 2)
    assert found
    swapped = session.diff(child, five)
    assert (swapped.one.spans, swapped.other.spans) == (found.other.spans, found.one.spans)
    assert str(found).splitlines() == [
        f"5 messages in common, up to {found.ancestor}.",
        f"--- {five.dialog_id[:12]}: 1 message, 1 entry",
        "- [0. user (user)]: parent",
        f"+++ {child.dialog_id[:12]}: 2 messages, 2 entries",
        "+ [0. user (user)]: child",
        "+ [1. user (user)]: more",
    ]


def test_a_fork_that_said_nothing_is_no_difference(five: Dialog, session: Session) -> None:
    """A branch equals itself and its silent fork; a window differs by what it left out."""
    assert not session.diff(five, five)
    assert not session.diff(five, five.fork())
    window = five.fork(last_n=2, first_k=1)
    window.put_text("on")
    found = session.diff(five, window)
    assert (texts(found.one.messages), texts(found.other.messages)) == (["m1", "m2"], ["on"])
    assert (found.ancestor, found.common) == (Handle(five.dialog_id, 0), 1)


def test_nothing_in_common(store: Store) -> None:
    """Two beginnings have no ancestor; a dialog of another session is refused."""
    session = Session.create(store, "s")
    session.root.put_text("a")
    other = session.new_dialog("other")
    other.put_text("b")
    found = session.diff(session.root, other)
    assert (found.ancestor, found.common) == (None, 0)
    assert str(found).startswith("Nothing in common.")
    with pytest.raises(InvalidInput):
        session.diff(other, Dialog(owner="x"))
    with pytest.raises(InvalidInput):
        session.merge(Dialog(owner="x"), other)


# --- merge ------------------------------------------------------------------------------------------------------------------------


def test_a_merge_says_what_happened_and_where(five: Dialog, branch: Dialog, session: Session) -> None:
    """The entry names the branch, where it parted and what it was made from; the branch stays as it is."""
    before = list(branch.messages)
    place = session.merge(branch, five)
    entry = told(five, place)
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
    assert five.recall(f"{branch.dialog_id[:12]}:7") == branch.recall(branch.messages.handle(-1))


def test_a_merge_in_words_has_the_lowest_trust(five: Dialog, session: Session) -> None:
    """The caller's words stand as they are; of a branch on which only people and models spoke the model's trust is the lowest."""
    child = five.fork()
    child.put_text("q")
    child.append(AssistantMessage(content="a"))
    entry = told(five, session.merge(child, five, "It was {decided}: no."))
    assert entry.summary.endswith("\nIt was {decided}: no.")
    assert entry.trust == "model"
    child.put_text("only he")
    assert told(five, session.merge(child, five)).trust == "human"


def test_nothing_is_told_twice(five: Dialog, branch: Dialog, session: Session) -> None:
    """A second merge tells only what is new; without anything new it is refused; a silent fork has nothing to tell."""
    session.merge(branch, five)
    with pytest.raises(InvalidInput, match="was not told"):
        session.merge(branch, five)
    branch.put_text("One more thing.")
    entry = told(five, session.merge(branch, five))
    assert "One more thing." in entry.summary
    assert "never touch b.py" not in entry.summary
    with pytest.raises(InvalidInput):
        session.merge(five.fork(), five)


def test_a_merge_fails_no_turn_and_no_request(five: Dialog, branch: Dialog, session: Session) -> None:
    """It may come while a call is open; the parent goes on with its result; every request is valid for its provider."""
    five.append(AssistantMessage(contents=(ToolCallContent(id="p1", name="ls", args={}),)))
    session.merge(branch, session.dialog(five.dialog_id))
    five.append(ToolMessage.from_result(ToolResultContent(id="p1", content="a.py")))
    five.put_text("Go on.")
    five.reload()
    for profile in PROFILES:
        five.request(profile, "m", max_tokens=64)
    assert "What happened on branch" in str(five.request("openai-chat", "m").body)


# --- rewind -----------------------------------------------------------------------------------------------------------------------


def test_a_rewind_is_previewed(five: Dialog, branch: Dialog, session: Session) -> None:
    """The preview says what leaves, and which files stay as tools left them; nothing was written."""
    before = five.store.nodes(five.session_id)
    preview = session.rewind(branch.messages.handle(5), branch)
    assert preview.kept == 6
    assert texts(preview.leaving)[-1] == "A list does it."
    assert (len(preview.leaving), preview.entries) == (7, 7)
    assert preview.files == ("a.py",)
    assert "Files stay as they are: a.py." in str(preview)
    assert five.store.nodes(five.session_id) == before


def test_a_rewind_is_a_branch_and_can_be_undone(five: Dialog, session: Session) -> None:
    """Done, it is the dialog to go on with; undone, the one that was left is; both stay whole, whatever was said on either."""
    rewound = session.rewind(five.messages.handle(2)).apply()
    assert texts(rewound.messages) == ["m0", "m1", "m2"]
    assert session.root.dialog_id == session.newest.dialog_id == rewound.dialog_id
    rewound.put_text("another way")
    assert texts(five.messages) == ["m0", "m1", "m2", "m3", "m4"]
    back = session.undo_rewind(rewound)
    assert back.dialog_id == five.dialog_id
    assert session.root.dialog_id == session.newest.dialog_id == session.resume().dialog_id == five.dialog_id
    back.put_text("m5")
    assert texts(rewound.messages) == ["m0", "m1", "m2", "another way"]
    with pytest.raises(InvalidInput, match="not made by a rewind"):
        session.undo_rewind(five)
    again = session.rewind(five.messages.handle(1), five).apply()
    assert texts(again.messages) == ["m0", "m1"]


def test_a_rewind_to_the_beginning(five: Dialog, session: Session) -> None:
    """Nothing stays, and it can be undone; an empty dialog has nothing to go back from."""
    preview = session.rewind(None)
    assert (preview.to, preview.kept, len(preview.leaving)) == (None, 0, 5)
    assert str(preview).startswith("Back to the beginning: 0 messages stay, 5 leave")
    rewound = preview.apply()
    assert not rewound.messages
    with pytest.raises(InvalidInput, match=r"[Nn]othing would leave"):
        session.rewind(None, rewound)
    assert session.undo_rewind(rewound).dialog_id == five.dialog_id


def test_a_rewind_before_a_fork_and_a_compaction(five: Dialog, session: Session) -> None:
    """One may go back into what was inherited; what a compaction left out is shown again."""
    for number in range(6):
        five.put_text(f"long question {number} " * 40)
        five.append(AssistantMessage(content=f"long answer {number} " * 40))
    place = five.messages.handle(-1)
    five.compaction.preview("palaver", 1500, model="gpt-4o").approve()
    child = five.fork()
    child.put_text("after")
    assert len(session.rewind(place, child).apply().view().exchanges) == 16
    assert texts(session.rewind(five.messages.handle(3), child).apply().messages) == ["m0", "m1", "m2", "m3"]


def test_a_rewind_between_call_and_result(branch: Dialog, session: Session) -> None:
    """Going back to between a call and its result gives valid requests."""
    rewound = session.rewind(Handle(branch.dialog_id, 3), branch).apply()
    rewound.put_text("Do it otherwise.")
    for profile in PROFILES:
        rewound.request(profile, "m", max_tokens=64)


def test_an_outdated_preview_is_not_applied(five: Dialog, session: Session) -> None:
    """What was said since the preview is a Conflict; nothing to rewind, and foreign or unknown places, are refused."""
    preview = session.rewind(five.messages.handle(1))
    five.put_text("said meanwhile")
    count = len(five.store.nodes(five.session_id))
    with pytest.raises(Conflict):
        preview.apply()
    assert len(five.store.nodes(five.session_id)) == count
    with pytest.raises(InvalidInput, match=r"[Nn]othing would leave"):
        session.rewind(five.messages.handle(-1))
    child = five.fork()
    place = child.record(BranchSummary(summary="x"), beside=True)[0]
    with pytest.raises(NotFound):
        session.rewind(place, five)
    with pytest.raises(NotFound):
        session.rewind("0123456789ab:0")


def test_a_rewind_of_another_branch_keeps_the_root(five: Dialog, session: Session) -> None:
    """Only who rewinds the dialog to go on with changes which one that is."""
    child = five.fork()
    child.put_text("x")
    rewound = session.rewind(five.messages.handle(0), child).apply()
    assert session.root.dialog_id == five.dialog_id
    assert session.undo_rewind(rewound).dialog_id == child.dialog_id
    assert session.root.dialog_id == five.dialog_id
