"""G4 and law 6 over versions: what an earlier version recorded is what this one gives back, and never what was not sent."""

from __future__ import annotations

import gzip
import json
from io import BytesIO
from typing import Any

import pytest

from palaver import Session
from palaver.errors import NotReproducible
from palaver.log import Invocation
from palaver.messages import Speaker, TextContent, thaw
from palaver.store import MemoryStore, Store
from palaver.transcripts import examine, import_bundle
from palaver.view import RULES, fold
from palaver.wire import COMPILER
from tests.session.calls.golden import ANSWERED, GOLDEN, seen

VERSIONS = range(1, RULES + 1)


def golden(rules: int) -> tuple[Session, dict[str, Any]]:
    """Give the session that was recorded by a version of the rules, and what was sent."""
    recorded = json.loads(gzip.decompress((GOLDEN / f"calls-v{rules}.json.gz").read_bytes()))
    store = MemoryStore()
    import_bundle(store, BytesIO(gzip.decompress((GOLDEN / f"calls-v{rules}.palaver.gz").read_bytes())).read)
    return Session.open(recorded["session"], store), recorded


@pytest.mark.parametrize("rules", VERSIONS)
def test_calls_by_earlier_rules_show_what_was_sent(rules: int) -> None:
    """Every block of every view, who is said to have said it, and every byte, as the version recorded them that sent them."""
    session, recorded = golden(rules)
    calls = session.root.invocations
    assert len(calls) == len(recorded["calls"])
    for call, sent in zip(calls, recorded["calls"], strict=True):
        assert json.loads(json.dumps(seen(call.view()))) == sent["view"]
        try:
            assert call.request().data.decode() == sent["request"]
        except NotReproducible:  # until compiler 3 nothing of these changed
            assert max(recorded["compiler"], 3) < COMPILER


def test_the_golden_calls_tell_rules_apart() -> None:
    """Where the newest rules give another view of the same log, the old call is not given by them."""
    session, _ = golden(1)
    dialog = session.root
    old, new = (fold(dialog.store, dialog.dialog_id, rules=rules) for rules in (1, RULES))
    assert len(new.system) == len(old.system) + 1
    assert dialog.view() == new
    assert len(dialog.invocations[-1].view().system) == len(old.system)


def test_what_the_third_rules_know_the_second_did_not() -> None:
    """Each protocol that came to be known is a tool's by the new rules and the user's by the old ones, by which calls of their time are given back."""
    session, _ = golden(3)
    dialog = session.root
    for rules, speaker in ((1, Speaker.HUMAN), (2, Speaker.HUMAN), (3, Speaker.TOOL)):
        view = fold(dialog.store, dialog.dialog_id, whole=True, rules=rules)
        blocks = [block for exchange in view.exchanges for block in exchange.blocks()]
        by = {block.content.content: block.speaker for block in blocks if isinstance(block.content, TextContent)}
        assert {by[answer] for _, answer in ANSWERED} == {speaker}
        assert by["Observation: a b c"] is (Speaker.HUMAN if rules == 1 else Speaker.TOOL)


def test_a_call_after_an_upgrade_goes_on_from_an_old_one() -> None:
    """The first call by newer rules is a difference to one by older ones; both are given back."""
    session, recorded = golden(1)
    dialog = session.root
    request = dialog.request("openai-chat", "gpt-4o")
    dialog.record_call(request)
    again = Session.open(session.session_id, dialog.store).root.invocations
    assert again[-1].request().data == request.data
    assert again[-1].view().system == request.view.system if request.view else False
    assert "Never touch production." in request.data.decode()
    assert again[-2].request().data.decode() == recorded["calls"][-1]["request"]


def test_old_calls_are_no_fault() -> None:
    """A store of an earlier version is healthy; its calls are no finding."""
    session, _ = golden(1)
    found = examine(session.store, session.session_id)
    assert not [each for each in found.findings if each.severity == "fault"]


def test_a_call_by_rules_that_are_not_known_is_refused(store: Store) -> None:
    """What a later version recorded is not shown by rules that are not its own."""
    session = Session.create(store, owner="a")
    session.root.put_text("go")
    session.root.record_call(session.root.request("openai-chat", "gpt-4o"))
    (call,) = session.root.invocations
    data = thaw(call.entry.manifest)
    data["saw"]["rules"] = RULES + 1
    session.root.annotate(Invocation(model="gpt-4o", manifest=data))
    with pytest.raises(NotReproducible, match="later version"):
        session.root.invocations[1].view()
