"""Recorded sessions of other agents, compiled for every provider."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from palaver import wire
from palaver.providers import profile
from palaver.store.memory import MemoryStore
from palaver.store.records import payloads_of
from palaver.transcripts.importing import Importer
from palaver.view import View, fold
from palaver.wire import Call, Request, broken_at
from tests.recorded import Recording, recordings
from tests.wire.scenes import MODELS

KINDS = ("claude_code", "codex", "pi")
STEPS = 6
SAMPLE = recordings(*KINDS, each=2)
NAMES = {each.id for each in SAMPLE}
REST = [
    pytest.param(*each.values, id=each.id, marks=[*each.marks, pytest.mark.soak])
    for each in recordings(*KINDS)
    if each.id not in NAMES
]
ALL = [*SAMPLE, *REST]
"""A sample at every change, and the rest in the soak."""


def views(store: MemoryStore, recording: Recording) -> Iterator[View]:
    """Import a file and give the views of all its dialogs: as that agent saw them, and the whole."""
    for imported in Importer(store, keep_source=False).import_path(recording.path):
        for node in store.nodes(imported.session_id):
            yield from (fold(store, node.dialog_id, whole=whole) for whole in (False, True))


def compiled(view: View, name: str, model: str, store: MemoryStore) -> Request:
    """Compile for a model."""
    return wire.compile(
        view, profile(name, model), Call(model=model), payloads_of(store, store.node(view.dialog_id).session_id)
    )


@pytest.mark.parametrize("recording", ALL)
def test_law_7_recorded_session_compiles_and_grows(recording: Recording) -> None:
    """D23: every view of every dialog is a valid request, for models of today and for those that were recorded.

    As it was recorded, exchange by exchange in six steps, every request begins like the one before it.
    """
    store = MemoryStore()
    for view in views(store, recording):
        steps = sorted({round(step * len(view.exchanges) / STEPS) for step in range(STEPS + 1)})
        for name, model in MODELS.items():
            grown = [compiled(replace(view, exchanges=view.exchanges[:size]), name, model, store) for size in steps]
            grown[-1].check(as_history=True)
            for before, after in pairwise(grown[1:]):
                broken = broken_at(before, after)
                assert broken is None or (broken == 0 and not view.tools)
        said = {turn.model for exchange in view.exchanges for turn in exchange.turns if turn.model.startswith("claude")}
        for model in said:
            compiled(view, "anthropic", model, store).check(as_history=True)
