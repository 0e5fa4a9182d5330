"""The laws of context over recorded sessions: every policy, at several budgets, and as a session grows. `./run soak` takes them all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from palaver.context import DEFAULT_POLICY, POLICIES, Policy, WorkingDialog, policy
from palaver.context.meter import Meter
from palaver.context.recall import LIST
from palaver.ids import DialogId
from palaver.log import Header
from palaver.messages import Content, Message, Role, TextContent, ToolResultContent
from palaver.session import Session
from palaver.store.memory import MemoryStore
from palaver.store.records import payloads_of
from palaver.testing.logs import Log
from palaver.testing.policy_checks import check_commits, check_policy, check_same_plan, check_stable, other_letters
from palaver.tokens import Budget, counter
from palaver.transcripts import Importer
from palaver.view import View, fold, fold_messages
from tests.recorded import Recording, recordings

KINDS = ("claude_code", "codex", "pi", "tau_bench", "tau2_bench", "mini_swe_agent", "openhands_llm_calls")
COUNT = counter("gpt-4o")
_CALLS = 15
"""Calls of a session that are checked one after the other: the newest."""


def every(sample: int) -> list[ParameterSet]:
    """Return the recordings: a sample at every change, all of them in the soak."""
    some = {param.id for param in recordings(*KINDS, each=sample)}
    return [
        param if param.id in some else pytest.param(*param.values, id=param.id, marks=[*param.marks, pytest.mark.soak])
        for param in recordings(*KINDS)
    ]


def policies() -> list[ParameterSet | str]:
    """Return the names of the policies: the default at every change, the others in the soak."""
    rest = [pytest.param(name, marks=pytest.mark.soak) for name in POLICIES if name != DEFAULT_POLICY]
    return [DEFAULT_POLICY, *rest]


@lru_cache(maxsize=1)
def views(path: Path) -> list[tuple[MemoryStore, DialogId, View]]:
    """Return the views of at most two sessions of a recording; the policies take them one after the other, and change nothing."""
    store = MemoryStore()
    sessions = islice(Importer(store, keep_source=False).import_path(path), 2)
    roots = [Session.open(store, imported.session_id).root for imported in sessions]
    return [(store, root.dialog_id, root.view()) for root in roots]


def calls(headers: Sequence[Header]) -> list[int]:
    """Return the numbers of the entries after which a model was called: a response of its own begins with the next one."""
    return [
        one.seq
        for one, after in pairwise(headers)
        if after.role == Role.ASSISTANT != one.role and (not after.response or after.response != one.response)
    ]


@pytest.mark.parametrize("name", policies())
@pytest.mark.parametrize("recording", every(1))
def test_laws_over_recorded_sessions(recording: Recording, name: str) -> None:
    """Laws 1, 8, 9, 10: valid for every profile, within the budget or truly infeasible, nothing missing without a handle."""
    for store, _, view in views(recording.path):
        size = Meter(COUNT).view(view).total
        for percent in (15, 60):
            made = policy(name)
            assert made is not None
            media = payloads_of(store, store.node(view.dialog_id).session_id)
            check_policy(view, made, Budget.of_input(max(size * percent // 100, 1)), COUNT, media=media)


@pytest.mark.parametrize("name", policies())
@pytest.mark.parametrize("recording", every(1))
def test_law_7_over_recorded_sessions(recording: Recording, name: str) -> None:
    """Law 7: wherever the model was called, the view goes on from the one before, or a step says why."""
    made = policy(name)
    assert made is not None
    for store, dialog, view in views(recording.path):
        size = Meter(COUNT).view(view).total
        headers = list(store.headers(dialog))
        grown = (fold(store, dialog, at) for at in calls(headers)[-_CALLS:])
        answered = (each for each in grown if each.exchanges and not any(one.open for one in each.exchanges))
        check_stable(answered, made, Budget.of_input(max(size // 3, 2_000)), COUNT)


@pytest.mark.parametrize("name", policies())
@pytest.mark.parametrize("recording", every(1))
def test_laws_7_and_8_with_committed_plans(recording: Recording, name: str) -> None:
    """Laws 7, 8: a dialog whose plans are committed as it grows, within a sixth of its size: the second and the third compaction leave what the first one left."""
    made = policy(name)
    assert isinstance(made, Policy)
    for _, _, view in views(recording.path):
        budget = Budget.of_input(max(Meter(COUNT).view(view).total // 6, 2_000))
        log, messages = Log(), WorkingDialog(view).messages
        check_commits(log, (log.put(message) for message in messages), made, budget, COUNT)


@pytest.mark.parametrize("name", policies())
@pytest.mark.parametrize("recording", every(1))
def test_law_13_over_recorded_sessions(recording: Recording, name: str) -> None:
    """Law 13: with other letters in every text and output, the same exchanges leave and the same blocks change."""
    for _, _, view in views(recording.path):
        messages = WorkingDialog(view).messages
        plain, other = fold_messages(messages, LIST), fold_messages([*map(respelled, messages)], LIST)
        for percent in (20, 60):
            made = policy(name)
            assert made is not None
            check_same_plan(plain, other, made, percent)


def respelled(message: Message) -> Message:
    """Return a message with other letters."""

    def spelled(content: Content) -> Content:
        if isinstance(content, TextContent | ToolResultContent) and isinstance(content.content, str):
            return content.model_copy(update={"content": other_letters(content.content)})
        return content

    return message.model_copy(update={"contents": tuple(map(spelled, message.contents))})
