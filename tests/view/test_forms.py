"""Blocks in another form: what that form was made from goes with it, from plan to view, log and back."""

from __future__ import annotations

import pytest

from palaver.log import Place, Run, Span, decode_entry, draft
from palaver.log.entries import ContextEdit
from palaver.log.erasure import without
from palaver.log.values import BlockEdit, Erasure
from palaver.messages import Trust
from palaver.testing.logs import Log, model, user
from palaver.view import Insert, Plan, Reason, Rewrite, View, apply
from tests.view.growing import commit, seen


def talked() -> Log:
    """Return a log of three messages."""
    log = Log()
    log.put(user("ask"), model("a long answer"), user("go on"))
    return log


def committed(log: Log, view: View) -> View:
    """Record a view and read it back."""
    log.put(commit(log, view))
    return seen(log)


def test_sources_and_trust_of_a_form_are_recorded() -> None:
    """The view reads back equal; a later form of the same block keeps them, for it may be a part of the one before; trust is never raised."""
    log = talked()
    asked = Run(dialog=log.dialog, start=0, stop=1)
    place = log.at(1, 0)
    form = Rewrite(target=place, text="short", reason=Reason.SHORTENED, sources=(asked,), trust=Trust.OUTSIDE)
    view = apply(seen(log), Plan(policy="p", rewrites=(form,)))
    (block,) = [one for x in view.exchanges for one in x.blocks() if one.origin == place]
    assert (block.sources, block.trust) == ((asked,), Trust.OUTSIDE)
    again = committed(log, view)
    assert again.exchanges == view.exchanges
    later = Rewrite(target=place, text="sh", reason=Reason.SHORTENED, trust=Trust.HARNESS)
    (block,) = [
        one
        for x in apply(again, Plan(policy="p", rewrites=(later,))).exchanges
        for one in x.blocks()
        if one.origin == place
    ]
    assert (block.sources, block.trust) == ((asked,), Trust.OUTSIDE)


def test_form_of_the_block_alone_has_no_further_fields() -> None:
    """No field more: logs of before and of now are the same bytes, and those of before read as made of the block alone."""
    log = talked()
    form = Rewrite(target=log.at(1, 0), text="short", reason=Reason.SHORTENED)
    view = apply(seen(log), Plan(policy="p", rewrites=(form,)))
    entry = commit(log, view)
    body = draft(entry)[0].body
    (edit,) = entry.edits
    assert (edit.sources, edit.trust) == (None, None)
    assert b'"trust"' not in body
    assert decode_entry(body) == entry


@pytest.mark.parametrize(("gone", "text"), [(0, "[erased] [recall"), (1, "[erased]"), (2, "short")])
def test_erasure_takes_forms_by_their_sources(gone: int, text: str) -> None:
    """With the block all of it; with a source the words, while the handle of the block stays; with another entry nothing. Twice is as once."""
    dialog = Log().dialog
    edit = BlockEdit(
        target=Place(dialog=dialog, seq=1, block=0),
        text="short",
        reason="shortened",
        sources=(Run(dialog=dialog, start=0, stop=1),),
    )
    entry, mark = ContextEdit(base=2, edits=(edit,), policy="p"), Erasure(at=0.0, receipt="r")
    left = without(entry, [Span(dialog, gone, gone + 1)], mark)
    if gone == 2:
        assert left is None
        return
    assert isinstance(left, ContextEdit)
    assert left.edits[0].text.startswith(text)
    assert left.edits[0].reversible is (gone == 0)
    assert without(left, [Span(dialog, gone, gone + 1)], mark) is None


@pytest.mark.parametrize("bad", ["a\0b", "a\ud83db"])
def test_texts_of_plans_are_cleaned(bad: str) -> None:
    """Forms and inserted texts of any policy: what cannot be stored or sent is replaced, and the view reads back equal."""
    log = talked()
    form = Rewrite(target=log.at(1, 0), text=bad, reason=Reason.SHORTENED)
    insert = Insert(before=1, text=bad, label="summary")
    view = apply(seen(log), Plan(policy="p", rewrites=(form,), inserts=(insert,)))
    assert (form.text, insert.text) == ("a\ufffdb", "a\ufffdb")
    assert committed(log, view).exchanges == view.exchanges
