"""The metrics, on examples worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.lab.metrics import (
    Worth,
    beats,
    front,
    identifiers,
    in_arguments,
)
from palaver.lab.optimum import Load, optimum
from palaver.lab.prices import Sheet, recall_charge, sheet
from tests.lab.prices import SHEET

# --- references ------------------------------------------------------------------------------------------------------------


def test_identifiers_name_something_exactly() -> None:
    """Paths, addresses, names with digits or joints, numbers of three digits, codes in capitals; no words of prose."""
    text = "See src/a.py:12 and max_size, mail bob@example.com, code ECONNREFUSED or E501: 4096 of 12, at 10.5.2 (well-known)."
    assert identifiers(text) == {"src/a.py:12", "max_size", "bob@example.com", "ECONNREFUSED", "E501", "4096", "10.5.2"}


def test_arguments_are_read_for_their_values() -> None:
    """The names of arguments are the tool's own, and no reference; what is nested counts."""
    args = {"user_id": "sara_doe_496", "items": [{"order_no": "#W123"}, 4096, True, None], "note": "go on"}
    assert in_arguments(args) == {"sara_doe_496", "W123", "4096"}


# --- money -------------------------------------------------------------------------------------------------------


def _bill(*calls: tuple[int, int, int], prices: Sheet = SHEET) -> float:
    """Return what calls cost: tokens read from the cache, read anew, and written."""
    return sum(prices.call(read=read, written=written, output=output) for read, written, output in calls)


def test_the_bill_by_hand() -> None:
    """Two calls: 2,000 tokens written and 10 answered; then 2,000 read, 500 written, 20 answered."""
    assert _bill((0, 2_000, 10), (2_000, 500, 20)) == 2_000 * 1.25 + 50 + 200 + 500 * 1.25 + 100


def test_a_cache_is_found_while_it_lives() -> None:
    """A prefix is found when it is long enough and was used within the lifetime; a time that is not known is no gap."""
    assert SHEET.found(1_000, warm=True) == 1_000
    assert SHEET.found(999, warm=True) == 0
    assert SHEET.found(5_000, warm=False) == 0
    assert SHEET.warm(300.0)
    assert not SHEET.warm(300.1)
    assert SHEET.warm(None)


def test_recalls_are_charged_as_calls() -> None:
    """Two lookups on a view of 1,000 tokens that bring 200: read twice, 120 tokens written by the model, 320 written to the cache."""
    assert recall_charge(2, 200, 1_000, SHEET) == pytest.approx(200 + 120 * 5 + 320 * 1.25)
    assert recall_charge(0, 0, 1_000, SHEET) == 0


@given(st.dictionaries(st.integers(), st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_the_front_beats_all_others(found: dict[int, tuple[int, int]]) -> None:
    """None of the front beats another of it, and whatever is not on it is beaten by one that is."""
    points = {name: Worth(*each) for name, each in found.items()}
    best = front(points)
    assert best
    assert not any(beats(points[one], points[other]) for one in best for other in best)
    assert all(any(beats(points[one], points[name]) for one in best) for name in points.keys() - best)


def test_without_a_cache_every_token_read_costs_as_input() -> None:
    """In calls, in recalls, in the optimum and for policies: what is charged for a call is what the optimum is charged for it."""
    for model in ["claude-sonnet-4-5", "my-own-model"]:
        found = sheet(model, lifetime=0)
        assert found.cache_read == found.cache_write == found.input, model
        assert recall_charge(1, 200, 1_000, found) == pytest.approx(
            (1_000 + 200 + 60) * found.input + 60 * found.output
        ), model
        load = Load(new=(2_000, 500), warm=(False, True), prefix=1_000, output=10, after=9_000, room=10_000)
        assert optimum(load, found) == pytest.approx(_bill((0, 3_000, 5), (0, 3_500, 5), prices=found)), model


# --- search ----------------------------------------------------------------------------------------------------


# --- intervals -------------------------------------------------------------------------------------------------------------
