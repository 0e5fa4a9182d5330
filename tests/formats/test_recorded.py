"""Recorded sessions: what is read of them is what their manifest says, and nothing is dropped unreported."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import zstandard

from palaver.formats import FORMATS, Branch, Conversation, Match, Put, matches, open_source
from palaver.log import NOTHING, Compaction, Header, MessageEntry, Run, message_draft, next_header
from palaver.messages import Message
from palaver.store.memory import MemoryStore
from palaver.view import Reason, fold
from tests.formats.reading import Read, imported, read_file, refused
from tests.recorded import RECORDINGS, Recording, recordings

SESSIONS = ("claude_code", "codex", "pi")
LISTS = ("tau_bench", "tau2_bench", "mini_swe_agent", "openhands_llm_calls", "inspect")
TREES = ("moatless_tree", "oasst_tree")
OTHERS = {
    "copilot_cli": "copilot-cli",
    "cline_sdk": "cline",
    "openclaw_bench": "openclaw-bench",
    "aider": "aider",
    "openhands": "openhands-events",
}
LOGS = ("llm_log", "smolagents", "longmemeval", "entire_compact")
READ = {
    **{kind: kind.replace("_", "-") for kind in (*SESSIONS, *LISTS, "swe_agent", "gemini_cli")},
    **{kind: kind.removesuffix("_tree") for kind in TREES},
    **{kind: kind.removesuffix("_compact").replace("_", "-") for kind in LOGS},
    **OTHERS,
    "specstory_md": "specstory",
}
"""The kinds of recordings, and as what they are read."""

BARE = {"gemini_cli/trajectory.json.zst": "gemini"}
"""Files that are not what their kind is called: a bare list of messages."""

_LLM_LOG = "llm_log/interactions_20251201_105508.jsonl.zst"
_SMOLAGENTS = "smolagents/gpt-4o__tool-calling__simpleqa__2025-07-24.jsonl.zst"
_LONGMEMEVAL = "longmemeval/longmemeval_s.q1-2.json.zst"

DIFFERENCES: Mapping[tuple[str, str], tuple[float, str]] = {
    ("tau_bench/gpt-4o-airline.json.zst", "cost_usd"): (
        -0.5031,
        "what simulating the customer cost is known of whole trajectories only, and stands in their metadata",
    ),
    ("openhands/multi_swe_bench_example_output.jsonl.zst", "tool_results"): (-2, "two errors answer no call"),
    ("openhands/resolver_mock_output.jsonl.zst", "cost_usd"): (-1.2236, "known of whole runs only, in their metadata"),
    ("copilot_cli/agentv_d8_8be769afd1_0.jsonl.zst", "messages"): (-3, "instructions that are in force already"),
    **{
        (f"specstory_md/{page}.md.zst", column): (more, why)
        for page, calls, results in (
            ("2026-02-22_15-59-39Z-implement-the-following-plan", -1, -2),
            ("2026-06-18_14-52-09Z-read-at-docs-session", -1, -7),
        )
        for column, more, why in (
            ("tool_calls", calls, "a tool's output quotes the mark of a call"),
            (
                "tool_results",
                results,
                "that, and tools whose output the page has not: a question, or a file that was not read",
            ),
        )
    },
    (_LLM_LOG, "messages"): (1, "the answer to the last request"),
    (_LLM_LOG, "tool_calls"): (3, "the last request has 27 calls; two more are in answers that were asked for again"),
    (_LLM_LOG, "cost_usd"): (0.0526, "what the log says of each response"),
    (_SMOLAGENTS, "tool_calls"): (1, "one step has two calls, which the manifest counts as one"),
    (_LONGMEMEVAL, "conversations"): (78, "each of the 80 dated sessions of two haystacks is a conversation"),
}
"""Where a figure is not the manifest's: (file, column) to how much more it is, and why."""

KEYLESS = {"aider", "smolagents", "entire_compact"}
"""The kinds whose files give their conversations no id."""

UNREADABLE = {"openclaw_bench/10202_ecoclaw-gpt-5-4-mini.json.zst": 4}
"""How many records of a file nobody can read: lines of a session that the benchmark split."""

LOSSES = {
    *("dangling_parent", "glued_records", "duplicate_id", "orphan_result", "reasoning", "rewritten", "beside"),
    "bad_record",  # see UNREADABLE
    "rendered",  # what SpecStory writes for people
    "unknown_block",  # kimi-cli_fc_3ecf3602c3_3: `tool_reference`, which no model is shown
}
"""What the recordings have: no record of them is unreadable."""


def said(found: Read) -> list[Message]:
    """Return all messages of a file."""
    return [put.entry.message for put in found.puts if isinstance(put.entry, MessageEntry)]


def ordinal_of(put: Put) -> int:
    """Return the number of the record that an entry was made of."""
    return -1 if put.entry.source is None else put.entry.source.ordinal


def figures(found: Read) -> dict[str, float]:
    """Count as the manifest does: the format's own message records, the calls and results in them, and dollars."""
    own = {(put.dialog, ordinal_of(put)) for put in found.puts if put.counted}
    puts = [(put, put.entry.message) for put in found.puts if isinstance(put.entry, MessageEntry)]
    counted = [message for put, message in puts if (put.dialog, ordinal_of(put)) in own]
    return {
        "messages": found.counted(),
        "tool_calls": sum(len(message.tool_calls()) for message in counted),
        "tool_results": sum(len(message.tool_results()) for message in counted),
        "cost_usd": round(sum(message.usage.cost.total for message in said(found)), 4),
    }


