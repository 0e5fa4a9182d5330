"""Real sessions of other agents, under every policy, at budgets from 5 % to all of their size."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet

from palaver.context.presets import PRESETS
from palaver.ids import BlobId
from palaver.store.memory import MemoryStore
from palaver.testing.policy_laws import hold
from palaver.tokens import Budget
from palaver.transcripts import Importer
from palaver.view import fold
from tests.context.helper import COUNTER, manager, size
from tests.recorded import RECORDINGS, Recording, recordings

MOST = 1_500_000
"""Bytes of a recording that a run on every change can afford; larger ones are for the soak."""


def _some() -> list[ParameterSet]:
    """Give the largest affordable recording of each kind that has one, and the smallest."""
    chosen: list[ParameterSet] = []
    for kind in ("claude_code", "codex", "pi", "tau_bench"):
        found = sorted((one for one in RECORDINGS if one.kind == kind and _length(one) <= MOST), key=_length)
        chosen += [pytest.param(one, id=one.name) for one in (*found[:1], *found[1:][-1:])]
    return chosen or recordings("claude_code", each=1)


def _length(recording: Recording) -> int:
    return recording.count("raw_bytes") or 0


OWN = ("default", "offload", "fold")
PERCENT = (5, 25, 60, 100)


def _hold(
    recording: Recording, dialogs: int, names: Iterable[str] = OWN, percent: tuple[int, ...] = PERCENT
) -> tuple[int, int]:
    store = MemoryStore()
    composed = infeasible = 0
    for imported in list(Importer(store, keep_source=False).import_path(recording.path))[:dialogs]:
        for node in store.nodes(imported.session_id)[:dialogs]:
            view = fold(store, node.dialog_id)
            bodies = list(store.bodies(node.dialog_id))
            for name in names:
                for share in percent:
                    budget = Budget.of_input(max(size(view) * share // 100, 1))
                    found = hold(view, manager(name), budget, COUNTER, media=lambda digest: store.blob(BlobId(digest)))
                    composed, infeasible = composed + (found is not None), infeasible + (found is None)
            assert list(store.bodies(node.dialog_id)) == bodies
    return composed, infeasible


@pytest.mark.parametrize("recording", _some())
def test_every_policy_holds_every_law_on_recorded_sessions(recording: Recording) -> None:
    """Closed, valid for four providers, within budget or truly infeasible, every omission with a handle, the log untouched."""
    composed, _ = _hold(recording, 1)
    assert composed or recording.count("messages") == 0


@pytest.mark.parametrize("name", sorted(each.name for each in PRESETS))
def test_every_preset_holds_every_law_on_a_recorded_session(name: str) -> None:
    """The same for each preset, over a session of its own out of those that are affordable, at two budgets."""
    affordable = [each for case in _some() if (each := case.values[0]) is not None]
    if not affordable or not isinstance(affordable[0], Recording):
        pytest.skip("no recorded sessions: PALAVER_TEST_DATA is not set")
    chosen = affordable[sum(map(ord, name)) % len(affordable)]
    assert isinstance(chosen, Recording)
    composed, _ = _hold(chosen, 1, (name,), (10, 40))
    assert composed or chosen.count("messages") == 0
