"""Recorded sessions: what is read of them is what their manifest says, and nothing is dropped unreported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import zstandard

from palaver.formats import detect, open_source
from palaver.log import Compaction, MessageEntry, Run
from palaver.view import Reason
from tests.formats.transcripts import Landed, Read, read_bytes, read_file
from tests.recorded import Recording, recordings

KINDS = ("claude_code", "codex", "pi")
NAMES = {"claude_code": "claude-code", "codex": "codex", "pi": "pi"}

DIFFERENCES: Mapping[tuple[str, str], tuple[int, str]] = {}
"""Where a figure is not the manifest's: (file, column) to how much more it is, and why. No figure differs."""

EXPECTED_LOSSES = {"stub", "skipped", "dangling_parent", "glued_records", "duplicate_id", "orphan_result", "reasoning"}
"""What the recordings have: no record of them is unreadable."""


def figures(found: Read) -> dict[str, int]:
    """Count as the manifest does: the format's own message records, and the calls and results in them."""
    own = {(put.dialog, put.record) for put in found.puts if put.counted}
    said = [
        put.entry.message
        for put in found.puts
        if (put.dialog, put.record) in own and isinstance(put.entry, MessageEntry)
    ]
    return {
        "messages": found.counted(),
        "tool_calls": sum(len(message.tool_calls()) for message in said),
        "tool_results": sum(len(message.tool_results()) for message in said),
    }


def raw_records(recording: Recording) -> list[dict[str, Any]]:
    """Read a file with a parser of a few lines, independent of the reader's."""
    with recording.path.open("rb") as file:
        data = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(file).read().decode()
    found, decoder = [], json.JSONDecoder()
    for line in data.split("\n"):
        at = 0
        while line[at:].strip():
            value, at = decoder.raw_decode(line, at)
            found.append(value)
    return found


@pytest.mark.parametrize("recording", recordings(*KINDS))
def test_figures_are_the_manifests(recording: Recording) -> None:
    """Records, calls and results of every file equal the manifest's; the format is found from the content."""
    with open_source(recording.path) as source:
        assert detect(source).name == NAMES[recording.kind]
    found = read_file(recording.path)
    for column, figure in figures(found).items():
        more, _ = DIFFERENCES.get((recording.name, column), (0, ""))
        assert figure == (recording.count(column) or 0) + more, column
    assert set(found.codes()) | {"stub", "skipped"} <= EXPECTED_LOSSES
    assert not [loss for loss in found.losses if loss.severity == "loss"]


@pytest.mark.parametrize("recording", recordings(*KINDS, each=3))
def test_every_record_is_put_or_reported(recording: Recording) -> None:
    """Each record of the file is an entry, or one of a kind that a note counts."""
    found = read_file(recording.path)
    ordinals = {put.entry.source.ordinal for put in found.puts if put.entry.source}
    counted = sum(
        int(loss.reason.split()[0]) for loss in found.losses if loss.code == "skipped" and loss.reason[0].isdigit()
    )
    doubled = found.codes()["duplicate_id"]
    boundaries = ("compact_boundary", "session_meta", "turn_context", "session")
    silent = [
        value
        for ordinal, value in enumerate(raw_records(recording))
        if ordinal not in ordinals and not (value.get("subtype") in boundaries or value.get("type") in boundaries)
    ]
    assert len(silent) <= counted + doubled


@pytest.mark.parametrize("recording", recordings(*KINDS, each=2))
def test_reading_twice_gives_the_same(recording: Recording) -> None:
    """A reader keeps nothing: identities, digests, places and entries are the same at every reading."""
    assert read_file(recording.path).events == read_file(recording.path).events


