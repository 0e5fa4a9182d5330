"""Policies planted for the lab to catch, and one that is in order."""

# ruff: noqa: ARG002, ANN401 - the arguments and types are those of every policy

from typing import Any

from palaver.context import ContextManager, Meter, Policy
from palaver.tokens import Budget
from palaver.view import Drop, Insert, Plan, View


class ForgetsReads(Policy):
    """Lawful and bad: drops four reads of files as soon as it may. A line says where they are."""

    name = "forgets-reads"
    words = ""

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Drop the newest exchanges with a read, but for what every view must show."""
        keep = view.protected()
        reads = [
            index
            for index, exchange in enumerate(view.exchanges)
            if any(getattr(block.content, "name", "") == "Read" for block in exchange.blocks()) and index not in keep
        ][-4:]
        handles = ", ".join(str(view.exchanges[index].first) for index in reads)
        inserts = (Insert(before=reads[0], text=self.words or f"[Read before: recall {handles}]"),) if reads else ()
        return Plan(policy=self.name, drops=tuple(Drop(index=index) for index in reads), inserts=inserts)


class ForgetsReadsSilently(ForgetsReads):
    """The same with a text of its own, which says of nothing where it is: what is needed again must be searched for."""

    name = "forgets-reads-silently"
    words = "[Some files were read.]"


class DropsTheAsk(Policy):
    """Unlawful: drops what every view must show."""

    name = "drops-the-ask"

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Drop everything."""
        return Plan(policy=self.name, drops=tuple(Drop(index=index) for index in range(len(view.exchanges))))


class Remembers(Policy):
    """Unlawful: what it does depends on how often it was asked."""

    name = "remembers"
    asked = 0

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:
        """Drop something every second time."""
        type(self).asked += 1
        free = sorted(set(range(len(view.exchanges))) - view.protected())
        return Plan(policy=self.name, drops=tuple(Drop(index=index) for index in free[: type(self).asked % 2]))


class TiresOfIt(ContextManager):
    """Fails half way: when the conversation is long."""

    name = "tires-of-it"
    error: BaseException = RuntimeError("too long for me")

    def __call__(self, dialog: Any) -> Any:
        """Give the dialog as it is, while it is short."""
        if len(dialog.messages) > 60:
            raise self.error
        return dialog


class Leaves(TiresOfIt):
    """Ends the program instead."""

    name = "leaves"
    error = SystemExit(0)
