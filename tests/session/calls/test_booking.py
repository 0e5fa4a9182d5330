"""The books of a dialog: what its log says of past calls, for whoever schedules the next one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from palaver import AssistantMessage, Dialog, Session, ToolCallContent, ToolMessage, ToolResultContent
from palaver.context import Composed, Ledger, Meter, PriceSheet, Scheduled, estimate
from palaver.log import Compaction, Invocation, MessageEntry, decode_entry
from palaver.session.calls.booking import Books, rates_of
from palaver.store import MemoryStore
from palaver.tokens import counter

_MODEL = "claude-sonnet-4-5"
_DRAWN = random.Random(3)  # noqa: S311 - pages, not secrets
_PAGES = [" ".join(str(_DRAWN.random()) for _ in range(20)) for _ in range(40)]
_POLICY = Scheduled("palaver", _MODEL, prices=PriceSheet(missed=0.0, lifetime=300.0), newest=2, fold=False)


def _worked(rounds: int = 5, usage: dict[str, Any] | None = None) -> Dialog:
    """Make a dialog whose model called a tool so often, each call recorded."""
    dialog = Session.create(MemoryStore(), "books").root
    dialog.put_text("Read the pages.")
    _work(dialog, range(rounds), usage)
    return dialog


def _work(dialog: Dialog, rounds: range, usage: dict[str, Any] | None = None) -> None:
    for number in rounds:
        dialog.record_call(dialog.request("anthropic", _MODEL))
        call = ToolCallContent(id=f"c{number}", name="read", args={"page": number})
        dialog.append(
            [
                AssistantMessage(contents=(call,), response_id=f"r{number}", usage=usage or {}),
                ToolMessage.from_result(ToolResultContent(id=call.id, name="read", content=_PAGES[number])),
            ]
        )


def _decided(dialog: Dialog, after: float | None = None, model: str = _MODEL) -> Composed:
    """Compose so many seconds after the last call."""
    when = None if after is None else dialog.invocations[-1].at + after
    return dialog.compose(_POLICY, model=model, when=when)


def _why(composed: Composed) -> str:
    assert composed.plan.details is not None
    return str(composed.plan.details["edits"]["why"])


@pytest.mark.parametrize(
    ("after", "why"), [(None, "kept"), (0.0, "kept"), (299.0, "kept"), (300.0, "kept"), (301.0, "cold"), (1e9, "cold")]
)
def test_a_cache_is_cold_when_nobody_called_for_longer_than_it_lives(after: float | None, why: str) -> None:
    """The boundary is exclusive; where the time of the next call is not known, no cache is taken for cold."""
    assert _why(_decided(_worked(), after)) == why


def test_another_model_has_no_cache() -> None:
    """With another model than the last call's everything that waits goes for nothing."""
    composed = _decided(_worked(), 1.0, model="claude-opus-4-6")
    assert _why(composed) == "lost"
    assert composed.plan.rewrites


def test_behind_an_edit_of_somebody_elses_the_prefix_is_lost() -> None:
    """A commit of another policy's breaks the prefix that was sent: what waits behind it goes."""
    dialog = _worked(8)
    assert _why(_decided(dialog, 1.0)) == "kept"
    other = Session.open(dialog.session_id, dialog.store).root
    other.commit(other.compose("default", 1_900, model=_MODEL))
    dialog.reload()
    dialog.put_text("Go on.")
    assert _why(_decided(dialog, 1.0)) == "lost"
    dialog.record_call(dialog.request("anthropic", _MODEL))
    dialog.append(AssistantMessage(content="I go on.", usage={"input_tokens": 900}))
    assert _why(_decided(dialog, 1.0)) == "kept", "that call wrote the new prefix"


def test_living_branches_that_share_the_prefix_make_an_edit_dearer() -> None:
    """With a fork that went on a moment ago the price counts its tokens twice; with one that is long cold, once."""
    dialog = _worked(8)
    alone = _decided(dialog, 1.0).plan.details
    child = dialog.fork()
    child.put_text("Here too.")
    shared = _decided(dialog, 1.0).plan.details
    assert alone is not None
    assert shared is not None
    assert (alone["edits"]["branches"], shared["edits"]["branches"]) == (1, 2)
    assert shared["edits"]["price"] > alone["edits"]["price"]
    later = _decided(dialog, 10_000.0).plan.details
    assert later is not None
    assert later["edits"]["branches"] == 1


