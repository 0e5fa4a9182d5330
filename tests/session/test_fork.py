"""Forks: scenarios A10 to A12, the window's arithmetic, and the tree against an oracle that shares no code with it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palaver import Message, ToolCallContent, ToolMessage, ToolResultContent
from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.log import Header, Label, Place
from palaver.providers import APIS
from palaver.session import Dialog, DialogTreeNode, tree_from_dicts
from palaver.store import MemoryStore
from palaver.view import Reason, fold


def _texts(dialog: Dialog) -> list[str]:
    return [message.text_content() for message in dialog.messages]


def test_nodes_survive_alone_and_together(five: Dialog) -> None:
    """A10, R59, R60, R65: a node read alone knows its ids and says what it does not know; the nodes of a flat log give the whole tree, or a circle."""
    child = five.fork(last_n=2)
    leaf = child.fork()
    dicts = [dialog.tree_node.to_dict() for dialog in (leaf, five, child)]
    assert dicts[2] == {
        "dialog_id": child.dialog_id,
        "owner": "coder",
        "parent_id": five.dialog_id,
        "split_point": 3,
        "last_n": 2,
        "first_k": 1,
        "children_ids": [leaf.dialog_id],
    }
    alone = DialogTreeNode.from_dict(dicts[0])
    assert alone == leaf.tree_node
    assert not alone.is_root
    with pytest.raises(NotFound):
        _ = alone.depth
    tree = tree_from_dicts(dicts)
    assert tree[leaf.dialog_id].depth == 2
    assert tree[five.dialog_id].subtree_ids() == [five.dialog_id, child.dialog_id, leaf.dialog_id]
    with pytest.raises(InvalidInput):
        DialogTreeNode.from_dict({"owner": "x"})
    circle = tree_from_dicts({"dialog_id": a, "parent_id": b} for a, b in (("x", "y"), ("y", "x")))
    with pytest.raises(InvalidInput):
        _ = circle["x"].depth


def test_windows_are_exact(five: Dialog) -> None:
    """A11, C28, R68-R71: the first and the last are kept, in order, none twice; split_point is how many, and `kept` says which."""
    for last_n, first_k, kept in ((0, 1, "01234"), (3, 1, "0234"), (2, 0, "34"), (1, 3, "0124"), (9, 9, "01234")):
        child = five.fork(last_n=last_n, first_k=first_k)
        assert _texts(child) == [f"m{digit}" for digit in kept]
        node = child.tree_node
        assert (node.split_point, node.last_n, node.first_k) == (len(kept), last_n, first_k)
        assert [seq for span in node.kept for seq in range(span.start, span.stop)] == [int(digit) for digit in kept]
    assert Dialog(owner="x").fork(last_n=3).messages == []


@pytest.mark.parametrize("first_k", [0, 1])
def test_window_that_keeps_a_result_alone_says_so(first_k: int) -> None:
    """R76: A result whose call the window left out is shown as text, and the report of each request names it; the call is an omission, whose handle returns it.

    Compactions and forks of the window keep that; of two parallel calls, only the one whose result is inside the window is named; a whole fork has none.
    """
    parent = Dialog()
    parent.put_text("What broke? " + "word " * 200)
    calls = tuple(ToolCallContent(id=name, name="tail", args={}) for name in ("c1", "c2"))
    parent.append(Message(role="tool_call", contents=calls))
    for name in ("c1", "c2"):
        parent.append(ToolMessage(contents=(ToolResultContent(id=name, content=f"disk {name}"),)))
    parent.put_text("A disk is full.", role="assistant")
    assert not parent.fork().view().omissions

    child = parent.fork(last_n=2, first_k=first_k)
    result, call = parent.messages.handle(3)._replace(block=0), parent.messages.handle(1)._replace(block=1)
    for dialog in (child, child.fork()):
        (gone,) = dialog.view().omissions
        assert (gone.reason, gone.handle) == (Reason.PARTED, call)
        assert dialog.recall(gone.place) == calls[1]
        assert "disk c2" in str(dialog.view().messages)
        for api in APIS:
            (changed,) = dialog.request(api, "gpt-5", then="Go on.").report.about(result)
            assert "its call is not there" in str(changed)
    child.put_text("Go on. " + "word " * 500)
    child.put_text("I go on.", role="assistant")
    child.put_text("And now?")
    child.compaction.preview("fold", 400, model="gpt-5").approve()
    assert child.view() == fold(child.store, child.dialog_id)
    assert call in [gone.handle for gone in child.view().omissions]


def test_wrong_windows_are_refused(five: Dialog) -> None:
    """R74: negative numbers are a ValueError, other things than whole numbers a TypeError; nothing was forked."""
    for wrong in (-1, -5):
        with pytest.raises(ValueError, match="last_n"):
            five.fork(last_n=wrong)
        with pytest.raises(InvalidInput, match="first_k"):
            five.fork(last_n=1, first_k=wrong)
    for odd in (1.0, "2", None, True):
        with pytest.raises(TypeError, match="last_n"):
            five.fork(last_n=odd)  # type: ignore[arg-type]
    assert five.children == ()


def test_deep_trees_need_no_recursion() -> None:
    """A chain of forks deeper than the interpreter's recursion limit has a depth, a subtree and an indented overview."""
    root = dialog = Dialog(owner="deep")
    dialog.put_text("x")
    for _ in range(1100):
        dialog = dialog.fork()
    assert dialog.tree_node.depth == 1100
    assert len(root.tree_node.subtree_ids()) == 1101
    lines = root.tree_overview().splitlines()
    assert len(lines) == 1101
    assert lines[2].startswith("    └─ [")


