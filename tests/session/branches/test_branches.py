"""Branches: told apart, told of, and gone back to."""

import pytest

from palaver import AssistantMessage, Dialog, Session, Store, ToolMessage, ToolResultContent
from palaver.errors import Conflict, InvalidInput, UnknownHandle
from palaver.log import BranchSummary, Handle
from palaver.messages import Speaker, ToolCallContent, Trust
from palaver.session import Touched
from palaver.wire import PROFILES


def texts(messages: object) -> list[str]:
    """Give the texts of messages."""
    return [message.text_content() for message in messages]  # type: ignore[attr-defined]


def work(dialog: Dialog, call_id: str, name: str, result: str = "ok", **args: object) -> None:
    """Let the model call a tool, and the tool answer."""
    dialog.append(AssistantMessage(contents=(ToolCallContent(id=call_id, name=name, args=args),)))
    dialog.append(ToolMessage.from_result(ToolResultContent(id=call_id, content=result)))


@pytest.fixture
def branch(five: Dialog) -> Dialog:
    """Give a branch of five messages on which something was done."""
    child = five.fork()
    child.put_text("Try it with a list; never touch b.py.")
    work(child, "c1", "Read", "x = 1", file_path="a.py")
    work(child, "c2", "Write", file_path="a.py", content="x = []")
    work(child, "c3", "Bash", "1 passed", command="pytest tests/test_a.py")
    child.append(AssistantMessage(content="A list does it."))
    return child


# --- diff -------------------------------------------------------------------------------------------------------------------------


def test_two_branches_differ_from_their_ancestor_on(five: Dialog) -> None:
    """What both begin with is common; what each holds alone is on its side; the other way round the sides are swapped."""
    child = five.fork()
    five.put_text("parent")
    child.put_text("child")
    child.put_text("more")
    found = five.diff(child)
    assert (found.ancestor, found.common) == (Handle(five.dialog_id, 4), 5)
    assert (texts(found.one.messages), texts(found.other.messages)) == (["parent"], ["child", "more"])
    assert (found.one.dialog_id, found.other.entries) == (five.dialog_id, 2)
    assert found
    swapped = child.diff(five)
    assert (swapped.one, swapped.other.spans) == (found.other, found.one.spans)
    assert str(found).splitlines() == [
        f"5 messages in common, up to {found.ancestor}.",
        f"--- {five.dialog_id[:12]}: 1 message, 1 entry",
        "- [0. user (user)]: parent",
        f"+++ {child.dialog_id[:12]}: 2 messages, 2 entries",
        "+ [0. user (user)]: child",
        "+ [1. user (user)]: more",
    ]


def test_a_fork_that_said_nothing_is_no_difference(five: Dialog) -> None:
    """A branch equals itself and its silent fork; a window differs by what it left out."""
    assert not five.diff(five)
    assert not five.diff(five.fork())
    window = five.fork(last_n=2, first_k=1)
    window.put_text("on")
    found = five.diff(window)
    assert (texts(found.one.messages), texts(found.other.messages)) == (["m1", "m2"], ["on"])
    assert (found.ancestor, found.common) == (Handle(five.dialog_id, 0), 1)


def test_nothing_in_common(store: Store) -> None:
    """Two beginnings have no ancestor; a dialog of another session is refused."""
    session = Session.create(store, "s")
    session.root.put_text("a")
    other = session.new_dialog("other")
    other.put_text("b")
    found = session.root.diff(other)
    assert (found.ancestor, found.common) == (None, 0)
    assert str(found).startswith("Nothing in common.")
    with pytest.raises(InvalidInput):
        other.diff(Dialog(owner="x"))
    with pytest.raises(InvalidInput):
        other.merge(Dialog(owner="x"))


# --- merge ------------------------------------------------------------------------------------------------------------------------


