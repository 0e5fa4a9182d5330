"""Limits: what a turn, a session or a subject may spend.

Spending is a fold over the log, so the process that continues a turn counts on where the one before was killed. Only the requests of a summary that
is not recorded yet are counted in memory.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypeVar

from palaver.agent.trace import Trace
from palaver.agent.turn import TurnState, mark_at
from palaver.context.summary import Summarizer, SummaryAnswer, SummaryRequest
from palaver.errors import AgentFailure, InvalidInput, NotFound
from palaver.ids import DialogId, SessionId, now
from palaver.log import Header, Node, Reader, decode_entry
from palaver.log.entries import Compaction, Custom, Entry, MessageEntry, ModelChange
from palaver.messages import InvokeCost, Message, Usage
from palaver.plurals import counted
from palaver.session import Dialog
from palaver.session.costs import REJECTED
from palaver.store.protocol import Store
from palaver.tokens.pricing import cost_of, rates
from palaver.tools import run_in_worker

NOTED = "spent"
"""The key under which the mark of a turn has what its dialog had spent before."""

MORE = "palaver.more"
"""The custom entry with what somebody granted in addition to a limit."""

Scope: TypeAlias = Literal["turn", "session", "subject"]
Unit: TypeAlias = Literal["dollars", "tokens", "calls", "seconds"]
Amounts: TypeAlias = Mapping[Unit, float]

_UNITS: tuple[Unit, ...] = ("dollars", "tokens", "calls", "seconds")
_READ = frozenset({"message", "compaction", "custom", "model_change"})
"""The kinds of entries whose bodies say what was spent; of the others the header says enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be spent: `Agent(limits=Limits(dollars=0.50, calls=20))`. A limit that is None is not checked.

    Attributes:
        dollars: US dollars; needs a known price for each model.
        tokens: Tokens read and written, cached ones included.
        calls: Requests to models, those that fail and those of summaries included.
        seconds: Seconds in which a turn runs; those in which it waits for a person do not count.
        per: What is limited: a `turn` (reset by each user message after it stopped), a `session` or a `subject`.
    """

    dollars: float | None = None
    tokens: int | None = None
    calls: int | None = None
    seconds: float | None = None
    per: Scope = "turn"

    def __post_init__(self) -> None:
        """Check the figures.

        Raises:
            InvalidInput: A figure is not a number above 0, there is none, or `per` is unknown.
        """
        for unit in _UNITS:
            number = getattr(self, unit)
            whole = unit in {"tokens", "calls"}
            if number is None:
                continue
            kinds = int if whole else int | float
            if isinstance(number, bool) or not isinstance(number, kinds) or not isfinite(number) or number <= 0:
                hint = f"Pass a {'whole ' * whole}number above 0, or None for no limit."
                raise InvalidInput(f"A limit has {unit}={number!r}.", hint=hint)
        if not self.amounts:
            raise InvalidInput("A limit limits nothing.", hint="Pass dollars, tokens, calls or seconds.")
        if self.per not in {"turn", "session", "subject"}:
            raise InvalidInput(f"A limit is per {self.per!r}.", hint="Use turn, session or subject.")

    @property
    def amounts(self) -> Amounts:
        """The figures that are set."""
        return {unit: getattr(self, unit) for unit in _UNITS if getattr(self, unit) is not None}


class LimitReached(NamedTuple):
    """The limit that ended a turn: `AgentFailure.error`, when its kind is `limit`.

    Attributes:
        per: `turn`, `session` or `subject`.
        unit: `dollars`, `tokens`, `calls` or `seconds`.
        limit: The limit, with what was granted in addition.
        spent: What was spent.
        calls: In how many calls.
        unmetered: The model that does not say how many tokens it used, so that they cannot be limited; empty for any other reason.
    """

    per: Scope
    unit: Unit
    limit: float
    spent: float
    calls: int
    unmetered: str = ""

    def __str__(self) -> str:
        """Return a sentence."""
        if self.unmetered:
            return f"The {self.unit} of this {self.per} cannot be limited: an answer of {self.unmetered} has no usage."
        inside = "" if self.unit == "calls" else f" in {counted(self.calls, 'call')}"
        return f"The limit of this {self.per} is reached: {_said(self.unit, self.spent, self.limit)} spent{inside}."


def _said(unit: Unit, spent: float, limit: float) -> str:
    if unit == "dollars":
        return " of ".join(f"${figure:,.6f}".rstrip("0").rstrip(".") for figure in (spent, limit))
    return " of ".join(f"{figure:,.1f}".removesuffix(".0") for figure in (spent, limit)) + f" {unit}"


def limits_of(given: Limits | Sequence[Limits] | None) -> tuple[Limits, ...]:
    """Return the limits of an agent as a tuple.

    Raises:
        InvalidInput: A value is not a `Limits`.
    """
    limits: tuple[object, ...] = () if given is None else tuple(given) if isinstance(given, Iterable) else (given,)
    for limit in limits:
        if not isinstance(limit, Limits):
            raise InvalidInput(f"limits contains {limit!r}.", hint="Pass Limits(dollars=0.50), or a list of them.")
    return tuple(limit for limit in limits if isinstance(limit, Limits))


def require_prices(limits: Iterable[Limits], models: Iterable[str]) -> None:
    """Refuse a limit in dollars for a model whose price is unknown.

    Raises:
        NotFound: A model has no known price.
    """
    if any(limit.dollars is not None for limit in limits):
        for model in models:
            try:
                rates(model)
            except NotFound as error:
                hint = "A limit in dollars needs it: limit tokens or calls instead."
                raise NotFound(error.name, what=error.what, close=error.close, hint=hint) from error


def require_limited(more: object, limits: Iterable[Limits]) -> None:
    """Refuse a grant to which no limit belongs.

    Raises:
        InvalidInput: It is not a `Limits`, or no limit of the same `per` has one of its figures.
    """
    if more is None:
        return
    if not isinstance(more, Limits):
        raise InvalidInput(f"more is {more!r}.", hint="Pass Limits(dollars=0.50).")
    known = {unit for limit in limits if limit.per == more.per for unit in limit.amounts}
    unknown = [unit for unit in more.amounts if unit not in known]
    if unknown:
        raise InvalidInput(f"more allows {unknown[0]} per {more.per}, of which the agent has no limit.")


# --- what was spent ----------------------------------------------------------------------------------------------------


K = TypeVar("K")


def _zeros() -> defaultdict[Any, float]:
    return defaultdict(float)


def _add(total: defaultdict[K, float], amounts: Mapping[K, float]) -> None:
    for key, amount in amounts.items():
        total[key] += amount


@dataclass(slots=True)
class Spending:
    """What the own entries of one dialog spent, and what was granted in them: a fold.

    Attributes:
        seen: The number of the next entry to read.
        spent: What was spent.
        more: What was granted, by scope and unit.
        responses: The ids of the model's answers.
        unmetered: The model of an answer without usage, or empty.
        asked: Whether a model was asked and has not answered yet.
        model: The model in force.
        began: When the turn began that is open, or None.
    """

    seen: int = 0
    spent: defaultdict[Unit, float] = field(default_factory=_zeros)
    more: defaultdict[tuple[str, Unit], float] = field(default_factory=_zeros)
    responses: set[str] = field(default_factory=set)
    unmetered: str = ""
    asked: bool = False
    model: str = ""
    began: float | None = None

    def catch_up(self, reader: Reader, dialog_id: DialogId) -> Self:
        """Read what was written since."""
        start = self.seen
        if reader.last(dialog_id).seq >= start:
            entries = zip(reader.headers(dialog_id, start), reader.bodies(dialog_id, start), strict=False)
            for header, (_, body) in entries:
                self._add(header, body)
                self.seen = header.seq + 1
        return self

    @classmethod
    def stored_in(cls, store: Store, dialog_id: DialogId) -> Self:
        """Return what the newest turn found spent before it, if it noted that; else nothing, of which nothing is read."""
        started = next(store.latest_of_kind(dialog_id, "turn_started"), None)
        noted = {} if started is None else mark_at(store, dialog_id, started.seq + 1).get(NOTED) or {}
        made = cls(**{name: noted[name] for name in ("seen", "unmetered", "asked", "model", "began") if name in noted})
        _add(made.spent, noted.get("spent", {}))
        _add(made.more, {(per, unit): amount for per, unit, amount in noted.get("more", ())})
        return made

    def noted(self) -> dict[str, Any]:
        """Return what a turn notes for `stored_in`, as JSON values."""
        more = [[*key, amount] for key, amount in self.more.items()]
        facts = {"seen": self.seen, "unmetered": self.unmetered, "asked": self.asked, "model": self.model}
        return {**facts, "began": self.began, "spent": dict(self.spent), "more": more}

    def running(self) -> float:
        """Return the seconds since the beginning of the turn that is open."""
        return 0.0 if self.began is None else max(0.0, now() - self.began)

    def _add(self, header: Header, body: bytes) -> None:
        if header.kind == "invocation":
            self.asked = True
            self.spent["calls"] += 1
        elif header.kind == "turn_started":
            self.began = header.at
        elif header.kind == "turn_ended" and self.began is not None:
            self.spent["seconds"] += max(0.0, header.at - self.began)
            self.began = None
        elif header.kind in _READ:
            self._add_entry(decode_entry(body))

    def _add_entry(self, entry: Entry) -> None:
        match entry:
            case ModelChange(model=model):
                self.model = model
            case MessageEntry(message=message) if message.is_assistant_side:
                self.responses.add(message.id)
                self._use(message.usage, message.model, entry.at)
                if self.asked and not message.usage:  # other messages were not asked for: a program appended them
                    self.unmetered = message.model or self.model or "the model"
                self.asked = False
            case Compaction(attempt=data) | Custom(data=data) if isinstance(data, Mapping):
                self._add_data(entry, data)
            case _:
                pass

    def _add_data(self, entry: Entry, data: Mapping[str, Any]) -> None:
        """Add a summary, an answer that did not become a message, or a grant."""
        summary, custom = data.get("summary"), entry.custom_type if isinstance(entry, Custom) else ""
        if isinstance(summary, Mapping):
            self.spent["calls"] += int(summary.get("requests") or 0)
            for usage in summary.get("usages") or ():
                self._use(Usage(usage), summary.get("model"), entry.at)
        elif custom == REJECTED:
            message = Message.from_dict(data["message"])
            self._use(message.usage, message.model, entry.at)
        elif custom == MORE:
            _add(self.more, {(str(data["per"]), unit): data[unit] for unit in _UNITS if unit in data})

    def _use(self, usage: Usage, model: str | None, at: float) -> None:
        cost = cost_of(usage, model or "", at)
        if usage and not cost.cost:  # a provider may name the model as no price list does
            cost = cost_of(usage, self.model, at)
        _add(self.spent, _of(cost))


def _of(cost: InvokeCost) -> dict[Unit, float]:
    return {"tokens": cost.total_tokens, "dollars": cost.cost}


class Ledger:
    """What a session, or all sessions of a subject, spent. It reads only what was written since."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active: dict[SessionId, float] = {}
        self._dialogs: dict[DialogId, tuple[Node, Spending]] = {}

    def read(self, store: Store, session_id: SessionId, subject: str) -> tuple[tuple[Node, Spending], ...]:
        """Return the tally of each dialog of a session and, if there is one, of a subject."""
        with self._lock:
            others = store.sessions(subject=subject) if subject else ()
            active = {record.session_id: record.updated_at for record in others} | {session_id: -1.0}
            for place, at in active.items():
                if place == session_id or self._active.get(place) != at:
                    for node in store.nodes(place):
                        if node.dialog_id not in self._dialogs:
                            self._dialogs[node.dialog_id] = node, Spending.stored_in(store, node.dialog_id)
                        self._dialogs[node.dialog_id][1].catch_up(store, node.dialog_id)
                    self._active[place] = at
            return tuple(self._dialogs.values())


