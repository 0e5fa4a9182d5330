"""A small history with one of everything that a store writes: what the sweeps of damage cut off, kill and fail at every step of.

Its ids and times are fixed, so any process plays the same steps, and the reference store in memory says what holds after each of them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import NamedTuple, TypeAlias, cast

from palaver.ids import BlobId, DialogId, SessionId, derive_dialog_id, derive_id
from palaver.log import Draft, Label, MessageEntry, Node, Place, Span, TurnEnded, TurnStarted, draft
from palaver.messages import Message
from palaver.store import MemoryStore, SessionRecord, SourceRecord, Store
from palaver.store.erasing import Erasing, Gone, KeptReceipt, NotedFile, Placed
from tests.stores import fingerprint

Step: TypeAlias = Callable[[Store], object]
"""Makes one durable step."""

_PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(200)) * 30


class History(NamedTuple):
    """Steps, and what a store holds after each number of them.

    Attributes:
        steps: The steps.
        states: The digest of everything after each number of steps, from none to all.
    """

    steps: Sequence[Step]
    states: Sequence[str]


def history(rounds: int = 3) -> History:
    """Return a history of so many rounds, with its states."""
    made = tuple(chain.from_iterable(map(_round, range(rounds))))
    store = MemoryStore()
    states = [state_of(store)]
    for step in made:
        step(store)
        states.append(state_of(store))
    return History(made, states)


def state_of(store: Store) -> str:
    """Return a digest of everything a store holds."""
    erasing = cast("Erasing", store)
    kept = (sorted(erasing.all_gone()), sorted(erasing.receipts()))
    return sha256(f"{fingerprint(store)} {kept!r}".encode()).hexdigest()


# --- the steps --------------------------------------------------------------------------------------------------------------------


def said(text: str, at: float = 2.0) -> Draft:
    """Return a message of the user."""
    return draft(MessageEntry(at=at, message=Message(role="user", content=text, id=derive_id(text), timestamp=at)))[0]


def _append(dialog: DialogId, drafts: Sequence[Draft], store: Store) -> None:
    store.append(dialog, drafts, store.last(dialog).turn_head)


def _together(steps: Sequence[Step], store: Store) -> None:
    with store.transaction():
        for step in steps:
            step(store)


def _erase(dialog: DialogId, seq: int, number: int, store: Store) -> None:
    with cast("Erasing", store).erasing() as eraser:
        eraser.put_in_place(dialog, [Placed(seq, "message", said(f"erased {number}").body)])
        eraser.keep_receipt(KeptReceipt(derive_id("receipt", str(number)), "{}", "[]"))


def _remove(session: SessionId, store: Store) -> None:
    with cast("Erasing", store).erasing() as eraser:
        dialogs = [node.dialog_id for node in store.nodes(session)][::-1]
        eraser.remove_dialogs(dialogs)
        eraser.remove_session(session)
        eraser.remove_blobs(session, eraser.unnamed(session, [BlobId(sha256(_PICTURE).hexdigest())]))
        eraser.remember([("session", session), *(("dialog", one) for one in dialogs)], Gone(9.0, "r"))


def _round(number: int) -> list[Step]:
    session = SessionId(derive_id("session", str(number)))
    other = SessionId(derive_id("other", str(number)))
    root, child = (derive_dialog_id(session, name) for name in ("root", "child"))
    place = derive_dialog_id(other, "root")
    picture = sha256(_PICTURE).hexdigest()
    shown = Draft(
        "custom", "", 0, (), (), "", 4.0, b'{"at":4.0,"custom_type":"p","data":"%s","kind":"custom"}' % picture.encode()
    )
    record = SessionRecord(session_id=session, name=f"round {number}", created_at=1.0, metadata={"n": number})
    fork = Node(
        dialog_id=child, session_id=session, parent_id=root, ranges=(Span(root, 0, 2),), inherited=2, created_at=3.0
    )
    label = draft(Label(at=3.0, target=Place(dialog=root, seq=0), label="start"))[0]
    source = SourceRecord(identity=f"f:{number}", session_id=session, format="f", imported_at=5.0)
    steps: list[Step] = [
        lambda store: store.create_session(record, Node(dialog_id=root, session_id=session, created_at=1.0)),
        partial(_append, root, [said(f"question {number} " + "with words " * 40), said("and another")]),
        partial(_append, root, [draft(TurnStarted(at=3.0, agent="a"))[0]]),
        lambda store: store.annotate(root, label),
        partial(_append, root, [said("x" * 9000), draft(TurnEnded(at=3.5))[0]]),
        lambda store: store.create_dialog(fork),
        partial(_append, child, [said("on a branch")]),
        partial(_together, [lambda store: store.put_blob(session, _PICTURE), partial(_append, root, [shown])]),
        lambda store: store.index(lambda _kind, body: body.decode("utf-8", "replace")[:400]),
        lambda store: store.update_session(session, name=f"renamed {number}", subject="who"),
        lambda store: store.put_source(source),
        lambda store: store.create_session(SessionRecord(session_id=other, created_at=2.0), None),
        partial(
            _together,
            [
                lambda store: store.create_dialog(Node(dialog_id=place, session_id=other, created_at=2.0)),
                partial(_append, place, [said("elsewhere")]),
                partial(_append, child, [said("at once")]),
            ],
        ),
        lambda store: store.update_session(other, trashed_at=6.0),
        lambda store: cast("Erasing", store).note_file(session, NotedFile("/a/file", "d" * 64, 1)),
        partial(_erase, root, 4, number),
        partial(_remove, other),
        lambda store: cast("Erasing", store).scrub(thorough=number == 1),
        partial(_append, root, [said(f"after all that {number}", at=7.0)]),
    ]
    return steps
