"""An erasure reaches what was made of words that stayed in the view: summaries told of them, and what is recorded of attempts at one."""

from __future__ import annotations

import pytest

from palaver import Dialog, Session
from palaver.context import SummaryAnswer
from palaver.context.summary import Summarizer, SummaryRequest
from palaver.log import Custom, Handle, decode_entry
from palaver.messages import AssistantMessage
from palaver.session.compaction.attempts import attempt_of, rejection
from palaver.session.compaction.proposing import ASKED_FOR
from palaver.session.erasure import erase, preview_erasure, verify_receipt
from palaver.store import MemoryStore, Store

SECRET = "ZEBRA-9911"
RETOLD = f"The owner of {SECRET} wants it moved."


@pytest.fixture
def store() -> Store:
    """Give an empty store."""
    return MemoryStore()


def summariser(*, of_view: bool, text: str = RETOLD) -> Summarizer:
    """Give a summariser that retells in its own words what no line of it quotes."""

    async def answer(request: SummaryRequest, /) -> SummaryAnswer:
        words = "\n\n".join(f"## {heading}\n{text}" for heading in request.headings)
        return SummaryAnswer(text=words, of_view=of_view)

    return answer


def chat(store: Store, goal: str, newest: str = "And now?") -> Dialog:
    """Make a dialog of which most leaves when it is compacted."""
    dialog = Session.create(store, owner="a").root
    dialog.put_text("You are brief.", role="system")
    dialog.put_text(goal)
    dialog.append(AssistantMessage(content="Fine."))
    for number in range(10):
        dialog.put_text(f"q{number} " + "w " * 500)
        dialog.append(AssistantMessage(content="a " * 500))
    dialog.put_text(newest)
    return dialog


def holding(dialog: Dialog) -> list[tuple[str, int]]:
    """Give the entries that hold the secret."""
    rows = zip(dialog.store.headers(dialog.dialog_id), bodies(dialog), strict=True)
    return [(header.kind, header.seq) for header, body in rows if SECRET.encode() in body]


def bodies(dialog: Dialog) -> list[bytes]:
    """Give the entries as they are stored."""
    return [body for _, body in dialog.store.bodies(dialog.dialog_id)]


def compacted(dialog: Dialog, *, of_view: bool = False, focus: str = "") -> None:
    """Compact with a summary that tells the secret in other words."""
    made = dialog.compact(
        policy="palaver", budget=5_000, summarizer=summariser(of_view=of_view), model="gpt-4o", focus=focus
    )
    assert made.summarized is not None
    assert not made.refused
    made.approve()


@pytest.mark.parametrize("place", ["goal", "newest", "constraint"])
def test_an_erasure_takes_along_a_summary_that_was_told_of_what_stayed(store: Store, place: str) -> None:
    """The user's goal, his newest ask and his constraints are told to the summariser though they stay: what it made of them goes with them."""
    words = f"Please move the money of {SECRET} away."
    dialog = chat(store, words if place == "goal" else "Help.", words if place == "newest" else "And now?")
    at = 1 if place == "goal" else dialog.store.last(dialog.dialog_id).seq
    if place == "constraint":
        at = dialog.constraints.add(f"Never tell {SECRET} to anybody.").seq
    compacted(dialog)
    assert "compaction" in dict(holding(dialog))

    erase(store, entries=[Handle(dialog.dialog_id, at)])
    assert holding(dialog) == []


def test_what_the_summariser_was_not_given_leaves_the_summary(store: Store) -> None:
    """An answer that stays and that the summariser did not read is erased alone; where it read the view, the summary goes, too."""
    for of_view in (False, True):
        dialog = chat(store, RETOLD)
        dialog.append(AssistantMessage(content="Something else."))
        place = Handle(dialog.dialog_id, dialog.store.last(dialog.dialog_id).seq)
        compacted(dialog, of_view=of_view)
        touched = preview_erasure(store, entries=[place]).touched
        assert bool(touched) is of_view


def test_a_summary_that_goes_on_from_another_is_reached_by_what_the_first_was_told(store: Store) -> None:
    """From summary to summary the entries are named: the third is taken by what only the first was given."""
    dialog = chat(store, f"Please move the money of {SECRET} away.")
    for _ in range(3):
        compacted(dialog, of_view=True)
        for number in range(10):
            dialog.put_text(f"r{number} " + "w " * 500)
            dialog.append(AssistantMessage(content="a " * 500))
    erase(store, entries=[Handle(dialog.dialog_id, 1)])
    assert holding(dialog) == []


def test_an_erasure_takes_the_words_of_attempts(store: Store) -> None:
    """What a policy or provider said of its failure, and what was to be dwelt on, may quote anything; figures and bills stay."""
    dialog = chat(store, f"Please move the money of {SECRET} away.")
    compacted(dialog, focus=SECRET)
    attempt = attempt_of(ASKED_FOR, SECRET, None)
    dialog.annotate(rejection(attempt, f"the policy raised ValueError: cannot parse: {SECRET} away", (9, 9)))
    assert [kind for kind, _ in holding(dialog)] == ["message", "compaction", "custom"]

    receipt = erase(store, entries=[Handle(dialog.dialog_id, 1)])
    assert holding(dialog) == []
    (entry,) = (one for one in map(decode_entry, bodies(dialog)) if isinstance(one, Custom))
    assert (entry.data["rejected"], entry.data["tokens_before"], entry.data["trigger"]) == ("[erased]", 9, "manual")
    assert verify_receipt(store, receipt).holds
