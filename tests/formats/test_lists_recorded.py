"""Recorded conversations that are lists of messages: their figures, their views, and no file taken for what it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from palaver.errors import UnsupportedTranscript
from palaver.formats import FORMATS, Match, matches, open_source
from palaver.log import MessageEntry, Node, Span, decode_entry
from palaver.store.memory import MemoryStore
from palaver.view import Reason, fold
from tests.formats.chats import imported, refused
from tests.formats.transcripts import Read, read_file
from tests.recorded import Recording, recordings

NAMES = {
    "claude_code": "claude-code",
    "codex": "codex",
    "pi": "pi",
    "tau_bench": "tau-bench",
    "tau2_bench": "tau2-bench",
    "mini_swe_agent": "mini-swe-agent",
    "openhands_llm_calls": "openhands-llm-calls",
}
"""The kinds of recordings that are read, and as what; every other kind is refused."""

LISTS = ("tau_bench", "tau2_bench", "mini_swe_agent", "openhands_llm_calls")

DIFFERENCES: Mapping[tuple[str, str], tuple[float, str]] = {
    ("tau_bench/gpt-4o-airline.json.zst", "cost_usd"): (
        -0.5031,
        "what simulating the customer cost is known of whole trajectories only, and stands in their metadata",
    ),
    ("openhands_llm_calls/llm_completions_astropy__astropy-13977.tar.zst", "beside"): (
        35,
        "the run was begun anew after 27 calls; the manifest counts the longest one, the second one is a branch",
    ),
}
"""Where a figure is not the manifest's: (file, column) to how much more it is, and why."""

EXPECTED_LOSSES = {"stub", "skipped", "rewritten", "beside"}


def figures(found: Read) -> dict[str, float]:
    """Count as the manifest does: records, the calls and results in them, and dollars, those of branches included."""
    said = [(put.counted, put.entry.message) for put in found.puts if isinstance(put.entry, MessageEntry)]
    return {
        "conversations": len(found.conversations),
        "messages": found.counted(),
        "tool_calls": sum(len(message.tool_calls()) for counted, message in said if counted),
        "tool_results": sum(len(message.tool_results()) for counted, message in said if counted),
        "cost_usd": round(sum(message.usage.cost.total for _, message in said), 4),
        "beside": sum(1 for counted, _ in said if not counted),
    }


@pytest.mark.parametrize("recording", recordings(*LISTS))
def test_figures_are_the_manifests(recording: Recording) -> None:
    """Conversations, records, calls, results and dollars equal the manifest's, or the table says why not; keys are unique."""
    found = read_file(recording.path)
    keys = [one.key for one in found.conversations]
    assert all(keys)
    assert len(set(keys)) == len(keys)
    for column, figure in figures(found).items():
        more, _ = DIFFERENCES.get((recording.name, column), (0, ""))
        assert figure == pytest.approx(float(recording.facts.get(column) or 0) + more), column
    assert {loss.code for loss in found.losses} <= EXPECTED_LOSSES
    assert not [loss for loss in found.losses if loss.severity == "loss"]


@pytest.mark.parametrize("recording", recordings(*LISTS, each=1))
def test_reading_again_gives_the_same(recording: Recording) -> None:
    """Every event of a second reading equals that of the first, ids and times included."""
    assert read_file(recording.path).events == read_file(recording.path).events


def imports_into_valid_views(recording: Recording, most: int) -> None:
    """Import a file twice, and hold what at most so many of its sessions show to what was recorded and to what providers take."""
    store = MemoryStore()
    found = imported(store, recording.path)
    assert {(one.entries, one.outcome) for one in imported(store, recording.path)} == {(0, "unchanged")}
    assert sum(one.records for one in found) == recording.count("messages")
    for one in found[:: max(len(found) // most, 1)]:
        for node in store.nodes(one.session_id):
            view = fold(store, node.dialog_id)
            assert refused(store, view) == []
            assert {omission.reason for omission in view.omissions} <= {Reason.SUPERSEDED}
            blocks = [block for exchange in view.exchanges for turn in exchange.turns for block in turn.blocks]
            shown = Counter(block.content.type for block in blocks)
            assert shown["tool_call"] == shown["tool_result"] == calls_of(store, node)


def calls_of(store: MemoryStore, node: Node) -> int:
    """Count the calls in a dialog's entries, inherited ones included."""
    spans = (*node.ranges, Span(node.dialog_id, 0, store.last(node.dialog_id).seq + 1))
    entries = [decode_entry(store.body(span.dialog, seq)) for span in spans for seq in range(span.start, span.stop)]
    return sum(len(entry.message.tool_calls()) for entry in entries if isinstance(entry, MessageEntry))


@pytest.mark.parametrize("recording", recordings(*LISTS, each=2))
def test_a_second_import_adds_nothing_and_views_are_valid(recording: Recording) -> None:
    """Every dialog folds, shows all its calls, each with one result, and is a history that every provider takes."""
    imports_into_valid_views(recording, 12)


@pytest.mark.soak
@pytest.mark.parametrize("recording", recordings(*LISTS))
def test_all_imports_add_nothing_and_views_are_valid(recording: Recording) -> None:
    """The same of every session of every file."""
    imports_into_valid_views(recording, 1 << 20)


@pytest.mark.parametrize("recording", recordings())
def test_every_file_is_read_as_what_it_is_or_refused(recording: Recording) -> None:
    """One format says that it is its own, or none does and the error says what the file looks like and what is known."""
    with open_source(recording.path) as source:
        if recording.kind in NAMES:
            names = {found.format.name for found in matches(source) if isinstance(found, Match)}
            assert names == {NAMES[recording.kind]}
        else:
            with pytest.raises(UnsupportedTranscript) as refusal:
                list(matches(source))
            assert refusal.value.why
            assert refusal.value.tried or "zip" in refusal.value.why


@pytest.mark.parametrize("recording", recordings(each=2))
def test_one_format_is_surest(recording: Recording) -> None:
    """No two formats are equally sure of a file."""
    with open_source(recording.path) as source:
        try:
            scores = sorted(found.sniff(source) for found in FORMATS)
        except UnsupportedTranscript:
            return
    assert scores[-1] > scores[-2] if recording.kind in NAMES else scores[-1] == 0