def test_a_fork_begins_after_an_entry(five: Dialog) -> None:
    """It shares all up to the entry, wherever its handle is, and the parent stays as it was; an entry elsewhere is unknown, `last_n` contradicts it."""
    places = [five.messages.handle(index) for index in range(5)]
    child = five.fork(at=str(places[2]))
    leaf = child.fork(at=places[1])
    for made, kept in ((child, 3), (leaf, 2)):
        assert list(made.messages.bare()) == list(five.messages.bare())[:kept]
        assert made.tree_node.split_point == kept
    child.put_text("elsewhere")
    assert len(five.messages) == 5
    with pytest.raises(NotFound):
        leaf.fork(at=places[4])
    with pytest.raises(InvalidInput, match="one of the two"):
        five.fork(2, at=places[1])


def test_law_11_a_fork_costs_the_same_whatever_the_length() -> None:
    """A fork reads and writes a bounded number of headers and no body, however long the log is."""

    class Counting(MemoryStore):
        reads = 0

        def header(self, dialog_id: DialogId, seq: int) -> Header:
            Counting.reads += 1
            return super().header(dialog_id, seq)

        def body(self, dialog_id: DialogId, seq: int) -> bytes:
            raise AssertionError(f"a fork read body {seq} of {dialog_id}")

        def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
            raise AssertionError(f"a fork read bodies {start} to {stop} of {dialog_id}")

    dialog = Dialog(owner="x", store=Counting())
    for number in range(100):  # an agent's rounds: two messages of a response, its results, a label
        parts = [Message(role="assistant", content=part, response_id=f"r{number}", fragment=True) for part in "ab"]
        dialog.append([Message(role="user", content="ask"), *parts, Message(role="user", content="told")] * 2)
        dialog.marks.label(dialog.messages.handle(0), "x")
    for (last_n, first_k), most in {(0, 1): 0, (3, 2): 50, (50, 1): 50, (1, 50): 50}.items():
        Counting.reads = 0
        dialog.fork(last_n=last_n, first_k=first_k)
        assert Counting.reads <= most


# --- the oracle: plain lists of plain tuples -----------------------------------------------------------------------------------


