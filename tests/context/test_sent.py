"""Beside what was really sent: the calls of runs whose every request is recorded, as views of the log and under every preset."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import pytest
import zstandard

from palaver.context import POLICIES, Meter
from palaver.context.presets import PRESETS
from palaver.log import Invocation, decode_entry
from palaver.messages import from_chat_dict
from palaver.store.memory import MemoryStore
from palaver.testing.policy_laws import MODELS, hold, stable
from palaver.tokens import Budget, counter
from palaver.transcripts import Importer
from palaver.view import View, fold
from palaver.wire import Call, compile, profile  # noqa: A004 - the word for it
from tests.context.every_view import Remembered
from tests.context.helper import COUNTER, manager, no_media, size
from tests.recorded import Recording, recordings

SERIES = recordings("openhands_llm_calls")
LARGE = [pytest.param(*each.values, id=each.id, marks=[*each.marks, pytest.mark.soak]) for each in SERIES[1:-1]]


class Sent(NamedTuple):
    """One recorded call.

    Attributes:
        view: The log as it stood when the call was made.
        messages: What the request held.
        tokens: What the provider says it read; 0 when it does not say.
    """

    view: View
    messages: list[dict[str, Any]]
    tokens: int


def sent(recording: Recording) -> Iterator[Sent]:
    """Give the calls of a series, each with the log as it stood and the request that was recorded."""
    with (
        recording.path.open("rb") as file,
        tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().stream_reader(file).read())) as archive,
    ):
        requests = {
            member.name.rsplit("/", 1)[-1]: json.load(found)["messages"]
            for member in archive
            if member.isfile() and (found := archive.extractfile(member)) is not None and member.name.endswith(".json")
        }
    store = MemoryStore()
    for session in Importer(store, keep_source=False).import_path(recording.path):
        for node in store.nodes(session.session_id):
            for seq, body in store.bodies(node.dialog_id):
                entry = decode_entry(body)
                if isinstance(entry, Invocation):
                    usage = entry.manifest.get("usage") or {}
                    view = fold(store, node.dialog_id, seq)
                    yield Sent(view, requests[str(entry.manifest["call"])], int(usage.get("prompt_tokens") or 0))


def words(messages: list[dict[str, Any]]) -> list[tuple[str, str, list[str | None]]]:
    """Give what messages say, and the calls they make."""
    read = [from_chat_dict(one) for one in messages]
    return [(one.role.value, one.text_content(), [call.name for call in one.tool_calls()]) for one in read]


def chat(view: View) -> list[dict[str, Any]]:
    """Give the messages of the request that a view is compiled to."""
    request = compile(view, profile("openai-chat"), Call(model="any"), no_media)
    request.check()
    return list(request.body["messages"])


@pytest.mark.parametrize("recording", SERIES)
def test_the_log_at_every_recorded_call_holds_what_was_sent(recording: Recording) -> None:
    """The request of the plain view at each of the calls has the messages of the one that was really sent, in their order and word for word."""
    calls = 0
    for call in sent(recording):
        assert words(chat(call.view)) == words(call.messages)
        calls += 1
    assert calls


@pytest.mark.parametrize("recording", SERIES)
def test_the_size_of_what_was_sent_is_what_the_provider_reported(
    recording: Recording, tell: Callable[[str], None]
) -> None:
    """T14: over a run, our count of its requests is the provider's, within the bound that is stated for the family."""
    calls = [call for call in sent(recording) if call.tokens]
    count = counter("claude-sonnet-4-5")
    ours, theirs = sum(Meter(count).view(call.view).total for call in calls), sum(call.tokens for call in calls)
    tell(f"{recording.name}: {len(calls)} calls, {theirs:,} tokens by the provider, {ours:,} by our count")
    assert abs(ours / theirs - 1) <= count.family.bound


def grown(views: Iterable[View]) -> Iterator[Iterator[View]]:
    """Give the views of each conversation: of a run that began again, what was sent does not go on from what was sent before."""
    return (one for _, one in groupby(views, key=lambda view: view.dialog_id))


@pytest.mark.parametrize("name", sorted(each.name for each in PRESETS))
@pytest.mark.parametrize("recording", [*SERIES[:1], *LARGE, *SERIES[1:][-1:]])
def test_every_preset_holds_its_laws_call_by_call(recording: Recording, name: str, tell: Callable[[str], None]) -> None:
    """In room for half of what came after the first call: every law at a call in ten, and between edits each request goes on from the one before."""
    views = [call.view for call in sent(recording)]
    budget = Budget.of_input((size(views[0]) + max(map(size, views))) // 2)
    held = [hold(view, manager(name), budget, COUNTER) for view in views[::10]]
    runs = [stable(one, manager(name), budget, COUNTER) for one in grown(views)]
    requests, edits = map(sum, zip(*runs, strict=True))
    tell(f"{recording.name}: {name}: {requests} requests in half of the room, {edits} edits")
    assert any(held)
    assert requests


def _is_what_was_sent(view: View, messages: list[dict[str, Any]]) -> None:
    """Assert that what a view shows as it came is what was sent, word for word and in its order; and that nothing else is there unannounced."""
    was, shown = words(messages), words(chat(view))
    rest = iter(was)
    assert all(one in rest for one in shown if one in was)
    changed = [
        block for x in view.exchanges for block in x.blocks() if block.reason is not None or block.origin is None
    ]
    assert sum(one not in was for one in shown) <= len(changed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize("recording", SERIES)
def test_every_policy_at_every_recorded_call(recording: Recording, name: str, tell: Callable[[str], None]) -> None:
    """In a quarter, half, three quarters and all of the room after the first call: every law at each call, prefixes in each provider's requests; what is shown as it came is what was sent."""
    calls = list(sent(recording))
    sizes, count = [size(call.view) for call in calls], Remembered(counter("gpt-4o"))
    for percent in (25, 50, 75, 100):
        budget = Budget.of_input(sizes[0] + (max(sizes) - sizes[0]) * percent // 100)
        ours = theirs = infeasible = 0
        for call, whole in zip(calls, sizes, strict=True):
            composed = hold(call.view, manager(name), budget, count)
            if composed is None:
                infeasible += 1
                continue
            ours, theirs = ours + composed.tokens_after, theirs + whole
            _is_what_was_sent(composed.view, call.messages)
        views = grown(call.view for call in calls)
        runs = [stable(one, manager(name), budget, count, targets=tuple(MODELS)) for one in views]
        requests, edits = map(sum, zip(*runs, strict=True))
        told = f"{requests} calls in {ours:,} tokens where {theirs:,} were sent, {edits} edits, {infeasible} infeasible"
        tell(f"{recording.name}: {name}: {percent} % of the room: {told}")
        assert requests + infeasible == len(calls)
