"""The laws of dialogs and their tree."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from palaver.errors import Ambiguous, InvalidInput, NotFound
from palaver.ids import DialogId, SessionId, new_dialog_id, new_session_id
from palaver.log import NOTHING, Node, Span
from palaver.store.protocol import SessionRecord
from palaver.testing.store_laws.backend import NOWHERE, Begun, LawGroup, label


def _other_session(begun: Begun, like: str = "") -> SessionId:
    session = new_session_id(like)
    begun.store.create_session(SessionRecord(session_id=session))
    return session


def _beginning(digits: str, session: SessionId) -> DialogId:
    return DialogId(digits + new_dialog_id(session)[len(digits) :])


class TreeLaws(LawGroup):
    """The laws of dialogs."""

    def test_node_comes_back_as_written(self, begun: Begun) -> None:
        """Every field comes back; the store sets the order."""
        begun.say(b"a", b"b")
        node = Node(
            dialog_id=new_dialog_id(begun.session),
            session_id=begun.session,
            owner="coder 'x'",
            parent_id=begun.dialog,
            ranges=(Span(begun.dialog, 0, 1), Span(begun.dialog, 1, 2)),
            order=77,
            split_point=2,
            last_n=1,
            first_k=0,
            inherited=2,
            created_at=3.5,
            relation="fork",
            metadata={"why": ["because"]},
        )
        made = begun.store.create_dialog(node)
        assert made == replace(node, order=1) == begun.store.node(node.dialog_id)

    def test_nodes_come_in_the_order_of_creation(self, begun: Begun) -> None:
        """A session returns its own dialogs, numbered from 0, or those after a number."""
        made = [begun.dialog, *(begun.fork() for _ in range(3))]
        begun.fork(session=_other_session(begun))
        nodes = begun.store.nodes(begun.session)
        assert [node.dialog_id for node in nodes] == made
        assert [node.order for node in nodes] == [0, 1, 2, 3]
        assert begun.store.nodes(begun.session, after=1) == nodes[2:]

    def test_new_dialog_is_empty(self, begun: Begun) -> None:
        """A fork shares entries by ranges; it has no own entries, and its parent does not change."""
        begun.say(b"a", b"b")
        child = begun.fork(Span(begun.dialog, 0, 2))
        assert begun.store.last(child) == NOTHING
        assert (begun.said(child), list(begun.store.headers(child))) == ([], [])
        begun.say(b"c", dialog=child)
        assert begun.said() == [b"a", b"b"]

    def test_forks_of_forks_share_from_all(self, begun: Begun) -> None:
        """Ranges of several ancestors come back in their order, at every depth, and in every handle."""
        known: list[tuple[Span, ...]] = [()]
        dialog = begun.dialog
        for depth in range(8):
            begun.say(b"%d" % depth, b"more", dialog=dialog)
            shared = (*known[-1], Span(dialog, 0, 1 + depth % 2))
            cut = shared[1:] if depth == 5 else shared  # noqa: PLR2004 - one of them leaves something out
            dialog = begun.fork(*cut)
            known.append(cut)
        assert [node.ranges for node in begun.store.nodes(begun.session)] == known
        assert begun.store.node(dialog).ranges == known[-1]

    def test_ancestor_is_of_the_same_session(self, begun: Begun) -> None:
        """The parent and the ranges must name dialogs of this session, and the session must exist."""
        foreign = begun.fork(session=_other_session(begun))
        before = begun.everything()
        for ancestor in (NOWHERE, foreign):
            for fields in ({"parent_id": ancestor}, {"ranges": (Span(ancestor, 0, 0),)}):
                node: Any = Node(dialog_id=new_dialog_id(begun.session), session_id=begun.session)
                with pytest.raises(NotFound):
                    begun.store.create_dialog(replace(node, **fields))
        with pytest.raises(NotFound):
            begun.store.create_dialog(Node(dialog_id=NOWHERE, session_id=SessionId("e" * 32)))
        assert begun.everything() == before
        assert begun.store.node(begun.fork()).order == 1

    @pytest.mark.parametrize(("start", "stop"), [(0, 3), (-1, 1), (2, 1), (3, 3), (0, 10**30)])
    def test_range_is_within_its_ancestor(self, begun: Begun, start: int, stop: int) -> None:
        """A range ends at the end of the ancestor's entries at the latest."""
        begun.say(b"a", b"b")
        before = begun.everything()
        with pytest.raises(InvalidInput):
            begun.fork(Span(begun.dialog, start, stop))
        assert begun.everything() == before

    def test_dialog_id_is_taken_once(self, begun: Begun) -> None:
        """An id is unique in the store, and its first 12 digits in the session, because printed handles show no more."""
        elsewhere = _other_session(begun, like=begun.session)
        alike = DialogId(begun.dialog[:12] + ("0" if begun.dialog[12] != "0" else "1") + begun.dialog[13:])
        before = begun.everything()
        for taken, session in ((begun.dialog, begun.session), (begun.dialog, elsewhere), (alike, begun.session)):
            with pytest.raises(InvalidInput):
                begun.store.create_dialog(Node(dialog_id=taken, session_id=session))
        assert begun.everything() == before
        assert begun.store.create_dialog(Node(dialog_id=alike, session_id=elsewhere)).order == 0

    def test_dialog_id_is_32_digits_of_its_session(self, begun: Begun) -> None:
        """An id that no handle can name is refused; its last four digits name the part of a sharded store."""
        foreign = new_dialog_id(begun.session[:-1] + ("0" if begun.session[-1] != "0" else "1"))
        for wrong in ("", "abc", "G" * 32, "A" * 32, "a" * 33, "a" * 31 + "\n", "a" * 32 + "\n", foreign):
            with pytest.raises(InvalidInput):
                begun.store.create_dialog(Node(dialog_id=DialogId(wrong), session_id=begun.session))

    def test_unknown_dialog_is_not_found(self, begun: Begun) -> None:
        """Every method with an unknown dialog raises when it is called, including lazy ones."""
        store = begun.store
        uses = (store.node, store.last, store.headers, store.bodies, store.verify)
        for use in (*uses, lambda dialog_id: store.latest_of_kind(dialog_id, "inbox")):
            with pytest.raises(NotFound) as told:
                use(NOWHERE)
            assert told.value.what == "dialog"
        for place in (store.header, store.body):
            with pytest.raises(NotFound):
                place(NOWHERE, 0)
        with pytest.raises(NotFound):
            store.append(NOWHERE, (), -1)
        with pytest.raises(NotFound):
            store.annotate(NOWHERE, label())

    def test_prefix_names_one_dialog(self, begun: Begun) -> None:
        """Six digits are enough if they match one dialog in the session or the store."""
        store, elsewhere = begun.store, _other_session(begun)
        first, second = _beginning("abcdef0", begun.session), _beginning("abcdef1", elsewhere)
        store.create_dialog(Node(dialog_id=first, session_id=begun.session))
        store.create_dialog(Node(dialog_id=second, session_id=elsewhere))
        assert store.resolve("abcdef", begun.session) == first
        assert store.resolve("abcdef", elsewhere) == second
        assert store.resolve("abcdef1") == second == store.resolve(second)
        with pytest.raises(Ambiguous) as raised:
            store.resolve("abcdef")
        assert raised.value.candidates == (first, second)

    def test_law_12_prefix_is_never_a_pattern(self, begun: Begun) -> None:
        """A prefix that matches nothing finds nothing; fewer than six digits are refused."""
        begun.store.create_dialog(Node(dialog_id=_beginning("abcdf0", begun.session), session_id=begun.session))
        for prefix in ("abcdef", "______", "%%%%%%", "abcde*", "ABCDEF", "\ud800" * 6, "a" * 33):
            with pytest.raises(NotFound):
                begun.store.resolve(prefix)
            with pytest.raises(InvalidInput):
                begun.store.resolve(prefix[:5])

    def test_law_3_nodes_cannot_change_the_store(self, begun: Begun) -> None:
        """Nodes are frozen, and so is their metadata."""
        node = Node(dialog_id=new_dialog_id(begun.session), session_id=begun.session, metadata={"a": [1]})
        made: Any = begun.store.create_dialog(node)
        with pytest.raises(FrozenInstanceError):
            made.owner = "me"
        with pytest.raises((TypeError, AttributeError)):
            made.metadata["a"].append(2)
        assert begun.store.node(made.dialog_id).metadata == {"a": [1]}
