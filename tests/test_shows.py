"""The guarantee on recorded sessions: every view is valid for every provider, and every handle resolves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from itertools import islice

import pytest

from palaver.context import Composed, Meter, Policy, compose, policy
from palaver.errors import InfeasibleBudget
from palaver.ids import BlobId
from palaver.log import Handle, decode_entry
from palaver.store.memory import MemoryStore
from palaver.tokens import Budget, counter
from palaver.transcripts import Imported, Importer, export_bundle, import_bundle
from palaver.view import View, fold
from palaver.wire import Call, compile, profile  # noqa: A004 - the word for it
from tests.recorded import Recording, recordings

KINDS = ("claude_code", "codex", "pi", "tau_bench", "tau2_bench", "mini_swe_agent", "openhands_llm_calls")
MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}
SOME = ("default", "offload", "palaver")
"""Policies for a run on every change; tests/context/test_policy_laws.py has all of them."""
FEW = (0.05, 0.3)

ALL = recordings(*KINDS)
SAMPLE = recordings(*KINDS, each=1)
REST = [pytest.param(*each.values, id=each.id, marks=[*each.marks, pytest.mark.soak]) for each in ALL]
SAMPLED = {each.id for each in SAMPLE}
EACH = [each for each in ALL if each.id in SAMPLED] + [each for each in REST if each.id not in SAMPLED]


VALID = "requests valid"
INFEASIBLE = "budgets infeasible with a true breakdown"


@pytest.fixture
def counts(count: Callable[[str, Mapping[str, int]], None]) -> Iterator[Counter[str]]:
    """Count what was found and print it at the end."""
    found = Counter({VALID: 0, INFEASIBLE: 0})
    yield found
    count("views of recorded sessions", found)


def brought_in(recording: Recording, most: int | None) -> tuple[MemoryStore, list[Imported]]:
    """Import a recording and return its first sessions."""
    store = MemoryStore()
    return store, list(islice(Importer(store, keep_source=False).import_path(recording.path), most))


def check(store: MemoryStore, one: Imported, counts: Counter[str]) -> None:
    """Check every view of every dialog of a session."""
    for node in store.nodes(one.session_id):
        view = fold(store, node.dialog_id)
        if not view.exchanges:
            continue
        for target, model in MODELS.items():
            meter = Meter(counter(model))
            for name in SOME:
                _check(store, view, name, target, meter, counts)


def _check(store: MemoryStore, view: View, name: str, target: str, meter: Meter, counts: Counter[str]) -> None:
    """Check one policy for one provider at several budgets."""
    model = MODELS[target]
    whole = meter.view(view).total
    manager = policy(name, model)
    assert isinstance(manager, Policy)
    for share in FEW:
        limit = max(int(whole * share), 1)
        done = _composed(view, manager, limit, meter)
        if isinstance(done, InfeasibleBudget):
            assert sum(done.breakdown.values()) == done.needed > limit
            counts[INFEASIBLE] += 1
            continue
        assert done.after.total <= limit
        _require(view, done)
        _recallable(store, done.view)
        call = Call(model=model, then=None if share == FEW[0] else "Go on.")
        compile(done.view, profile(target, model), call, lambda one: store.blob(BlobId(one))).check()
        counts[VALID] += 1


def _composed(view: View, manager: Policy, limit: int, meter: Meter) -> Composed | InfeasibleBudget:
    try:
        return compose(view, manager, Budget.of_input(limit), meter)
    except InfeasibleBudget as error:
        return error


def _require(view: View, done: Composed) -> None:
    """Assert that the view has the newest user message, pins and open calls."""
    shown = {exchange.first for exchange in done.view.exchanges}
    assert {view.exchanges[index].first for index in view.protected()} <= shown


def _recallable(store: MemoryStore, view: View) -> None:
    """Assert that every handle of what is left out, or shown in another form, resolves."""
    handles = [handle for omission in view.omissions for handle in omission.handles()]
    handles += [
        block.origin for x in view.exchanges for block in x.blocks() if block.reason is not None and block.origin
    ]
    for handle in handles:
        again = Handle.parse(str(handle))
        entry = decode_entry(store.body(store.resolve(again.dialog), again.seq))
        if again.block is not None and (message := getattr(entry, "message", None)) is not None:
            assert 0 <= again.block < len(message.contents)


@pytest.mark.parametrize("recording", SAMPLE)
def test_every_view_is_valid_and_recallable(recording: Recording, counts: Counter[str]) -> None:
    """G1, G3: several policies and budgets, all providers: the request is valid, and every handle resolves."""
    store, sessions = brought_in(recording, 1)
    for one in sessions:
        check(store, one, counts)


@pytest.mark.parametrize("recording", EACH)
def test_a_second_import_adds_nothing(recording: Recording) -> None:
    """Importing a recording again writes no entry and creates no session."""
    store = MemoryStore()
    first = list(Importer(store).import_path(recording.path))
    again = list(Importer(store).import_path(recording.path))

    assert sum(one.entries for one in again) == 0
    assert {one.outcome for one in again} == {"unchanged"}
    assert {one.session_id for one in again} == {one.session_id for one in first}


@pytest.mark.parametrize("recording", EACH)
def test_export_import_export_gives_the_same_bytes(recording: Recording) -> None:
    """A bundle that another store imported is exported byte for byte."""
    store, sessions = brought_in(recording, 5)
    for one in sessions:
        data = b"".join(export_bundle(store, one.session_id))
        other = MemoryStore()
        import_bundle(other, BytesIO(data).read)
        assert b"".join(export_bundle(other, one.session_id)) == data