def test_a_merge_says_what_happened_and_where_it_is_from(five: Dialog, branch: Dialog) -> None:
    """The entry names the branch, where it parted and what it was made of; each line has a handle; the branch stays as it is."""
    before = list(branch.messages)
    place = five.merge(branch)
    entry = five.recall(place)
    assert isinstance(entry, BranchSummary)
    assert entry.dialog == branch.dialog_id
    assert entry.left is not None
    assert (entry.left.dialog, entry.left.seq) == (five.dialog_id, 4)
    assert [(run.dialog, run.start, run.stop) for run in entry.sources or ()] == [(branch.dialog_id, 0, 8)]
    assert entry.trust == "outside"  # tools spoke on the branch
    for fact in (
        "never touch b.py",
        "a.py: wrote",
        "pytest tests/test_a.py: ok",
        "A list does it.",
        branch.dialog_id[:12],
    ):
        assert fact in entry.summary
    assert list(branch.messages) == before
    block = five.view().exchanges[-1].turns[0].blocks[0]
    assert (block.derived, block.speaker, block.trust) == ("summary", Speaker.SUMMARY, Trust.OUTSIDE)
    assert five.recall(f"{branch.dialog_id[:12]}:7") == branch.recall(branch.messages.handle(-1))


def test_a_merge_in_words_inherits_the_lowest_trust(five: Dialog) -> None:
    """The caller's words stand as they are; of a branch on which only people and models spoke the model's trust is the lowest."""
    child = five.fork()
    child.put_text("q")
    child.append(AssistantMessage(content="a"))
    entry = five.recall(five.merge(child, "It was {decided}: no."))
    assert isinstance(entry, BranchSummary)
    assert entry.summary.endswith("\nIt was {decided}: no.")
    assert entry.trust == "model"
    child.put_text("only he")
    later = five.recall(five.merge(child))
    assert isinstance(later, BranchSummary)
    assert later.trust == "human"


def test_nothing_is_told_twice(five: Dialog, branch: Dialog) -> None:
    """A second merge tells only what is new; without anything new it is refused; a silent fork has nothing to tell."""
    five.merge(branch)
    with pytest.raises(InvalidInput, match="was not told"):
        five.merge(branch)
    branch.put_text("One more thing.")
    entry = five.recall(five.merge(branch))
    assert isinstance(entry, BranchSummary)
    assert "One more thing." in entry.summary
    assert "A list does it." not in entry.summary
    with pytest.raises(InvalidInput):
        five.merge(five.fork())


def test_a_merge_fails_no_turn_and_leaves_views_valid(five: Dialog, branch: Dialog) -> None:
    """It may come while a call is open; the parent goes on with its result; every request is valid for its provider."""
    five.append(AssistantMessage(contents=(ToolCallContent(id="p1", name="ls", args={}),)))
    other = Session.open(five.session_id, five.store).dialog(five.dialog_id)
    other.merge(branch)
    five.append(ToolMessage.from_result(ToolResultContent(id="p1", content="a.py")))
    five.put_text("Go on.")
    five.reload()
    for profile in PROFILES:
        five.request(profile, "m", max_tokens=64)
    assert "What happened on branch" in str(five.request("openai-chat", "m").body)


def test_an_account_keeps_within_its_room(five: Dialog) -> None:
    """However much was said, the account has the room that was given; the rest is behind its handles."""
    child = five.fork()
    for number in range(200):
        work(child, f"c{number}", "Write", file_path=f"src/file_{number}.py", content="x")
    short, long = (five.fork().recall(five.fork().merge(child, room=room)) for room in (150, 1000))
    assert isinstance(short, BranchSummary)
    assert isinstance(long, BranchSummary)
    assert len(short.summary) < len(long.summary) < 6000


# --- rewind -----------------------------------------------------------------------------------------------------------------------


def test_a_rewind_is_looked_at_first(five: Dialog, branch: Dialog) -> None:
    """The preview says what leaves, what the view costs then, and what tools did since; nothing was written."""
    before = five.store.nodes(five.session_id)
    preview = branch.rewind(branch.messages.handle(5))
    assert preview.kept == 6
    assert texts(preview.leaving)[-1] == "A list does it."
    assert (len(preview.leaving), preview.entries) == (7, 7)
    assert preview.tokens_after < preview.tokens_before
    read, write = Handle(branch.dialog_id, 1), Handle(branch.dialog_id, 3)
    ran = Handle(branch.dialog_id, 5)
    assert preview.files[0] == Touched(path="a.py", wrote=True, calls=(read, write))
    assert [one.calls for one in preview.files[1:]] in ([], [(ran,)])
    assert preview.commands == ("pytest tests/test_a.py",)
    assert preview.interrupted == ()
    for line in ("wrote a.py", "ran pytest tests/test_a.py", "stays done"):
        assert line in str(preview)
    assert five.store.nodes(five.session_id) == before


