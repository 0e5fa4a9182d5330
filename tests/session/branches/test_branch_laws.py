"""Laws of branches: whatever is appended, branched, merged, rewound, labelled, compacted and reopened, in any order, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import AssistantMessage, Session, SessionManager, ToolMessage, ToolResultContent, UserMessage
from palaver.errors import InvalidInput
from palaver.log import Handle
from palaver.messages import ToolCallContent
from palaver.store import MemoryStore, Store
from palaver.transcripts import Importer, export
from palaver.wire import PROFILES


class Managed:
    """A session under its manager, and the number of things said."""

    def __init__(self) -> None:
        """Begin a session."""
        self.store = MemoryStore()
        self.manager = SessionManager.create("/w", self.store)
        self.said = 0

    def place(self, which: int) -> str | None:
        """Give the id of one of the entries."""
        entries = self.manager.get_entries()
        return entries[which % len(entries)].id if entries else None

    def words(self) -> str:
        """Give words that were not said before."""
        self.said += 1
        return f"words {self.said}"

    def call(self, _: int) -> None:
        """Let the model call a tool, and the tool answer."""
        call = ToolCallContent(id=f"c{self.said}", name="Write", args={"file_path": f"f{self.said}.py"})
        self.manager.append_message(AssistantMessage(contents=(call,), model="m"))
        self.manager.append_message(ToolMessage.from_result(ToolResultContent(id=call.id, content=self.words())))

    def branch(self, which: int) -> None:
        """Move the leaf."""
        if (place := self.place(which)) is not None:
            self.manager.branch(place)

    def merge(self, which: int) -> None:
        """Tell this branch what happened on another."""
        dialogs = self.manager.session.dialogs
        try:
            self.manager.dialog.merge(dialogs[which % len(dialogs)].reload())
        except InvalidInput:  # nothing was said there that is not here
            return

    def rewind(self, which: int) -> None:
        """Go back, and every other time undo it."""
        dialog = self.manager.dialog.reload()
        places = [Handle(span.dialog, seq) for span in dialog.spans for seq in range(span.start, span.stop)]
        if len(places) > 1:
            rewound = dialog.rewind(places[which % (len(places) - 1)]).apply()
            self.manager = SessionManager(self.manager.session, rewound.undo_rewind() if which % 2 else rewound)

    def reopen(self, _: int) -> None:
        """Open the session anew."""
        self.manager = SessionManager.open(self.manager.session_id, self.store)

    def label(self, which: int) -> None:
        """Name an entry, or take its name away."""
        if (place := self.place(which)) is not None:
            self.manager.append_label(place, None if which % 3 == 0 else f"label {which}")


ACTS: dict[str, Callable[[Managed, int], object]] = {
    "say": lambda one, _: one.manager.append_message(UserMessage(content=one.words())),
    "answer": lambda one, _: one.manager.append_message(AssistantMessage(content=one.words(), model="m")),
    "call": Managed.call,
    "custom": lambda one, which: one.manager.append_custom_message("t", one.words(), details={"n": which}),
    "record": lambda one, which: one.manager.append_custom("t", {"n": which}),
    "model": lambda one, which: one.manager.append_model_change("p", f"m{which}"),
    "thinking": lambda one, which: one.manager.append_thinking_level_change("high" if which % 2 else "off"),
    "compact": lambda one, which: one.manager.append_compaction(one.words(), one.place(which), which, {"n": which}),
    "summary": lambda one, which: one.manager.append_branch_summary(one.words(), one.place(which)),
    "branch": Managed.branch,
    "branch with summary": lambda one, which: one.manager.branch_with_summary(one.words(), one.place(which)),
    "reset": lambda one, _: one.manager.reset_leaf(),
    "merge": Managed.merge,
    "rewind": Managed.rewind,
    "reopen": Managed.reopen,
    "label": Managed.label,
}
STEPS = st.lists(
    st.tuples(st.sampled_from(["say", "answer", "call", "branch", *ACTS]), st.integers(0, 40)), min_size=3, max_size=22
)


def _chain(manager: SessionManager) -> dict[str, tuple[str | None, bytes]]:
    return {entry.id: (entry.parent_id, entry.entry.model_dump_json().encode()) for entry in manager.get_entries()}


def _done(steps: list[tuple[str, int]]) -> Managed:
    managed = Managed()
    managed.manager.append_message(UserMessage(content=managed.words()))
    for act, which in steps:
        ACTS[act](managed, which)
    return managed


@settings(max_examples=40)
@given(steps=STEPS)
def test_nothing_is_lost_and_every_view_is_valid(steps: list[tuple[str, int]]) -> None:
    """After each act every entry of before is there, under its id, after the same parent, byte for byte; and all views are valid.

    At the end every branch gives a valid request for every provider, and its view has the newest words of its user.
    """
    managed = Managed()
    managed.manager.append_message(UserMessage(content=managed.words()))
    for act, which in steps:
        before = _chain(managed.manager)
        ACTS[act](managed, which)
        after = _chain(managed.manager)
        assert before.items() <= after.items(), act
    for dialog in Session.open(managed.manager.session_id, managed.store).dialogs:
        if not len(dialog.view().exchanges):
            continue
        for profile in PROFILES:
            dialog.request(profile, "m", max_tokens=64, then="Go on.")
        newest = [message for message in dialog.messages if isinstance(message, UserMessage)][-1:]
        said = [block.content for exchange in dialog.view().exchanges for block in exchange.blocks()]
        assert all(message.contents[0] in said for message in newest)


@settings(max_examples=40)
@given(steps=STEPS)
def test_the_tree_and_the_branches_are_the_parents_again(steps: list[tuple[str, int]]) -> None:
    """The tree holds every entry once, under its parent; the way to each entry is its chain of parents; the leaf is in the tree."""
    manager = _done(steps).manager
    parents = {entry.id: entry.parent_id for entry in manager.get_entries()}
    found: dict[str, str | None] = {}
    waiting = [(None, node) for node in manager.get_tree()]
    while waiting:
        above, node = waiting.pop()
        assert node.entry.id not in found
        found[node.entry.id] = above
        waiting.extend((node.entry.id, child) for child in node.children)  # type: ignore[misc]
    assert found == parents
    for entry in parents:
        way = [one.id for one in manager.get_branch(entry)]
        assert way[-1] == entry
        assert [parents[one] for one in way] == [None, *way[:-1]]
    assert manager.leaf_id is None or manager.leaf_id in parents


def _exported(store: Store, session_id: str) -> bytes:
    return b"".join(export(store, Session.open(session_id, store).session_id, "pi").pieces)


@settings(max_examples=40)
@given(steps=STEPS)
def test_r222_the_chain_comes_back_from_a_file(steps: list[tuple[str, int]]) -> None:
    """R222: export, import, export gives the same bytes: ids, parents, entries, labels; and what a model sees at the end is what it saw."""
    managed = _done(steps)
    first = _exported(managed.store, managed.manager.session_id)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        path.write_bytes(first)
        store = MemoryStore()
        (imported,) = Importer(store).import_path(path)
        assert not [loss for loss in imported.losses if loss.severity == "loss"]
        assert _exported(store, imported.session_id) == first
        (again,) = Importer(store).import_path(path)
        assert (again.outcome, again.entries) == ("unchanged", 0)
