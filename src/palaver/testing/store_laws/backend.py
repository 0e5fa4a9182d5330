"""The interface of a backend, and the base of every group of laws."""

from __future__ import annotations

import os
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from palaver.ids import DialogId, SessionId, new_dialog_id, new_session_id
from palaver.log import Draft, Header, Node, Span, rule
from palaver.store.connect import open_store
from palaver.store.protocol import Capability, SessionRecord, Store

ILLEGAL = Draft("turn_ended", "", 0, (), (), "", 1.0, b"no turn is open")
"""The kinds of entries that may not be appended to a dialog without an open turn."""

NOWHERE = DialogId("e" * 32)
NOBODY = SessionId("f" * 32)


class Backend(ABC):
    """One place for one store, empty at first."""

    @abstractmethod
    def open(self) -> Store:
        """Open the store; a second call opens the same one again, if stores of this kind are shared or durable."""

    def open_url(self, url: str) -> Store:
        """Open a store by its address; a store that needs more than that overrides this."""
        return open_store(url, create=False)

    @abstractmethod
    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body directly, as it was written."""

    @abstractmethod
    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change the last byte of a body directly."""

    @abstractmethod
    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Delete a body directly."""

    def damage_header(self, dialog_id: DialogId, seq: int) -> None:
        """Change the kind in a header directly. By default, laws that need this are skipped."""
        pytest.skip(f"this backend cannot damage the header of {dialog_id}:{seq}")

    def age_payloads(self, seconds: float) -> None:
        """Make every payload older. By default, laws that need this are skipped."""
        pytest.skip(f"this backend cannot let payloads be {seconds:.0f} seconds older")


@dataclass(frozen=True)
class Begun:
    """A store with one session and its first dialog, and helpers to write to it."""

    store: Store
    session: SessionId
    dialog: DialogId

    def fork(self, *ranges: Span, session: SessionId | None = None) -> DialogId:
        """Create another dialog."""
        home = session or self.session
        parent = ranges[-1].dialog if ranges else None
        node = Node(dialog_id=new_dialog_id(home), session_id=home, parent_id=parent, ranges=ranges)
        return self.store.create_dialog(node).dialog_id

    def say(self, *bodies: bytes, dialog: DialogId | None = None) -> tuple[Header, ...]:
        """Append messages of a user."""
        place = dialog or self.dialog
        return self.store.append(place, [words(body) for body in bodies], self.store.last(place).turn_head)

    def mark(self, *kinds: str) -> list[Header]:
        """Write an entry of each kind as its rule allows, and return all headers."""
        with self.store.transaction():
            for kind in kinds:
                if rule(kind).turn:
                    self.store.append(self.dialog, [words(kind=kind)], self.store.last(self.dialog).turn_head)
                else:
                    self.store.annotate(self.dialog, words(kind=kind))
        return list(self.store.headers(self.dialog))

    def said(self, dialog: DialogId | None = None) -> list[bytes]:
        """Return the bodies of a dialog."""
        return [body for _seq, body in self.store.bodies(dialog or self.dialog)]

    def everything(self) -> tuple[object, ...]:
        """Return all data of this session, which a failed write must not change."""
        nodes = self.store.nodes(self.session)
        logs = [(list(self.store.headers(n.dialog_id)), list(self.store.bodies(n.dialog_id))) for n in nodes]
        return (list(self.store.sessions()), nodes, logs, self.store.sources(self.session))


def words(body: bytes = b"hi", *, kind: str = "message", role: str = "user", at: float = 1.0) -> Draft:
    """Return a draft that opens and answers nothing."""
    said = kind == "message"
    return Draft(kind, role if said else "", int(said), (), (), "", at, body)


def calls(*ids: str, response: str = "r1", body: bytes = b"calling") -> Draft:
    """Return a response of the model that makes calls."""
    return Draft("message", "assistant", 1, ids, (), response, 1.0, body)


def answer(*ids: str, body: bytes = b"done") -> Draft:
    """Return results of calls."""
    return Draft("message", "tool", 1, (), ids, "", 1.0, body)


def label(body: bytes = b"label", at: float = 1.0) -> Draft:
    """Return an entry outside turns."""
    return Draft("label", "", 0, (), (), "", at, body)


class LawGroup:
    """Fixtures for groups of laws: an empty store, and one with a dialog."""

    @pytest.fixture
    def backend(self) -> Backend:
        """Return the backend of an empty store. A subclass overrides only this."""
        raise NotImplementedError("override the fixture `backend`")

    @pytest.fixture
    def store(self, backend: Backend) -> Iterator[Store]:
        """Return an empty store."""
        store = backend.open()
        yield store
        store.close()

    @pytest.fixture
    def begun(self, store: Store) -> Begun:
        """Return a store with one dialog."""
        return begin(store)


def begin(store: Store, like: str = "") -> Begun:
    """Create a session and its first dialog; with `like`, one that a transaction may write to together with the session of this id."""
    session = new_session_id(like)
    dialog = new_dialog_id(session)
    root = Node(dialog_id=dialog, session_id=session, created_at=1.0)
    store.create_session(SessionRecord(session_id=session, created_at=1.0), root)
    return Begun(store, session, dialog)


def needs(store: Store, capability: Capability) -> None:
    """Skip a law, by name, if the store lacks a capability."""
    if capability not in store.capabilities:
        pytest.skip(f"this store lacks the capability {capability.value}")


def forked(work: Callable[[], None]) -> int:
    """Run `work` in a forked child and return its wait status: 0 if it returned. Exceptions are printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, about a fork in a process with threads
        child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]