Ledgers: TypeAlias = defaultdict[tuple[Scope, str], Ledger]
"""The ledgers that an agent keeps, by scope and id."""


# --- checking ----------------------------------------------------------------------------------------------------------


class Guard:
    """Checks limits before each request and each round of tools: an agent's own, then those of the turn that its turn works for.

    Attributes:
        limits: All of these limits.
        root: The dialog of the outermost turn.
        pending: What the log does not record yet, of the outermost turn and all within it, each with its guard.
        lock: Reserved from a check until its request is recorded, by a turn and those of its sub-agents.
    """

    def __init__(
        self,
        limits: Sequence[Limits],
        dialog: Dialog,
        turn: TurnState | None,
        ledgers: Ledgers,
        outer: Guard | None = None,
    ) -> None:
        """Create the guard of a turn, or of a compaction between two turns.

        Raises:
            InvalidInput: A limit is per subject, and the session has none.
        """
        self._own = tuple(limit for limit in limits if turn is not None or limit.per != "turn")
        self._dialog, self._turn, self._ledgers, self._outer = dialog, turn, ledgers, outer
        self.root: DialogId = dialog.dialog_id if outer is None else outer.root
        self._known: defaultdict[DialogId, Spending] = defaultdict(Spending)
        self.pending: list[tuple[Guard, dict[Unit, float]]] = [] if outer is None else outer.pending
        self._subject = ""
        self.limits: tuple[Limits, ...] = (*self._own, *(() if outer is None else outer.limits))
        self.lock: threading.RLock = threading.RLock() if outer is None else outer.lock
        if any(limit.per == "subject" for limit in self._own):
            self._subject = dialog.store.session(dialog.session_id).subject
            if not self._subject:
                hint = "Pass subject= when you open the dialog."
                raise InvalidInput("A limit is per subject, and the session has no subject.", hint=hint)

    def reached(self) -> LimitReached | None:
        """Return the first limit that is reached, or None."""
        with self.lock:
            for limit in self._own:
                spent, more, unmetered = self._spent(limit.per)
                for unit, most in limit.amounts.items():
                    unknown = unmetered if unit in {"tokens", "dollars"} else ""
                    if unknown or spent[unit] >= most + more[limit.per, unit]:
                        allowed = most + more[limit.per, unit]
                        return LimitReached(limit.per, unit, allowed, spent[unit], int(spent["calls"]), unknown)
            return None if self._outer is None else self._outer.reached()

    def require(self, trace: Trace | None = None) -> None:
        """Raise if a limit is reached.

        Raises:
            AgentFailure: A limit is reached; the kind is `limit`.
        """
        reached = self.reached() if self.limits else None
        if reached is not None:
            per = "" if reached.per == "turn" else f', per="{reached.per}"'
            small = "One call costs more than the limit. " if reached.calls == 1 and reached.unit != "calls" else ""
            hint = f"{small}respond(more=Limits({reached.unit}=...{per})) allows more and continues."
            if reached.unmetered:
                hint = "Limit calls or seconds instead."
            raise AgentFailure(str(reached), trace=trace, kind="limit", error=reached, hint=hint)

    def noted(self, dialog_id: DialogId) -> dict[str, Any] | None:
        """Return what a dialog spent until now, which its next turn notes so that no later process reads it again; None without a limit that needs it."""
        per = next((limit.per for limit in self._own if limit.per != "turn"), None)
        if per is None:
            return None if self._outer is None else self._outer.noted(dialog_id)
        with self.lock:
            return next((spent.noted() for place, spent, _ in self._of_sessions(per) if place == dialog_id), None)

    def is_reached(self) -> bool:
        """Return whether a limit is reached."""
        return self.reached() is not None

    def counted(self, summarizer: Summarizer | None) -> Summarizer | None:
        """Return a summarizer whose requests are checked, and counted until `settle`."""
        return _CheckedSummarizer(self, summarizer) if summarizer is not None and self.limits else summarizer

    def add(self, amounts: dict[Unit, float]) -> None:
        """Count what the log does not record yet."""
        with self.lock:
            self.pending.append((self, amounts))

    def settle(self) -> None:
        """Forget what was counted with `add`: the log has it."""
        with self.lock:
            self.pending[:] = [(guard, amounts) for guard, amounts in self.pending if guard is not self]

    def _spent(self, per: Scope) -> tuple[Mapping[Unit, float], Mapping[tuple[str, Unit], float], str]:
        """Return what a scope spent, what was granted, and a model that does not report its usage, or empty."""
        spent: defaultdict[Unit, float] = _zeros()
        more: defaultdict[tuple[str, Unit], float] = _zeros()
        unmetered = ""
        for place, tally, below in self._of_turn() if per == "turn" else self._of_sessions(per):
            amounts = dict(tally.spent)
            if below:  # a sub-agent works within the time of the turn that called it
                amounts.pop("seconds", None)
            _add(spent, amounts)
            if place == (self._dialog.dialog_id if per == "turn" else self.root):
                spent["seconds"] += tally.running()
            _add(more, tally.more)
            unmetered = tally.unmetered or unmetered
        for guard, pending in self.pending:
            if per != "turn" or guard.works_for(self):
                _add(spent, pending)
        return spent, more, unmetered

    def works_for(self, other: Guard) -> bool:
        """Return whether it is the other guard, or its turn works for the other's."""
        return self is other or (self._outer is not None and self._outer.works_for(other))

    def _of_turn(self) -> Iterator[tuple[DialogId, Spending, bool]]:
        """Yield the tallies of the turn and of its sub-agents' dialogs, with whether it is a sub-agent's."""
        store, mine, turn = self._dialog.store, self._dialog.dialog_id, self._turn
        if turn is None:
            return
        if mine not in self._known:
            self._known[mine].seen = max(turn.since, 0)
        own = self._known[mine].catch_up(store, mine)
        yield mine, own, False
        responses = own.responses | ({turn.response.id} if turn.response is not None else set())
        below: set[DialogId] = set()
        for node in store.nodes(self._dialog.session_id):  # in the order in which they were created: parents first
            called = node.relation == "subagent" and node.parent_id == mine and node.metadata["response"] in responses
            if called or node.parent_id in below:
                below.add(node.dialog_id)
                yield node.dialog_id, self._known[node.dialog_id].catch_up(store, node.dialog_id), True

    def _of_sessions(self, per: Scope) -> Iterator[tuple[DialogId, Spending, bool]]:
        """Yield the tallies of a session's dialogs, or of a subject's."""
        session_id, subject = self._dialog.session_id, self._subject if per == "subject" else ""
        for node, tally in self._ledgers[per, subject or session_id].read(self._dialog.store, session_id, subject):
            yield node.dialog_id, tally, node.relation == "subagent"


class _CheckedSummarizer:
    """A summarizer whose requests a guard checks and counts.

    Attributes:
        window: The summarizer's.
    """

    def __init__(self, guard: Guard, summarizer: Summarizer) -> None:
        self.window: int = getattr(summarizer, "window", 0)
        self._guard, self._summarizer = guard, summarizer

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Return a summary.

        Raises:
            AgentFailure: A limit is reached.
        """
        await run_in_worker(self._guard.require)
        self._guard.add({"calls": 1})
        answer = await self._summarizer(request)
        if answer.usage is not None:
            self._guard.add(_of(cost_of(answer.usage, answer.model)))
        return answer