def test_a_rewind_is_a_branch_and_can_be_undone(five: Dialog) -> None:
    """Done, it is the dialog to go on with; undone, the one that was left is; both stay whole, whatever was said on either."""
    session = Session.open(five.session_id, five.store)
    rewound = five.rewind(five.messages.handle(2)).apply()
    assert texts(rewound.messages) == ["m0", "m1", "m2"]
    assert rewound.rewound
    assert session.root.dialog_id == session.newest.dialog_id == rewound.dialog_id
    rewound.put_text("another way")
    assert texts(five.messages) == ["m0", "m1", "m2", "m3", "m4"]
    back = rewound.undo_rewind()
    assert back is five
    assert session.root.dialog_id == session.newest.dialog_id == session.resume().dialog_id == five.dialog_id
    five.put_text("m5")
    assert texts(rewound.messages) == ["m0", "m1", "m2", "another way"]
    with pytest.raises(InvalidInput, match="not made by a rewind"):
        five.undo_rewind()
    again = five.rewind(five.messages.handle(1)).apply()
    assert texts(again.messages) == ["m0", "m1"]


def test_a_rewind_to_the_beginning_is_a_rewind_like_any_other(five: Dialog) -> None:
    """Nothing stays, everything is told, and it can be undone; an empty dialog has nothing to go back from."""
    preview = five.rewind(None)
    assert (preview.to, preview.kept, len(preview.leaving)) == (None, 0, 5)
    assert str(preview).startswith("Back to the beginning: 0 messages stay, 5 leave")

    rewound = preview.apply()

    assert rewound.rewound
    assert not rewound.messages
    with pytest.raises(InvalidInput, match="is empty: nothing would leave"):
        rewound.rewind(None)
    assert rewound.undo_rewind() is five


def test_a_rewind_before_a_fork_and_before_a_compaction(five: Dialog) -> None:
    """One may go back into what was inherited; what a compaction left out comes back, and the preview says how much."""
    for number in range(6):
        five.put_text(f"long question {number} " * 40)
        five.append(AssistantMessage(content=f"long answer {number} " * 40))
    place = five.messages.handle(-1)
    five.commit(five.compose("default", 1500, model="gpt-4o"), margin=0)
    child = five.fork()
    child.put_text("after")
    preview = child.rewind(place)
    assert preview.returning > 0
    assert f"{preview.returning} exchanges come back" in str(preview)
    rewound = preview.apply()
    assert len(rewound.view().exchanges) == 16
    assert texts(child.rewind(five.messages.handle(3)).apply().messages) == ["m0", "m1", "m2", "m3"]


def test_calls_that_lose_their_result_are_named(branch: Dialog) -> None:
    """Going back to between a call and its result names the call, counts what it did as done, and gives valid requests."""
    preview = branch.rewind(Handle(branch.dialog_id, 3))
    assert preview.interrupted == ("c2",)
    assert [(one.path, one.wrote) for one in preview.files][:1] == [("a.py", True)]
    rewound = preview.apply()
    rewound.put_text("Do it otherwise.")
    for profile in PROFILES:
        rewound.request(profile, "m", max_tokens=64)


def test_what_was_said_since_the_preview_is_not_rewound_unseen(five: Dialog) -> None:
    """A preview that is out of date is not done: Conflict; nothing to rewind, and foreign or unknown places, are refused."""
    preview = five.rewind(five.messages.handle(1))
    five.put_text("said meanwhile")
    count = len(five.store.nodes(five.session_id))
    with pytest.raises(Conflict):
        preview.apply()
    assert len(five.store.nodes(five.session_id)) == count
    with pytest.raises(InvalidInput, match="newest"):
        five.rewind(five.messages.handle(-1))
    child = five.fork()
    place = child.annotate(BranchSummary(summary="x"))
    with pytest.raises(UnknownHandle):
        five.rewind(place)
    with pytest.raises(UnknownHandle):
        five.rewind("0123456789ab:0")


def test_a_rewind_of_another_branch_leaves_the_root_alone(five: Dialog) -> None:
    """Only who rewinds the dialog to go on with changes which one that is."""
    session = Session.open(five.session_id, five.store)
    child = five.fork()
    child.put_text("x")
    rewound = child.rewind(five.messages.handle(0)).apply()
    assert session.root.dialog_id == five.dialog_id
    assert rewound.undo_rewind().dialog_id == child.dialog_id
    assert session.root.dialog_id == five.dialog_id