def test_what_the_provider_said_of_the_last_call_is_the_anchor() -> None:
    """The view that was sent with the tokens that were read of it, in this process and in a later one; only what is new is estimated."""
    dialog = _worked(3, usage={"input_tokens": 1_234, "output_tokens": 5})
    here = Books(dialog.store, dialog.dialog_id)
    known = dialog._books
    meter = Meter(counter(_MODEL))
    for books in (known, here):
        ledger = books.ledger(Ledger(meter=meter), dialog.spans, _MODEL, None)
        assert ledger.anchor is not None
        assert ledger.anchor.tokens == 1_234
        assert ledger.anchor.view == dialog.invocations[-1].view()
        assert ledger.calls is not None
        assert [call.place for call in ledger.calls.made] == [call.handle for call in dialog.invocations]
        found = estimate(dialog.view(), meter, ledger.anchor)
        assert found.anchored == 1_234
        assert found.tokens > 1_234
        assert 0 < found.error < found.tokens - 1_234


def test_the_books_go_on_from_what_they_read() -> None:
    """Asked after every entry or once at the end, from the first entry or behind a compaction: the calls are the same."""
    dialog = _worked(2)
    step = Books(dialog.store, dialog.dialog_id)
    for number in range(2, 6):
        step.ledger(Ledger(meter=Meter(counter(_MODEL))), dialog.spans, _MODEL, None)
        _work(dialog, range(number, number + 1))
    dialog.commit(_decided(dialog, 1_000.0), margin=0.0)
    _work(dialog, range(6, 8))
    once = Books(dialog.store, dialog.dialog_id)
    all_calls = step.ledger(Ledger(meter=Meter(counter(_MODEL))), dialog.spans, _MODEL, None).calls
    since = once.ledger(Ledger(meter=Meter(counter(_MODEL))), dialog.spans, _MODEL, None).calls
    assert all_calls is not None
    assert since is not None
    assert [call.place for call in all_calls.made] == [call.handle for call in dialog.invocations]
    assert since.made == all_calls.made[-3:], "behind a compaction: the calls since, and the one before"


def test_a_call_of_another_program_has_no_anchor() -> None:
    """An invocation without what it saw is a call with its time and model, and says nothing of a size."""
    dialog = _worked(1)
    dialog.annotate(Invocation(model="theirs"))
    dialog.record(MessageEntry(message=AssistantMessage(content="Done.", usage={"input_tokens": 9})))
    ledger = Books(dialog.store, dialog.dialog_id).ledger(Ledger(meter=Meter(counter(_MODEL))), dialog.spans, "", None)
    assert ledger.anchor is None
    assert ledger.calls is not None
    assert ledger.calls.last is not None
    assert ledger.calls.last.model == "theirs"


def test_a_flush_stays_made_whether_it_is_committed_or_not() -> None:
    """What the last call was sent in a shorter form stays so: to take it back would break the prefix again."""
    dialog = _worked(8)
    cold = _decided(dialog, 1_000.0)
    assert cold.plan.rewrites
    dialog.record_call(dialog.request("anthropic", _MODEL, policy=_Fixed(cold)), cold.plan.details)
    dialog.append(AssistantMessage(content="I see.", usage={"input_tokens": 900}))
    after = _decided(dialog, 1.0)
    assert {change.target for change in cold.plan.rewrites} <= {change.target for change in after.plan.rewrites}
    assert not [one for one in map(decode_entry, _bodies(dialog)) if isinstance(one, Compaction)]


def _bodies(dialog: Dialog) -> list[bytes]:
    return [body for _, body in dialog.store.bodies(dialog.dialog_id)]


class _Fixed(Scheduled):
    """Gives a plan that was made before."""

    def __init__(self, composed: Composed) -> None:
        super().__init__("palaver", _MODEL)
        self._plan = composed.plan

    def plan(self, *_: object) -> Any:  # noqa: ANN401 - the plan
        """Give it."""
        return self._plan


def test_a_model_without_a_price_has_none() -> None:
    """Nobody lists it: then nothing is scheduled by prices."""
    assert rates_of("no-such-model-anywhere", 0.0) is None
    assert rates_of("", 0.0) is None
    found = rates_of(_MODEL, 1_790_000_000.0)
    assert found is not None
    assert found.cache_read < found.input


@pytest.mark.parametrize(("after", "why"), [(None, "kept"), (299.0, "kept"), (301.0, "cold")])
def test_a_log_without_calls_is_cold_when_nobody_answered_for_longer(after: float | None, why: str) -> None:
    """Of a session that was imported no call is recorded: its cache was last used when the model, or a tool, said something last."""
    dialog = Session.create(MemoryStore(), "imported").root
    dialog.put_text("Read the pages.")
    for number in range(5):
        call = ToolCallContent(id=f"c{number}", name="read", args={"page": number})
        answer = AssistantMessage(contents=(call,), response_id=f"r{number}")
        dialog.append(
            [answer, ToolMessage.from_result(ToolResultContent(id=call.id, name="read", content=_PAGES[number]))]
        )
    last = dialog.store.last(dialog.dialog_id).at
    dialog.put_text("And now?")
    composed = dialog.compose(_POLICY, model=_MODEL, when=None if after is None else last + after)
    assert _why(composed) == why
    assert bool(composed.plan.rewrites) == (why == "cold")
