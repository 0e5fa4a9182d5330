"""Costs: sums over any key are those of the sessions, breaks of the cache have a cause that the log shows, and what was computed is used again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import MemoryStore, Session, SqliteStore
from palaver.browsing.costs import By, CostReport, CostRow, report
from palaver.browsing.sessions import Filters
from palaver.browsing.spent import LONG_LIFE, SHORT_LIFE, Costs
from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log import Compaction, Instructions, Section, Toolset, ToolSpec
from palaver.messages import AssistantMessage, Usage
from palaver.session import Dialog
from palaver.session.costs import cost_of_messages
from palaver.store import Store
from palaver.transcripts import Importer
from tests.recorded import Recording, recordings

MODEL = "claude-opus-4-6"
DAY = 1_767_225_600.0
"""2026-01-01, when a million tokens of this model cost $5 read, $0.50 from the cache, $6.25 stored in it, and $25 written."""


def answer(dialog: Dialog, at: float, cached: int, stored: int, *, model: str = MODEL, long: int = 0) -> None:
    """Append an answer with the usage that Anthropic reports."""
    detail = {"ephemeral_1h_input_tokens": long, "ephemeral_5m_input_tokens": stored - long}
    figures = {"input_tokens": 0, "cache_read_input_tokens": cached, "cache_creation_input_tokens": stored}
    usage = Usage({**figures, "cache_creation": detail, "output_tokens": 100})
    dialog.append(AssistantMessage(content="Yes.", model=model, usage=usage, timestamp=DAY + at))


def talk(store: Store, name: str = "talk") -> Dialog:
    """Return a dialog with a question and an answer that stored 10,000 tokens."""
    dialog = Session.create(store, name, workdir="/home/mara/site/main").root
    dialog.put_text("Go on?")
    answer(dialog, 0, 0, 10_000)
    dialog.put_text("And now?")
    return dialog


def of(store: Store, by: By = "model", filters: Filters = Filters()) -> CostReport:  # noqa: B008 - a frozen value
    """Return the costs of all sessions of a store in memory."""
    return report(Costs(store), store.sessions(), by, filters)


def causes(store: Store) -> list[tuple[str, int]]:
    """Return the causes of the breaks and the tokens that were read anew."""
    return [(row["cause"], row["tokens"]) for row in of(store).breaks]


# --- sums ---------------------------------------------------------------------------------------------------------------------------


@given(
    said=st.lists(
        st.tuples(
            st.sampled_from([MODEL, "gpt-5.2", "unheard-of"]),
            st.integers(0, 4),
            st.integers(0, 30_000),
            st.integers(0, 30_000),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_sums_by_any_key_are_the_costs_of_the_sessions(said: list[tuple[str, int, int, int, bool]]) -> None:
    """Every token and dollar is in one row, whatever they are added up by; a fork counts its own answers alone."""
    store = MemoryStore()
    dialogs = [Session.create(store, f"s{number}").root for number in range(2)]
    for number, (model, day, cached, stored, forks) in enumerate(said):
        at = number % 2
        dialogs[at] = dialogs[at].fork() if forks else dialogs[at]
        dialogs[at].put_text("Go on.")
        answer(dialogs[at], day * 86_400 + number, cached, stored, model=model)
    costs = [Session.open(store, record.session_id).cost for record in store.sessions()]
    for by in get_args(By):
        made = of(store, by)
        for rows in (made.rows, [made.total]):
            assert sum(row["read"] for row in rows) == sum(cost.prompt_tokens for cost in costs)
            assert sum(row["written"] for row in rows) == sum(cost.completion_tokens for cost in costs)
            assert sum(row["dollars"] or 0 for row in rows) == pytest.approx(sum(cost.cost for cost in costs))
            assert sum(row["estimated"] for row in rows) == pytest.approx(sum(cost.estimated for cost in costs))
            assert sum(row["calls"] for row in rows) == len(said)


@pytest.mark.parametrize("recording", recordings("claude_code", "codex", "pi", "tau2_bench", each=2))
def test_costs_of_recordings_are_those_of_their_messages(recording: Recording) -> None:
    """Reading usage from the bytes of entries counts what decoding every message counts, fragments of a response once."""
    store = MemoryStore()
    for made in Importer(store, keep_source=False).import_path(recording.path):
        session = Session.open(store, made.session_id)
        if not any(node.ranges for node in store.nodes(made.session_id)):
            decoded = [cost_of_messages(dialog.messages.bare()) for dialog in session.dialogs]
            assert session.cost.total_tokens == sum(cost.total_tokens for cost in decoded)
            assert session.cost.cost == pytest.approx(sum(cost.cost for cost in decoded))


def test_filters_leave_days_models_tools_and_folders_out() -> None:
    """Days count from the first to the last, both included; names match in part."""
    store = MemoryStore()
    dialog = talk(store)
    answer(dialog, 86_400, 10_000, 500, model="gpt-5.2")

    def days(**words: str) -> list[str]:
        return [row["key"] for row in of(store, "day", Filters(**words)).rows]

    assert days() == ["2026-01-01", "2026-01-02"]
    assert days(since="2026-01-02") == days(model="GPT") == ["2026-01-02"]
    for text in ("soon", "20260102", "2026-02-30"):
        with pytest.raises(InvalidInput, match="not a day"):
            days(until=text)
    assert days(until="2026-01-01") == days(model="opus") == ["2026-01-01"]
    assert days(folder="site/main", tool="palaver") == ["2026-01-01", "2026-01-02"]
    assert days(folder="other") == days(tool="codex") == []


# --- what broke the cache -------------------------------------------------------------------------------------------------------------


def test_break_costs_what_reading_anew_adds() -> None:
    """10,000 tokens stored again for $6.25 a million that would have cost $0.50: $0.0575; with the one-hour cache at $10: $0.095."""
    store = MemoryStore()
    dialog = talk(store)
    answer(dialog, SHORT_LIFE + 1, 0, 10_500)
    assert of(store).breaks[0]["dollars"] == pytest.approx(10_000 * (6.25 - 0.50) / 1e6)
    store = MemoryStore()
    answer(talk(store), SHORT_LIFE + 1, 0, 10_500, long=10_500)
    assert of(store).breaks[0]["dollars"] == pytest.approx(10_000 * (10.00 - 0.50) / 1e6)


def test_pause_counts_by_the_life_of_the_cache() -> None:
    """Within five minutes nothing says why; after them the pause does; what was stored for an hour lives for one."""
    for pause, long, cause in ((SHORT_LIFE - 1, 0, "unknown"), (SHORT_LIFE + 1, 0, "pause")):
        store = MemoryStore()
        answer(talk(store), pause, 0, 10_000, long=long)
        assert causes(store) == [(cause, 10_000)]
    for pause, cause in ((SHORT_LIFE + 1, "unknown"), (LONG_LIFE + 2, "pause")):
        store = MemoryStore()
        dialog = talk(store)
        answer(dialog, 1, 10_000, 5_000, long=5_000)
        dialog.put_text("And?")
        answer(dialog, 1 + pause, 0, 15_000, long=15_000)
        assert causes(store) == [(cause, 15_000)]


def test_call_that_reads_the_cache_breaks_nothing() -> None:
    """Reading all that the call before stored is no break, nor is a prefix that no provider caches."""
    store = MemoryStore()
    dialog = talk(store)
    answer(dialog, 1, 10_000, 400)
    answer(dialog, 2, 10_400 - 1_023, 1_500)
    assert causes(store) == []


def test_cause_is_what_the_log_has_between_the_calls() -> None:
    """Another model, a compaction and new tools are causes, with the entry; they count before the pause."""
    store = MemoryStore()
    answer(talk(store), 1, 0, 10_000, model="claude-sonnet-4-5")
    assert causes(store) == [("model", 10_000)]
    store = MemoryStore()
    dialog = talk(store)
    (place,) = dialog.record(Toolset(tools=(ToolSpec(name="read"),)))
    answer(dialog, LONG_LIFE, 0, 10_000)
    assert causes(store) == [("tools", 10_000)]
    assert of(store).breaks[0]["place"] == str(place)


def test_recorded_requests_say_which_part_changed() -> None:
    """Where both requests are reproduced, the first unit that is not repeated says what broke, and a toolset that was not sent does not."""
    for change, cause in (("instructions", "instructions"), ("tools", "tools"), ("nothing", "unknown")):
        store = MemoryStore()
        dialog = Session.create(store, "own").root
        dialog.put_text("Be brief.", role="system")
        dialog.put_text("Go on?")
        dialog.calls.record(dialog.request("anthropic", MODEL))
        answer(dialog, 0, 0, 10_000)
        dialog.put_text("And now?")
        if change == "instructions":
            dialog.record(Instructions(sections=(Section(name="role", text="Be long."),)))
        elif change == "tools":
            dialog.record(Toolset(tools=(ToolSpec(name="read"),)))
        dialog.calls.record(dialog.request("anthropic", MODEL))
        answer(dialog, 1, 0, 10_200)
        assert causes(store) == [(cause, 10_000)]


def test_compaction_saves_what_later_calls_do_not_read() -> None:
    """60,000 tokens fewer at the three calls up to the next compaction, at $0.50 a million: $0.09; the first of them is a break."""
    store = MemoryStore()
    dialog = Session.create(store, "long").root
    dialog.put_text("Go on?")
    answer(dialog, 0, 0, 80_000)
    dialog.put_text("And now?")
    dialog.record(Compaction(base=2, foreign=True), beside=True)
    for number in range(3):
        answer(dialog, number + 1, 5_000 if not number else 20_000, 15_000 if not number else 0)
        dialog.put_text("And now?")
    made = of(store)
    assert made.total["compactions"] == {
        "count": 1,
        "dollars": 0.0,
        "tokens": 60_000,
        "calls": 3,
        "saved": pytest.approx(0.09),
    }
    assert causes(store) == [("compaction", 15_000)]


# --- what was computed before ---------------------------------------------------------------------------------------------------------


class _Counting(SqliteStore):
    """A store that counts how often the bodies of a dialog are read."""

    read = 0

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        self.read += 1
        return super().bodies(dialog_id, start, stop)


def test_costs_are_computed_again_only_where_something_changed(tmp_path: Path) -> None:
    """The second report reads no entry; growth and an erasure are seen, of their dialog alone; a damaged file is made again."""
    with _Counting(tmp_path / "s.db") as store:
        dialogs = [talk(store, f"s{number}") for number in range(3)]

        def made() -> tuple[CostRow, int]:
            store.read, costs = 0, Costs(store, tmp_path)
            total = report(costs, store.sessions(), "model").total
            costs.save(whole=True)
            return total, store.read

        first, computed = made()
        assert computed == 3
        assert made() == (first, 0)
        answer(dialogs[0], 1, 10_000, 50)
        grown, computed = made()
        assert computed == 1
        assert grown["calls"] == first["calls"] + 1
        Session.open(store, dialogs[0].session_id).erase()
        less, computed = made()
        assert computed == 0
        assert less["calls"] == 2
        (kept,) = tmp_path.glob("costs-*.json")
        assert dialogs[0].dialog_id not in kept.read_text()
        for damage in (b"", b"[]", b'{"made": 1}', kept.read_bytes().replace(b'"state"', b'"stale"')):
            kept.write_bytes(damage)
            assert made()[0] == less
