"""Laws of sessions: what was written stays as it was, whatever is done afterwards (laws 3 and 9)."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Dialog, Message, Session, Store
from palaver.errors import InfeasibleBudget, PalaverError
from palaver.ids import DialogId
from palaver.messages import canonical_json
from palaver.store import MemoryStore


def _bodies(store: Store, session: Session) -> dict[DialogId, list[bytes]]:
    nodes = store.nodes(session.session_id)
    return {node.dialog_id: [body for _, body in store.bodies(node.dialog_id)] for node in nodes}


def _talk(dialog: Dialog) -> None:
    for number in range(4):
        dialog.put_text(f"question {number} with some words to it " * 4)
        dialog.append(Message(role="assistant", content=f"answer {number} " * 30, response_id=f"r{number}"))


def _commit(dialog: Dialog) -> None:
    dialog.commit(dialog.compose("default", 400, model="gpt-4o"), margin=0)


def _commit_and_undo(dialog: Dialog) -> None:
    _commit(dialog)
    dialog.undo()


ACTS: dict[str, Callable[[Dialog], object]] = {
    "say": _talk,
    "answer": lambda dialog: dialog.append(Message(role="assistant", content="yes " * 40, response_id="r")),
    "fork": lambda dialog: dialog.fork(),
    "window": lambda dialog: dialog.fork(last_n=2),
    "label": lambda dialog: dialog.label(dialog.messages.handle(0), "first"),
    "pin": lambda dialog: dialog.pin(dialog.messages.handle(-1)),
    "commit": _commit,
    "undo": lambda dialog: dialog.undo(),
    "commit and undo": _commit_and_undo,
    "recall": lambda dialog: dialog.recall(dialog.messages.handle(0)),
    "view": lambda dialog: dialog.view("offload", 500, model="gpt-4o"),
    "derive": lambda dialog: dialog.derive(dialog.view()).put_text("elsewhere"),
    "dict": lambda dialog: Dialog.from_dict(dialog.to_dict()),
}
MAY_BE_REFUSED = frozenset({"commit", "undo", "commit and undo", "view", "label", "pin", "recall"})


def _done(act: str, dialog: Dialog) -> bool:
    """Do it, and tell whether it was done: some acts have nothing to act on, or no budget that holds."""
    if act not in MAY_BE_REFUSED:
        ACTS[act](dialog)
        return True
    try:
        ACTS[act](dialog)
    except (PalaverError, IndexError):
        return False
    return True


STEPS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["say", "say", *ACTS])), min_size=3, max_size=25)


@settings(max_examples=30)
@given(steps=STEPS)
def test_law_03_nothing_changes_what_was_written(steps: list[tuple[int, str]]) -> None:
    """After every act each dialog's bodies are those of before, perhaps with more behind them; a refused act has added none."""
    store = MemoryStore()
    session = Session.create(store, "laws")
    _talk(session.root)
    for which, act in steps:
        dialog = session.dialogs[which % len(session.dialogs)]
        before = _bodies(store, session)
        done = _done(act, dialog)
        after = _bodies(store, session)
        for dialog_id, bodies in before.items():
            assert after[dialog_id][: len(bodies)] == bodies
            assert done or len(after[dialog_id]) == len(bodies)


@settings(max_examples=20)
@given(steps=STEPS)
def test_law_09_every_omission_resolves_in_every_branch(steps: list[tuple[int, str]]) -> None:
    """What any view of any dialog leaves out is recalled from every dialog of the session, and is the recorded entry."""
    session = Session.create(MemoryStore(), "laws")
    _talk(session.root)
    for which, act in steps:
        _done(act, session.dialogs[which % len(session.dialogs)])
    for dialog in session.dialogs:
        try:
            view = dialog.view("default", 400, model="gpt-4o")
        except InfeasibleBudget:
            continue
        for handle in (handle for omission in view.omissions for handle in omission.handles()):
            found = {canonical_json(other.recall(str(handle)).model_dump(mode="json")) for other in session.dialogs}
            assert len(found) == 1
