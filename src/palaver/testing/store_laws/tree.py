"""The laws of dialogs and their tree."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from palaver.errors import Ambiguous, InvalidInput, PalaverError, UnknownDialog, UnknownSession
from palaver.ids import DialogId, SessionId, new_dialog_id, new_session_id
from palaver.log import NOTHING, Node, Span
from palaver.store.protocol import SessionRecord
from palaver.testing.store_laws.backend import ILLEGAL, Begun, LawGroup

NOWHERE = DialogId("e" * 32)


def _other_session(begun: Begun) -> SessionId:
    session = new_session_id()
    begun.store.create_session(SessionRecord(session_id=session))
    return session


class TreeLaws(LawGroup):
    """What `create_dialog`, `node`, `nodes` and `resolve` promise."""

    def test_a_node_comes_back_as_it_was_written(self, begun: Begun) -> None:
        """Every field comes back; the order is the store's to give."""
        begun.say(b"a", b"b")
        node = Node(
            dialog_id=new_dialog_id(),
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

    def test_nodes_come_in_the_order_in_which_they_were_made(self, begun: Begun) -> None:
        """A session gives its dialogs numbered from 0, and none of another session's."""
        made = [begun.dialog, *(begun.fork() for _ in range(3))]
        begun.fork(session=_other_session(begun))
        nodes = begun.store.nodes(begun.session)
        assert [node.dialog_id for node in nodes] == made
        assert [node.order for node in nodes] == [0, 1, 2, 3]

    def test_a_new_dialog_is_empty(self, begun: Begun) -> None:
        """A fork shares by its ranges; it holds no entry of its own, and its parent is as it was."""
        begun.say(b"a", b"b")
        before = list(begun.store.bodies(begun.dialog))
        child = begun.fork(Span(begun.dialog, 0, 2))
        assert begun.store.last(child) == NOTHING
        assert (list(begun.store.bodies(child)), list(begun.store.headers(child))) == ([], [])
        begun.say(b"c", dialog=child)
        assert list(begun.store.bodies(begun.dialog)) == before

    def test_a_node_of_an_unknown_session_is_refused(self, begun: Begun) -> None:
        """A dialog belongs to a session that is there."""
        with pytest.raises(UnknownSession):
            begun.store.create_dialog(Node(dialog_id=NOWHERE, session_id=new_session_id()))
        with pytest.raises(UnknownDialog):
            begun.store.node(NOWHERE)

    def test_an_ancestor_is_a_dialog_of_the_same_session(self, begun: Begun) -> None:
        """Neither the parent nor a range may name a dialog that is not there, or not in this session."""
        foreign = begun.fork(session=_other_session(begun))
        before = begun.everything()
        for ancestor in (NOWHERE, foreign):
            for fields in ({"parent_id": ancestor}, {"ranges": (Span(ancestor, 0, 0),)}):
                node: Any = Node(dialog_id=new_dialog_id(), session_id=begun.session)
                with pytest.raises(UnknownDialog):
                    begun.store.create_dialog(replace(node, **fields))
        assert begun.everything() == before

    @pytest.mark.parametrize(("start", "stop"), [(0, 3), (-1, 1), (2, 1), (3, 3), (0, 10**30)])
    def test_a_range_is_one_of_what_the_ancestor_holds(self, begun: Begun, start: int, stop: int) -> None:
        """A range ends where the ancestor's entries end, at the latest, and begins before it ends."""
        begun.say(b"a", b"b")
        before = begun.everything()
        node = Node(dialog_id=new_dialog_id(), session_id=begun.session, ranges=(Span(begun.dialog, start, stop),))
        with pytest.raises(InvalidInput):
            begun.store.create_dialog(node)
        assert begun.everything() == before

    def test_a_dialog_id_is_taken_once(self, begun: Begun) -> None:
        """An id is unique in the store, and its first 12 digits are in the session, for printed handles show no more."""
        elsewhere = _other_session(begun)
        alike = DialogId(begun.dialog[:12] + ("0" if begun.dialog[12] != "0" else "1") + begun.dialog[13:])
        before = begun.everything()
        for taken, session in ((begun.dialog, begun.session), (begun.dialog, elsewhere), (alike, begun.session)):
            with pytest.raises(InvalidInput):
                begun.store.create_dialog(Node(dialog_id=taken, session_id=session))
        assert begun.everything() == before
        assert begun.store.create_dialog(Node(dialog_id=alike, session_id=elsewhere)).order == 0

    @pytest.mark.parametrize("malformed", ["", "abc", "G" * 32, "A" * 32, "a" * 33, "a" * 31 + "\n", "a" * 32 + "\n"])
    def test_a_dialog_id_is_32_digits(self, begun: Begun, malformed: str) -> None:
        """An id that no handle could name is refused."""
        with pytest.raises(InvalidInput):
            begun.store.create_dialog(Node(dialog_id=DialogId(malformed), session_id=begun.session))

    def test_an_unknown_dialog_is_said_to_be_unknown(self, begun: Begun) -> None:
        """Every method that names a dialog which is not there says so when it is called, lazy ones too."""
        store = begun.store
        for use in (store.node, store.last, store.headers, store.bodies, store.verify):
            with pytest.raises(UnknownDialog):
                use(NOWHERE)
        for place in (store.header, store.body):
            with pytest.raises(UnknownDialog):
                place(NOWHERE, 0)
        with pytest.raises(UnknownDialog):
            store.append(NOWHERE, (), -1)
        with pytest.raises(UnknownDialog):
            store.annotate(NOWHERE, ILLEGAL)

    def test_a_prefix_names_the_one_dialog_that_begins_so(self, begun: Begun) -> None:
        """Six digits are enough when they fit one dialog, in the session or in the store that is asked."""
        store = begun.store
        one, two = DialogId("abcdef" + "0" * 26), DialogId("abcdef" + "1" * 26)
        elsewhere = _other_session(begun)
        store.create_dialog(Node(dialog_id=one, session_id=begun.session))
        store.create_dialog(Node(dialog_id=two, session_id=elsewhere))
        assert store.resolve("abcdef", begun.session) == one
        assert store.resolve("abcdef", elsewhere) == two
        assert store.resolve("abcdef1") == two == store.resolve(two)
        with pytest.raises(Ambiguous) as found:
            store.resolve("abcdef")
        assert found.value.candidates == (one, two)

    @pytest.mark.parametrize("prefix", ["abcdef", "______", "%%%%%%", "abcde*", "ABCDEF", "\ud800" * 6, "a" * 33])
    def test_a_prefix_of_nothing_is_unknown(self, begun: Begun, prefix: str) -> None:
        """A prefix is digits, never a pattern."""
        begun.store.create_dialog(Node(dialog_id=DialogId("abcdf0" + "0" * 26), session_id=begun.session))
        with pytest.raises(UnknownDialog):
            begun.store.resolve(prefix)

    @pytest.mark.parametrize("prefix", ["", "a", "abcde"])
    def test_a_short_prefix_is_refused(self, begun: Begun, prefix: str) -> None:
        """Fewer than six digits name nothing, even if only one dialog begins so."""
        begun.store.create_dialog(Node(dialog_id=DialogId("a" * 32), session_id=begun.session))
        with pytest.raises(InvalidInput):
            begun.store.resolve(prefix)

    def test_a_node_that_is_handed_out_cannot_change_the_store(self, begun: Begun) -> None:
        """Nodes are frozen, and so is their metadata."""
        made: Any = begun.store.create_dialog(
            Node(dialog_id=new_dialog_id(), session_id=begun.session, metadata={"a": [1]})
        )
        with pytest.raises(FrozenInstanceError):
            made.owner = "me"
        with pytest.raises((TypeError, AttributeError)):
            made.metadata["a"].append(2)
        assert begun.store.node(made.dialog_id).metadata == {"a": [1]}

    def test_a_fork_of_a_fork_may_share_from_both(self, begun: Begun) -> None:
        """Ranges of several ancestors stand in the order in which they were given."""
        begun.say(b"a", b"b")
        child = begun.fork(Span(begun.dialog, 0, 1))
        begun.say(b"c", dialog=child)
        ranges = (Span(begun.dialog, 0, 1), Span(child, 0, 1))
        assert begun.store.node(begun.fork(*ranges)).ranges == ranges

    def test_a_refused_node_leaves_no_gap(self, begun: Begun) -> None:
        """What was refused takes no number."""
        with pytest.raises(PalaverError):
            begun.fork(Span(NOWHERE, 0, 1))
        assert begun.store.node(begun.fork()).order == 1