@dataclass
class Plain:
    """A dialog as plain lists: (message id, texts) for each message, and which response may still grow."""

    said: list[tuple[str, tuple[str, ...]]]
    response: str = ""
    number: int = 0
    labels: int = 0
    children: list[int] = field(default_factory=list)


ROLES = st.sampled_from(["user", "tool", "assistant:r1", "assistant:r1", "assistant:r2", "assistant", "label"])
SAY = st.tuples(st.integers(0, 3), st.lists(ROLES, min_size=3, max_size=9))
FORK = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
STEPS = st.lists(st.tuples(SAY, FORK), min_size=1, max_size=6)


def _said(dialog: Dialog) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (message.id, tuple(str(getattr(block, "content", "")) for block in message.contents))
        for message in dialog.messages
    ]


def _say(plain: Plain, dialog: Dialog, kind: str, text: str) -> None:
    if kind == "label":
        dialog.record(Label(target=Place(dialog=dialog.dialog_id, seq=0), label=text), beside=True)[0]
        return
    if kind == "tool":
        message = dialog.append(ToolMessage.from_result(ToolResultContent(id=text, content=text)))
        plain.said.append((message.id, (text,)))
        return
    role, _, response = kind.partition(":")
    shared = f"{response}-{dialog.dialog_id}" if response else None
    message = Message(role=role, content=text, response_id=shared, fragment=bool(response))
    if not response:
        plain.response = ""  # whoever says something else ends a response: an equal id after it is another one
    if response and plain.response == response:
        at = max(i for i, (known, _) in enumerate(plain.said) if known == f"{response}#{plain.number}")
        plain.said[at] = (plain.said[at][0], (*plain.said[at][1], text))
        dialog.append(message.model_copy(update={"id": "a fragment has an id of its own"}))
        return
    if response:
        plain.response, plain.number = response, plain.number + 1
    own = f"{response}#{plain.number}" if response else message.id
    plain.said.append((own, (text,)))
    dialog.append(message.model_copy(update={"id": own}))


R1, R2 = "assistant:r1", "assistant:r2"


@settings(max_examples=120)
@example([((0, [R1, "tool", R1, "user"]), (0, 1, 1))])  # a fragment behind the cut
@example([((0, [R1, R2, R1, "tool", R1]), (0, 2, 1)), ((0, ["user"]), (1, 1, 1))])  # the same id again, behind a gap
@given(steps=STEPS)
def test_forks_of_forks_hold_exactly_what_lists_would(
    steps: list[tuple[tuple[int, list[str]], tuple[int, int, int]]],
) -> None:
    """A11: whatever is said, in fragments or whole, and forked with whatever window: every dialog holds what a copied list holds."""
    dialogs = [Dialog(owner="o")]
    plains = [Plain([])]
    for number, ((speaking, kinds), (forked, last_n, first_k)) in enumerate(steps):
        for part, kind in enumerate(kinds):
            _say(plains[speaking % len(plains)], dialogs[speaking % len(plains)], kind, f"t{number}.{part}")
        parent = plains[forked % len(plains)]
        whole = last_n == 0 or last_n + first_k >= len(parent.said)
        kept = list(parent.said) if whole else parent.said[:first_k] + parent.said[len(parent.said) - last_n :]
        parent.children.append(len(dialogs))
        dialogs.append(dialogs[forked % len(plains)].fork(last_n=last_n, first_k=first_k))
        plains.append(Plain(kept, number=100 * (number + 1)))
        assert dialogs[-1].tree_node.split_point == len(kept)
    for plain, dialog in zip(plains, dialogs, strict=True):
        assert _said(dialog) == plain.said
        assert len(dialog.messages) == len(plain.said)
        one_by_one = [(m.id, len(m.contents)) for m in (dialog.messages[i] for i in range(len(plain.said)))]
        assert one_by_one == [(own, len(texts)) for own, texts in plain.said]
        assert dialog.tree_node.children_ids == [dialogs[child].dialog_id for child in plain.children]