@pytest.mark.parametrize("recording", recordings(*KINDS, each=3))
def test_a_session_cut_short_is_a_beginning_of_the_whole(tmp_path: Path, recording: Recording) -> None:
    """What was read of half a file is the beginning of what is read of all of it, dialog by dialog."""
    with open_source(recording.path) as source:
        data = source.members[0].read(1 << 30)
    half = data[: data.index(b"\n", len(data) // 2) + 1]
    whole, part = _by_dialog(read_file(recording.path)), _by_dialog(read_bytes(tmp_path, half))
    for dialog, records in part.items():
        assert whole[dialog][: len(records)] == records


def _by_dialog(found: Read) -> dict[str, list[tuple[str, bytes]]]:
    records: dict[str, list[tuple[str, bytes]]] = {}
    for put in found.puts:
        if not put.derived:
            records.setdefault(put.dialog, []).append((put.record, put.digest))
    return records


@pytest.mark.parametrize("recording", recordings("claude_code"))
def test_a_response_is_counted_once(recording: Recording) -> None:
    """Usage over all messages is that of the last line of each response, whatever the others repeat."""
    last: dict[str, int] = {}
    for value in raw_records(recording):
        inner = value.get("data", {}).get("message") if value["type"] == "progress" else value
        if isinstance(inner, dict) and inner.get("type") == "assistant":
            last[inner["message"]["id"]] = inner["message"]["usage"]["output_tokens"]
    found = read_file(recording.path)
    said = [put.entry.message for put in found.puts if isinstance(put.entry, MessageEntry)]
    assert sum(message.usage.output_tokens for message in said) == sum(last.values())


@pytest.mark.parametrize("recording", recordings("codex"))
def test_usage_of_all_responses_is_the_sessions(recording: Recording) -> None:
    """The usage kept with responses adds up to the total that Codex counted."""
    total = 0
    for value in raw_records(recording):
        info = value["payload"].get("info") if value["payload"].get("type") == "token_count" else None
        total = info["total_token_usage"]["output_tokens"] if info else total
    found = read_file(recording.path)
    said = [put.entry.message for put in found.puts if isinstance(put.entry, MessageEntry)]
    assert sum(message.usage.output_tokens for message in said) == total


@pytest.mark.parametrize("recording", recordings("pi"))
def test_dollars_are_the_manifests(recording: Recording) -> None:
    """The recorded cost of all responses is the manifest's."""
    found = read_file(recording.path)
    said = [put.entry.message for put in found.puts if isinstance(put.entry, MessageEntry)]
    assert sum(message.usage.cost.total for message in said) == pytest.approx(
        float(recording.facts["cost_usd"]), abs=1e-4
    )


@pytest.mark.parametrize("recording", recordings(*KINDS, each=4))
def test_views_pair_calls_and_results_as_the_manifest_does(recording: Recording) -> None:
    """Folded dialog by dialog, as many calls lack a result and as many results a call as the manifest counts."""
    found = read_file(recording.path)
    landed = Landed(found)
    missing = unpaired = 0
    for branch in found.branches:
        for exchange in landed.view(branch.dialog, whole=True).exchanges:
            if not exchange.runs or exchange.runs[0].dialog == landed.id(branch.dialog):
                missing += sum(block.derived in {"pending", "interrupted"} for block in exchange.blocks())
                unpaired += sum(block.reason is Reason.UNPAIRED for block in exchange.blocks())
    assert missing == recording.count("unpaired_calls")
    assert unpaired == recording.count("unpaired_results")


def held(landed: Landed, dialog: str, start: int, stop: int) -> int:
    """Count the messages of a run of own entries, by the headers that the store made."""
    numbers = [0, *(header.number for header in landed.store.headers(landed.id(dialog)))]
    return numbers[stop] - numbers[start]


@pytest.mark.parametrize("recording", recordings("claude_code", "codex", each=4))
def test_a_recorded_compaction_leaves_out_what_it_says(recording: Recording) -> None:
    """Every message up to a compaction is in a piece of it or among what it leaves out, and the default view is the smaller one."""
    found = read_file(recording.path)
    landed = Landed(found)
    for put in found.puts:
        if isinstance(put.entry, Compaction):
            spans = _spans(found, put.dialog, put.entry.base + 1)
            kept = sum(
                held(landed, piece.dialog, piece.start, piece.stop)
                for piece in put.entry.pieces
                if isinstance(piece, Run)
            )
            gone = sum(omitted.messages for omitted in put.entry.omitted)
            assert kept + gone == sum(held(landed, key, 0, stop) for key, stop in spans)
            view, whole = landed.view(put.dialog), landed.view(put.dialog, whole=True)
            assert len(view.exchanges) < len(whole.exchanges)
            assert (view.tools, view.system[:1], view.model) == (whole.tools, whole.system[:1], whole.model)


def _spans(found: Read, dialog: str, stop: int) -> list[tuple[str, int]]:
    branch = found.branch(dialog)
    inherited = [] if branch.parent is None or branch.relation != "fork" else _spans(found, branch.parent, branch.at)
    return [*inherited, (dialog, stop)]
