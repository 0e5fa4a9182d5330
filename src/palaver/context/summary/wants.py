"""What the user wants, as a summariser is told of it whatever else it reads: his goal, what must or must not be, his newest ask; and where he said so."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.context.ledger import Ledger
from palaver.context.record.carried import sources_of
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder
from palaver.log import Handle, Run
from palaver.view import View

__all__ = ["places", "run_of", "wants"]


def wants(view: View, ledger: Ledger) -> Facts:
    """Give the user's goal, what must or must not be, and his newest ask.

    Args:
        view: The view that tells of them.
        ledger: The books, with what the log says of constraints.
    """
    recorder = Recorder(sources=ledger.sources).take(view.known())
    known = ledger.constraints.applied(recorder.facts())
    return Facts(goal=known.goal, rules=known.rules, asks=known.asks[-1:])


def places(wanted: Facts, view: View) -> Iterator[Run]:
    """Give the entries that say what the user wants, what was put on the list of constraints by hand among them.

    Where it is not known which one does, all are given that the texts were made from which stand in the view for earlier ones.
    """
    said = (*wanted.rules, *wanted.asks, *(() if wanted.goal is None else (wanted.goal,)))
    yield from (run_of(Handle.parse(one.at)) for one in said if one.at)
    yield from (run_of(one.at) for one in view.constraints if one.stands)
    if not all(one.at for one in said):
        yield from sources_of([exchange for exchange in view.known() if exchange.derived])


def run_of(place: Handle) -> Run:
    """Give the entry that a handle names, as a run."""
    return Run(dialog=place.dialog, start=place.seq, stop=place.seq + 1)
