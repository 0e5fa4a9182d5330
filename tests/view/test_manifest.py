"""Manifests: with the log they are the view again, to the byte, however it was made."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from palaver.messages import Message, Role, Speaker, TextContent, ThinkingContent, canonical_json
from palaver.testing.log_strategies import plans, sayings
from palaver.testing.logs import Log, model, result, user
from palaver.view import (
    Block,
    Exchange,
    Manifest,
    Plan,
    Reason,
    Remove,
    Rewrite,
    Turn,
    View,
    apply,
    changed,
    checkpoint,
    fold,
    held,
    manifest,
    patched,
    restored,
)


def seen(log: Log, at: int | None = None) -> View:
    """Fold a log."""
    return fold(log.store, log.dialog, at)


def stored(value: Manifest) -> Manifest:
    """Give a manifest as it comes back from a store."""
    read: Manifest = json.loads(canonical_json(value))
    return read


def assert_same(view: View, other: View) -> None:
    """Assert that two views are one, also in what equality passes over."""
    assert other == view
    assert [x.stale for x in other.exchanges] == [x.stale for x in view.exchanges]


def removing(view: View) -> Plan:
    """Give a plan that leaves out one block of every turn that has several."""
    several = (
        turn.blocks[-1].origin
        for exchange in view.exchanges
        for turn in exchange.turns
        if len(turn.blocks) > 1 and isinstance(turn.blocks[-1].content, TextContent | ThinkingContent)
    )
    return Plan(
        policy="remover", removes=tuple(Remove(target=one, reason=Reason.OVER_BUDGET) for one in several if one)
    )


@given(st.data(), sayings(), st.booleans(), st.booleans())
def test_law_6_a_manifest_gives_the_view_back(
    data: st.DataObject, said: list[Message], committed: bool, twice: bool
) -> None:
    """Law 6: of any view that plans made of any log, before and after a checkpoint, the manifest and the log give all of it."""
    log = Log()
    log.put(*said)
    if committed and said:
        small = apply(seen(log), data.draw(plans(seen(log))))
        log.put(checkpoint(small, held(log.store, log.dialog, small.at), policy="x", tokens_before=2, tokens_after=1))
        log.put(user("and then"))
    folded = seen(log)
    view = apply(folded, data.draw(plans(folded)))
    if twice:
        view = apply(view, removing(view))

    assert_same(view, restored(stored(manifest(view, folded)), seen(log, view.at)))


@given(st.data(), sayings(), sayings())
def test_a_difference_is_undone_by_the_manifest_it_was_made_to(
    data: st.DataObject, said: list[Message], later: list[Message]
) -> None:
    """What is kept of a manifest gives it whole again, and another log's manifest is a difference like any other."""
    whole: list[Manifest] = []
    for some in (said, later):
        log = Log()
        log.put(*some)
        whole.append(stored(manifest(apply(seen(log), data.draw(plans(seen(log)))), seen(log))))

    assert patched(stored(changed(whole[1], whole[0])), whole[0]) == whole[1]
    assert patched(stored(changed(whole[0], whole[1])), whole[1]) == whole[0]


def test_what_no_entry_holds_is_spelt_out() -> None:
    """Words that a loop put behind the log's, such as a repair, are in the manifest itself."""
    log = Log()
    log.put(user("go"), model("well", "c"), result("c"))
    block = Block(content=TextContent(content="That was no JSON."), speaker=Speaker.HARNESS)
    told = Exchange(turns=(Turn(role=Role.USER, blocks=(block,)),), pinned=True, derived=True)
    view = replace(seen(log), exchanges=(*seen(log).exchanges, told, told))

    assert_same(view, restored(stored(manifest(view, seen(log))), seen(log)))


def test_the_next_call_costs_what_is_new() -> None:
    """The difference between two calls is as small in a long dialog as in a short one, also where a policy edits much."""
    sizes = []
    for rounds in (10, 400):
        log = Log()
        log.put(user("go"))
        for number in range(rounds):
            log.put(model(f"step {number}", f"c{number}"), result(f"c{number}", "long " * 50))
        before = whole_of(log)
        log.put(model("next", "next"), result("next", "long " * 50))
        sizes.append(len(canonical_json(changed(whole_of(log), before))))

    assert sizes[1] < sizes[0] * 1.2


def whole_of(log: Log) -> Manifest:
    """Give the manifest of a view that shows all results but the last three in another form."""
    folded = seen(log)
    results = [block.origin for x in folded.exchanges for turn in x.turns[1:] for block in turn.blocks]
    rewritten = tuple(
        Rewrite(target=origin, text=f"see {origin}", reason=Reason.OFFLOADED) for origin in results[:-3] if origin
    )
    return manifest(apply(folded, Plan(policy="offload", rewrites=rewritten)), folded)