def branch_points(found: Read) -> int:
    """Count the places from which more than one dialog goes on."""
    conversation, places = 0, set()
    for event in found.events:
        conversation += isinstance(event, Conversation)
        if isinstance(event, Branch) and event.relation == "fork":
            places.add((conversation, event.parent, event.at))
    return len(places)


@pytest.mark.parametrize(
    "recording", recordings(*SESSIONS, *LISTS, *TREES, *LOGS, *OTHERS, "gemini_cli", "specstory_md")
)
def test_figures_are_the_manifests(recording: Recording) -> None:
    """Records, calls, results and dollars equal the manifest's, or the table says why not; keys are unique."""
    found = read_file(recording.path)
    keys = [one.key for one in found.conversations]
    more, _ = DIFFERENCES.get((recording.name, "conversations"), (0, ""))
    assert len(keys) == (recording.count("conversations") or 1) + more
    assert recording.kind in KEYLESS or recording.name in BARE or (all(keys) and len(set(keys)) == len(keys))
    for column, figure in figures(found).items():
        if column != "cost_usd" or recording.facts[column]:
            more, _ = DIFFERENCES.get((recording.name, column), (0, ""))
            assert figure == pytest.approx(float(recording.facts[column] or 0) + more, abs=1e-4), column
    if recording.kind in TREES:
        assert branch_points(found) == recording.count("branch_points")
    assert set(found.codes()) <= LOSSES
    lost = [loss for loss in found.losses if loss.severity == "loss" and loss.code != "unknown_block"]
    assert len(lost) == UNREADABLE.get(recording.name, 0)


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


@pytest.mark.parametrize("recording", recordings(*SESSIONS, each=2))
def test_every_record_is_put_or_reported(recording: Recording) -> None:
    """Each record of the file is an entry, or one of a kind that a note counts."""
    found = read_file(recording.path)
    ordinals = {put.entry.source.ordinal for put in found.puts if put.entry.source}
    notes = [loss.reason for loss in found.losses if loss.code == "skipped" and loss.reason[0].isdigit()]
    counted = sum(int(reason.split()[0].replace(",", "")) for reason in notes) + found.codes()["duplicate_id"]
    headers = ("compact_boundary", "session_meta", "turn_context", "session")
    silent = [
        value
        for ordinal, value in enumerate(raw_records(recording))
        if ordinal not in ordinals and not (value.get("subtype") in headers or value.get("type") in headers)
    ]
    assert len(silent) <= counted


@pytest.mark.parametrize("recording", recordings("claude_code", "codex", each=2))
def test_compaction_leaves_out_what_it_says(recording: Recording) -> None:
    """Every message up to a compaction is kept by it or among what it leaves out, and the default view is the smaller one."""
    found = read_file(recording.path)
    said_before: dict[str, list[int]] = {}
    last: dict[str, Header] = {}
    for put in found.puts:
        sums = said_before.setdefault(put.dialog, [0])
        begins = False
        if isinstance(put.entry, MessageEntry):  # counted as a store counts
            draft = message_draft(put.entry.message, put.entry.at, b"")
            last[put.dialog] = next_header(draft, last.get(put.dialog, NOTHING))
            begins = last[put.dialog].begins
        sums.append(sums[-1] + begins)
        if isinstance(put.entry, Compaction):
            runs = [piece for piece in put.entry.pieces if isinstance(piece, Run)]
            kept = sum(said_before[run.dialog][run.stop] - said_before[run.dialog][run.start] for run in runs)
            gone = sum(omitted.messages for omitted in put.entry.omitted)
            total = sum(said_before[key][stop] for key, stop in spans(found, put.dialog, put.entry.base + 1))
            assert kept + gone == total
            view, whole = found.view(put.dialog), found.view(put.dialog, whole=True)
            assert len(view.exchanges) < len(whole.exchanges)
            assert (view.tools, view.system[:1], view.model) == (whole.tools, whole.system[:1], whole.model)


def spans(found: Read, dialog: str, stop: int) -> list[tuple[str, int]]:
    """Return what a dialog holds, inherited puts first."""
    branch = found.branch(dialog)
    inherited = [] if branch.parent is None or branch.relation != "fork" else spans(found, branch.parent, branch.at)
    return [*inherited, (dialog, stop)]


@pytest.mark.parametrize("recording", recordings(*LISTS, *TREES, *LOGS, "swe_agent", each=2))
def test_views_are_valid_and_a_second_import_adds_nothing(recording: Recording) -> None:
    """Dialogs fold, show all their calls, each with one result, and are histories that every provider takes."""
    store = MemoryStore()
    found = imported(store, recording.path)
    assert {(one.entries, one.outcome) for one in imported(store, recording.path)} == {(0, "unchanged")}
    for one in found[:: max(len(found) // 12, 1)]:
        for node in store.nodes(one.session_id):
            view = fold(store, node.dialog_id)
            assert refused(store, view) == []
            assert {omission.reason for omission in view.omissions} <= {
                Reason.SUPERSEDED,
                *([Reason.EMPTY] if recording.kind == "llm_log" else ()),
            }  # an empty answer
            shown = Counter(block.content.type for exchange in view.exchanges for block in exchange.blocks())
            assert shown["tool_call"] == shown["tool_result"]


@pytest.mark.parametrize("sample", recordings(each=1))
def test_every_file_is_what_it_is(sample: Recording) -> None:
    """One format is surest that a file is its own."""
    for recording in (one for one in RECORDINGS if one.kind == sample.kind):
        with open_source(recording.path) as source:
            names = {found.format.name for found in matches(source) if isinstance(found, Match)}
            assert names == {BARE.get(recording.name, READ[sample.kind])}
            scores = sorted(found.sniff(source) for found in FORMATS)
            assert scores[-1] > scores[-2]
