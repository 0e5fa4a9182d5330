"""Recorded sessions: imported they are valid for every provider, the doctor never fails on them, and no way out of the store loses anything."""

from __future__ import annotations

import json
from io import BytesIO

import pytest

from palaver.providers import profile
from palaver.store.memory import MemoryStore
from palaver.transcripts import Imported, Importer, examine, export, export_bundle, import_bundle, repair
from palaver.wire import validate
from tests.recorded import Recording, recordings

KINDS = ("claude_code", "codex", "mini_swe_agent", "openhands_llm_calls", "pi", "tau2_bench", "tau_bench")


def imported(recording: Recording) -> tuple[MemoryStore, list[Imported]]:
    """Import a recording into a store of its own."""
    store = MemoryStore()
    return store, list(Importer(store).import_path(recording.path))


def check(recording: Recording, every: int = 1) -> None:
    """Check all that is promised of one recording; of a file of many conversations, of each `every`-th."""
    store, sessions = imported(recording)
    assert sum(one.records for one in sessions) == recording.count("messages")
    for one in sessions[::every]:
        found = examine(store, one.session_id)
        assert set(found.valid.values()) == {True}
        assert found.unreachable == 0
        check_bundle(store, one)
        check_exports(store, one)
        assert one.main is not None
        branch = examine(store, one.session_id, repair(store, one.main).dialog_id)
        faults = {finding.code for finding in branch.findings if finding.severity == "fault"}
        assert faults <= {"over_window"}, "a branch holds everything, which may be more than one request can"


def check_bundle(store: MemoryStore, one: Imported) -> None:
    """Export, import, export: the same bytes."""
    data = b"".join(export_bundle(store, one.session_id))
    other = MemoryStore()
    taken = import_bundle(other, BytesIO(data).read)
    assert b"".join(export_bundle(other, taken.session_id)) == data
    assert import_bundle(other, BytesIO(data).read).entries == 0


def check_exports(store: MemoryStore, one: Imported) -> None:
    """The forms of providers hold conversations that the providers take."""
    for name, provider in (("openai-chat", "openai-chat"), ("anthropic", "anthropic")):
        for whole in (True, False):
            body = json.loads(b"".join(export(store, one.session_id, name, whole=whole).pieces))
            request = {"model": "m", **body} | ({"max_tokens": 1} if name == "anthropic" else {})
            assert validate(request, profile(provider), as_history=True) == ()
    pages = b"".join(export(store, one.session_id, "markdown").pieces).decode()
    assert pages.count("\n## ") >= one.messages // 3


@pytest.mark.parametrize("recording", recordings(*KINDS, each=1))
def test_a_sample_of_the_recorded_sessions(recording: Recording) -> None:
    """Laws 1, 2: valid for every provider, nothing unreachable, bundles identical, exports valid, a repaired branch without a fault."""
    check(recording, every=max(1, (recording.count("conversations") or 1) // 5))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("recording", recordings(*KINDS))
def test_every_recorded_session(recording: Recording) -> None:
    """Laws 1, 2: the same for all."""
    check(recording)
