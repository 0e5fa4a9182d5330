"""Policies planted for the lab to catch, and one that is in order."""

# ruff: noqa: ARG002, ANN401 - the arguments and types are those of every policy

import os
import threading
from contextlib import suppress
from typing import Any

from palaver.context import ContextManager, Ledger, Policy
from palaver.context.record.carried import sources_of
from palaver.lab.metrics import identifiers
from palaver.lab.things import words
from palaver.tokens import Budget, Rates
from palaver.view import Drop, Insert, Plan, Reason, View


class ForgetsReads(Policy):
    """Lawful and bad: drops four reads of files as soon as it may. A line of ours says where they are."""

    name = "forgets-reads"
    words = ""

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Drop the newest exchanges with a read, but for what every view must hold."""
        keep = view.protected()
        reads = [
            index
            for index, exchange in enumerate(view.exchanges)
            if any(getattr(block.content, "name", "") == "Read" for block in exchange.blocks()) and index not in keep
        ][-4:]
        inserts = (Insert(before=reads[0], text=self.words),) if reads and self.words else ()
        return Plan(policy=self.name, drops=tuple(Drop(index=index) for index in reads), inserts=inserts)


class ForgetsReadsSilently(ForgetsReads):
    """The same with a text of its own, which says of nothing where it is: what is needed again must be searched for."""

    name = "forgets-reads-silently"
    words = "[Some files were read.]"


class DropsTheAsk(Policy):
    """Unlawful: drops what every view must hold."""

    name = "drops-the-ask"

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Drop everything."""
        return Plan(policy=self.name, drops=tuple(Drop(index=index) for index in range(len(view.exchanges))))


class Remembers(Policy):
    """Unlawful: what it does depends on how often it was asked."""

    name = "remembers"
    asked = 0

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Drop something every second time."""
        type(self).asked += 1
        free = sorted(set(range(len(view.exchanges))) - view.protected())
        return Plan(policy=self.name, drops=tuple(Drop(index=index) for index in free[: type(self).asked % 2]))


class GoesToAndFro(Policy):
    """Unlawful: leaves out the same for another reason at every second length, and says other words for it."""

    name = "goes-to-and-fro"

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Drop the oldest exchanges that may be dropped, by fours, so that the same ones are left out for some calls."""
        free = sorted(set(range(len(view.exchanges))) - view.protected())
        free = free[: len(free) // 4 * 4]
        odd = len(view.exchanges) % 2 == 1
        reason, words = (Reason.FOLDED, "[Folded.]") if odd else (Reason.OVER_BUDGET, "[No room.]")
        told = sources_of([view.exchanges[index] for index in free])
        inserts = (Insert(before=free[0], text=words, sources=told),) if free else ()
        return Plan(policy=self.name, drops=tuple(Drop(index=n, reason=reason) for n in free), inserts=inserts)


class TiresOfIt(ContextManager):
    """Fails half way: when the conversation is long."""

    name = "tires-of-it"

    def __call__(self, dialog: Any) -> Any:
        """Give the dialog as it is, while it is short."""
        if len(dialog.view().exchanges) > 30:
            raise RuntimeError("too long for me")
        return dialog


class Leaves(ContextManager):
    """Fails half way by ending the program: when the conversation is long."""

    name = "leaves"

    def __call__(self, dialog: Any) -> Any:
        """Give the dialog as it is, while it is short."""
        if len(dialog.view().exchanges) > 30:
            raise SystemExit(0)
        return dialog


class Hangs(ContextManager):
    """Never comes to an end: when the conversation is long. What it waits in hears no signal and no exception."""

    name = "hangs"

    def __call__(self, dialog: Any) -> Any:
        """Give the dialog as it is, while it is short."""
        if len(dialog.view().exchanges) > 30:
            _wait()
        return dialog


class Dies(ContextManager):
    """Ends its process as no exception does: when the conversation is long."""

    name = "dies"

    def __call__(self, dialog: Any) -> Any:
        """Give the dialog as it is, while it is short."""
        if len(dialog.view().exchanges) > 30:
            os._exit(3)
        return dialog


def _wait() -> None:
    """Wait for ever, whatever is raised meanwhile."""
    while True:
        with suppress(BaseException):
            threading.Event().wait()


class NoPolicy:
    """Nothing that manages a context."""


class ListsWords(Policy):
    """Lawful and vain: drops the oldest half when there is no room, and writes down every identifier that stood in it, and nothing else."""

    name = "lists-words"
    lists = True

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Drop the oldest exchanges that may be dropped, and list their words."""
        size, keep = ledger.meter.view(view).total, view.protected()
        drops: list[int] = []
        if size > budget.for_input:
            for index in sorted(set(range(len(view.exchanges))) - keep):
                if size > budget.for_input // 2:
                    size -= ledger.meter.exchange(view.exchanges[index])
                    drops.append(index)
        said = [words(block.content) for index in drops for block in view.exchanges[index].blocks()]
        names = sorted({name for each in said for name in identifiers(each)}) if self.lists else ["[gone]"]
        while ledger.meter.text(text := " ".join(names)) > budget.for_input // 4:
            names = names[len(names) // 4 :]
        inserts = (Insert(before=drops[0], text=text or "[nothing]"),) if drops else ()
        return Plan(policy=self.name, drops=tuple(Drop(index=index) for index in drops), inserts=inserts)


class ListsNothing(ListsWords):
    """The same without the list."""

    name = "lists-nothing"
    lists = False
