"""Manifests: with the log they are the view again, to the byte, however it was made."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import StoreDamaged
from palaver.log import Entry, Instructions, ModelChange, Pin, Place, Quarantine, Section, Toolset, ToolSpec
from palaver.messages import Message, Role, Speaker, TextContent, canonical_json
from palaver.testing.logs import Log, model, result, system, user
from palaver.testing.strategies import sayings
from palaver.view import (
    Block,
    Drop,
    Exchange,
    Manifest,
    Plan,
    Reason,
    Rewrite,
    Turn,
    apply,
    changed,
    manifest,
    patched,
    restored,
)
from tests.view.growing import commit, seen
from tests.view.plans import plans


def stored(value: Manifest) -> Manifest:
    """Return a manifest as it comes back from a store."""
    read: Manifest = json.loads(canonical_json(value))
    return read


@given(st.data(), sayings(), sayings())
def test_difference_is_undone_by_the_earlier_manifest(
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


def test_exchange_that_no_entry_holds_is_written_out() -> None:
    """Words that a loop put behind the log's, such as a repair, are in the manifest itself."""
    log = Log()
    log.put(user("go"), model("well", "c"), result("c"))
    block = Block(content=TextContent(content="That was no JSON."), speaker=Speaker.HARNESS)
    told = Exchange.of((Turn(role=Role.USER, blocks=(block,)),), pinned=True, derived="notice")
    view = replace(seen(log), exchanges=(*seen(log).exchanges, told, told))

    assert restored(stored(manifest(view, seen(log))), seen(log)) == view


def test_difference_grows_only_with_what_is_new() -> None:
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
    """Return the manifest of a view that shows all results but the last three in another form."""
    folded = seen(log)
    results = [block.origin for x in folded.exchanges for turn in x.turns[1:] for block in turn.blocks]
    rewritten = tuple(
        Rewrite(target=origin, text=f"see {origin}", reason=Reason.OFFLOADED) for origin in results[:-3] if origin
    )
    return manifest(apply(folded, Plan(policy="offload", rewrites=rewritten)), folded)


def test_changed_instructions_are_restored() -> None:
    """A plain context manager may leave out, reorder or rewrite instructions; the manifest says which the model saw."""
    log = Log()
    log.put(system("one"), system("two"), system("three"), user("hi"))
    folded = seen(log)
    rewritten = replace(folded.system[0], content=TextContent(content="ONE"), origin=None)
    view = replace(folded, system=(folded.system[2], rewritten, folded.system[1]))
    assert restored(stored(manifest(view, folded)), seen(log)) == view


def test_foreign_manifest_is_damage() -> None:
    """A manifest that does not fit the log, or a difference that is none, is a typed error, and costs nothing."""
    log = Log()
    log.put(user("hi"), model("yes"))
    good = stored(manifest(seen(log), seen(log)))
    cases: list[Manifest] = [
        {"items": [[0, 10**12]]},
        {"items": [[2, 1]]},
        {"items": [[-1, 1]]},
        {"items": [["a", "b"]]},
        {"items": [{"turns": [], "runs": []}]},
        {"items": [7]},
        {"system": [[0, 1]]},
        {"edits": [{"target": {"dialog": "x"}, "text": "x"}]},
        {"edits": [{"target": {"dialog": "x", "seq": 0, "block": 0}, "text": None, "reason": "nonsense"}]},
        {"omitted": [{}]},
        {"system": [{"content": 3}]},
        {"policies": 3},
    ]
    for broken in cases:
        with pytest.raises(StoreDamaged, match="manifest"):
            restored(good | broken, seen(log))
    with pytest.raises(StoreDamaged, match="manifest"):
        restored({}, seen(log))
    for difference in ({}, {"at": 0, "items": [3]}, {"at": 0, "items": [{"kept": ["a", 1]}]}):
        with pytest.raises(StoreDamaged, match="manifest"):
            patched(difference, {})


@pytest.mark.parametrize(
    ("entry", "edited"),
    [
        (lambda log: Quarantine(target=Place(dialog=log.dialog, seq=2, block=0), reason="refused"), 3),
        (lambda _: Instructions(sections=(Section(name="role", text="newer"),)), 0),
        (lambda _: Toolset(tools=(ToolSpec(name="newer"),)), 0),
        (lambda log: commit(log, apply(seen(log), Plan(policy="cut", drops=(Drop(index=0),)))), 2),
        (lambda log: Pin(target=Place(dialog=log.dialog, seq=2)), 0),
        (lambda _: ModelChange(model="other"), 0),
    ],
    ids=["quarantine", "instructions", "toolset", "compaction", "pin", "model"],
)
def test_view_knows_what_was_said_before_an_edit(entry: Callable[[Log], Entry], edited: int) -> None:
    """What a provider signed before an edit was signed for other words; the count comes back from the manifest."""
    log = Log()
    log.put(Instructions(sections=(Section(name="role", text="first"),)), Toolset(tools=(ToolSpec(name="first"),)))
    log.put(user("go"), model("well"), user("on"))
    assert seen(log).edited == 0
    log.put(entry(log), user("more"))
    folded = seen(log)
    assert folded.edited == edited
    assert restored(stored(manifest(folded, folded)), seen(log)).edited == edited
    planned = apply(folded, Plan(policy="cut", drops=(Drop(index=1),)))
    assert planned.edited == len(planned.exchanges)
