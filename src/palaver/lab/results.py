"""The lab's results: their schema.

A run is a folder::

    run.json                     the LabRun: the settings, with prices and assumptions
    sessions/<key>.jsonl         one session: a SessionRow, then for each policy a ReplayRow and the CallRows of it
    files/<digest>.json          a source file that is done: the keys of its sessions, and its problems
    table.json                   the Table: each policy over all sessions, with intervals

Every line of a session's file is a JSON object whose `record` is the type of row (`session`, `replay`, `call`, `end`). The other keys
are the attributes here. Attributes are only added; `SCHEMA` increases when one changes its meaning. Tokens are of the run's model,
money is in the run's currency, and times are in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Self

from pydantic import TypeAdapter

from palaver.notebook import html_table
from palaver.plurals import counted

SCHEMA = 3
"""The version of the meaning of the results. 3: human messages are counted; views are committed as by an agent."""

PARTS = ("system", "tools", "user", "assistant", "results", "summaries", "placeholders")
"""The attributes that divide a CallRow's tokens, in a good order for stacking."""


class _Row:
    """A row that can be written as JSON values and read again; keys of a newer version are ignored."""

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as JSON values."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]  # every row is a dataclass

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the result of `to_dict`.

        Raises:
            ValidationError: An attribute is missing, or has a value of another type.
        """
        row: Self = _reader(cls).validate_python(values)  # type: ignore[arg-type]  # a class is hashable
        return row


@cache
def _reader(row: type[_Row]) -> TypeAdapter[Any]:
    return TypeAdapter(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(_Row):
    """A fact that a reader of the results must know: missing data, an assumption or a failure.

    Attributes:
        kind: `unreadable`, `damaged`, `empty`, `twice`, `no timestamps`, `no usage`, `no model`, `no evidence`, `no price`, `policy failed`, `invalid policy`, `violation`.
        text: A sentence that says what happened and what was done.
        source: The file, or empty.
        session: The key of the session, or empty.
        policy: The policy, or empty.
        call: The number of the call, or 0.
    """

    kind: str
    text: str
    source: str = ""
    session: str = ""
    policy: str = ""
    call: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneFile(_Row):
    """A finished source file.

    Attributes:
        source: The file.
        sessions: The keys of its sessions, in order.
        problems: The problems of the file.
    """

    source: str
    sessions: tuple[str, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow(_Row):
    """One recorded model call under one policy, with the key (session, policy, stand_in, call).

    Attributes:
        session: The key of the session.
        policy: The policy's name, as the run lists it.
        stand_in: The replacement for a model's summaries.
        call: The number of the call in the session, from 1; the same for every policy.
        dialog: The dialog in which it was made.
        seq: The number of the dialog's last own entry that it saw, or -1.
        at: When the answer was recorded, in seconds since 1970 UTC; None if unknown.
        gap: Seconds since the previous answer in the same dialog; None for the first one, or if unknown.
        warm: Whether the provider's cache of the previous call was still alive.
        tokens: The size of the request. The parts (`PARTS`) add up to it.
        system: Instructions, and the overhead of a request.
        tools: Tool schemas.
        user: Text of the user.
        assistant: The model's text, thinking and calls.
        results: Unchanged tool results.
        summaries: Records and summaries, and files brought back.
        placeholders: Blocks shown in another form, and notices.
        left_out: The number of recorded messages that the view leaves out to become smaller.
        mark: The policy's action: empty if the request continues the previous one; `cut` if a smaller view was committed, so that later
            views start from it; `edit` if the view changed without a commit.
        stable: The number of leading tokens shared with the previous request, where the provider's cached prefix ends.
        read: Tokens read from the provider's cache.
        written: Input tokens not in the cache (written to it, if the provider charges for that).
        output: Tokens that the model wrote.
        cost: The cost of the call, without recalls and summaries.
        summary_cost: The cost of the model's summary that a stand-in replaces.
        recalls: The number of calls needed for references of the next response that the view lacks: lookups, also those that find something
            else, and repeated steps.
        recall_tokens: The tokens that they brought.
        recall_cost: Their cost: the calls, and their tokens in every later request up to the next cut.
        references: Identifiers in the calls of the response that were mentioned before.
        in_view: The number of references that the view contains, at least as a word.
        reached: The number that it contains or that a lookup brings back.
        evidence: The number that it shows as content: in a block as recorded, or in a passage of the log.
        evidence_reached: The number that it shows as content or that a lookup brings back.
        evidence_cost: The cost of recalls if every reference that is not shown as content had to be recalled.
        humans: The human's messages before the call.
        humans_kept: The number of them that are in the view, quoted in a record, or listed there by handle.
        planning: The policy's time in seconds.
        infeasible: The tokens that must be sent if they exceed the budget, or else 0. Such a call is counted as if the view that the policy
            started from had been sent.
        checked: Whether the view was checked against all laws.
        broken: The number of broken laws.
        digest: The first 16 hexadecimal digits of the SHA-256 of the view's canonical text, to compare a rebuilt view.
    """

    session: str
    policy: str
    stand_in: str
    call: int
    dialog: str
    seq: int
    at: float | None = None
    gap: float | None = None
    warm: bool = True
    tokens: int = 0
    system: int = 0
    tools: int = 0
    user: int = 0
    assistant: int = 0
    results: int = 0
    summaries: int = 0
    placeholders: int = 0
    left_out: int = 0
    mark: str = ""
    stable: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    cost: float = 0.0
    summary_cost: float = 0.0
    recalls: int = 0
    recall_tokens: int = 0
    recall_cost: float = 0.0
    references: int = 0
    in_view: int = 0
    reached: int = 0
    evidence: int = 0
    evidence_reached: int = 0
    evidence_cost: float = 0.0
    humans: int = 0
    humans_kept: int = 0
    planning: float = 0.0
    infeasible: int = 0
    checked: bool = False
    broken: int = 0
    digest: str = ""

    @property
    def total(self) -> float:
        """The total cost of the call."""
        return self.cost + self.summary_cost + self.recall_cost

    @property
    def composition(self) -> dict[str, int]:
        """The tokens by purpose, in the order of `PARTS`; they add up to `tokens`."""
        return {part: getattr(self, part) for part in PARTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow(_Row):
    """One session under one policy: sums over its calls, with the key (session, policy, stand_in).

    Attributes:
        session: The key of the session.
        policy: The policy's name, as the run lists it.
        stand_in: The replacement for a model's summaries.
        status: `ok`, or `failed`: then the rows end before the call at which the policy failed.
        error: The policy's error.
        calls: The number of replayed calls.
        infeasible: The number of calls that must send more than the budget.
        cuts: The number of commits of a smaller view.
        tokens: Tokens sent, all calls together.
        read: Tokens read from the cache.
        written: Input tokens not in the cache.
        stable: Leading tokens that each request shares with the next one.
        stable_of: Tokens of all requests that have a next one.
        output: Tokens written by the model.
        cost: The cost of the calls, without recalls and summaries.
        summary_cost: The cost of a model's summaries.
        recalls: Calls to fetch content that views lack.
        recall_cost: The cost of recalls.
        optimum: The bill of the best possible schedule of cuts; None if it was not computed.
        references: Identifiers that later calls referred to.
        in_view: References in the view.
        reached: References in the view or brought back by a lookup.
        evidence: References in the view as content.
        evidence_reached: References in the view as content or brought back.
        evidence_cost: The cost of recalls if every reference that is not in view as content had to be recalled.
        complete: Calls whose references were all in the view.
        referring: Calls with references.
        humans: The human's messages before each call, summed over calls.
        humans_kept: Those in the view, quoted in a record, or listed there by handle.
        planning: The policy's time in seconds, summed over calls.
        checked: Views that were checked against all laws.
        broken: Laws that they broke.
        violations: The first few broken laws, as text.
    """

    session: str
    policy: str
    stand_in: str
    status: str = "ok"
    error: str = ""
    calls: int = 0
    infeasible: int = 0
    cuts: int = 0
    tokens: int = 0
    read: int = 0
    written: int = 0
    stable: int = 0
    stable_of: int = 0
    output: int = 0
    cost: float = 0.0
    summary_cost: float = 0.0
    recalls: int = 0
    recall_cost: float = 0.0
    optimum: float | None = None
    references: int = 0
    in_view: int = 0
    reached: int = 0
    evidence: int = 0
    evidence_reached: int = 0
    evidence_cost: float = 0.0
    complete: int = 0
    referring: int = 0
    humans: int = 0
    humans_kept: int = 0
    planning: float = 0.0
    checked: int = 0
    broken: int = 0
    violations: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        """The bill: calls, summaries and recalls."""
        return self.cost + self.summary_cost + self.recall_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow(_Row):
    """One recorded session.

    Attributes:
        session: Its key in this run.
        run: The key of the run's settings. Results of other settings are not reused.
        source: The file.
        ordinal: Its number among the conversations of the file, from 0.
        name: Its name.
        format: The format of its file.
        dialogs: The number of its dialogs with model calls.
        messages: The number of recorded messages.
        calls: The number of model calls.
        tokens: The size of its largest whole view.
        started: When its first call was answered, in seconds since 1970 UTC; None if unknown.
        model: The last recorded model, or empty.
        summaries: The number of recorded summaries.
        problems: Its problems.
    """

    session: str
    run: str
    source: str
    ordinal: int = 0
    name: str = ""
    format: str = ""
    dialogs: int = 0
    messages: int = 0
    calls: int = 0
    tokens: int = 0
    started: float | None = None
    model: str = ""
    summaries: int = 0
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(_Row):
    """A figure of a policy over all sessions, with the interval that contains 95 of 100 resamplings of the sessions.

    Attributes:
        value: The figure; None if nothing could be measured.
        low: The lower end of its interval; None for a single session or without resampling.
        high: The upper end.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow(_Row):
    """One policy over all sessions.

    Attributes:
        policy: Its name.
        stand_in: The replacement for a model's summaries.
        status: `ok`, `failed` (in some session; the figures cover the others) or `invalid` (it broke a law before it was replayed).
        sessions: The number of sessions that it completed.
        failed: The number of sessions on which it failed.
        calls: The number of calls.
        infeasible: The number of calls that could not be sent.
        cuts: The number of cuts.
        scores: Figures by name, as `palaver.lab.scores.SCORES` defines them.
        best: Whether it is Pareto-optimal in bill and FRR: no other policy is at least as good in both and better in one.
        best_evidence: Whether it is Pareto-optimal in `evidence_bill` and `evidence`.
        differences: Its figures minus those of the run's default policy, over the sessions that both completed, by name
            (`palaver.lab.scores.COMPARED`); empty for the default policy, and if that is not in the run.
        broken: Laws that it broke.
    """

    policy: str
    stand_in: str
    status: str = "ok"
    sessions: int = 0
    failed: int = 0
    calls: int = 0
    infeasible: int = 0
    cuts: int = 0
    scores: Mapping[str, Score] = field(default_factory=dict)
    best: bool = False
    best_evidence: bool = False
    differences: Mapping[str, Score] = field(default_factory=dict)
    broken: int = 0

    @property
    def remark(self) -> str:
        """A remark on a policy that failed or is invalid: the sessions that its figures do not cover."""
        if self.status == "failed":
            return f"failed on {self.failed:,} of {self.sessions + self.failed:,}"
        return "" if self.status == "ok" else self.status


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow(_Row):
    """One policy over some of the sessions.

    Attributes:
        by: What the sessions of the group have in common: `tool` or `length`.
        name: The format of their files, or the range of their length in tokens.
        policy: The policy's name.
        stand_in: The replacement for a model's summaries.
        sessions: The number of sessions of the group that the policy completed.
        scores: Figures by name (`palaver.lab.scores.COMPARED`).
        differences: Its figures minus those of the run's default policy, as in a PolicyRow.
    """

    by: str
    name: str
    policy: str
    stand_in: str
    sessions: int = 0
    scores: Mapping[str, Score] = field(default_factory=dict)
    differences: Mapping[str, Score] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRun(_Row):
    """The settings of a run, with their assumptions.

    Attributes:
        key: A digest of everything below that changes a figure.
        sources: The files and folders that were named.
        policies: The policies, in the caller's order.
        stand_ins: The replacements for a model's summaries: `fold`, `recorded`, `empty`, `oracle`.
        model: The model whose tokens, prices and window count.
        window: Its window in tokens, or None for its own.
        budget: The budget of a request under every policy, or None if each divides the window in its own way.
        prices: The price sheet, as its attributes.
        currency: `USD`, or `input tokens` if the model has no known price.
        assumptions: The assumptions, one sentence for each.
        resamples: The number of resamplings of sessions.
        version: The version of palaver.
        schema: The version of this schema.
        code: The digest of palaver's code. Figures of runs with different digests are not comparable.
        own: The digest of the file of each user's own policy.
        weight: How sessions count: `session`, `file` or `tokens`.
    """

    key: str
    sources: tuple[str, ...]
    policies: tuple[str, ...]
    stand_ins: tuple[str, ...]
    model: str
    window: int | None
    budget: int | None
    prices: Mapping[str, Any]
    currency: str
    assumptions: tuple[str, ...]
    resamples: int = 1_000
    version: str = ""
    schema: int = SCHEMA
    code: str = ""
    own: Mapping[str, str] = field(default_factory=dict)
    weight: str = "session"


FIGURES: Mapping[str, str] = {"bill": "bill", "tokens": "tokens", "frr": "in view", "evidence": "evidence"}
"""The scores of a printed table, with their titles."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Table(_Row):
    """All policies over all sessions.

    Attributes:
        run: The run.
        sessions: The number of sessions.
        rows: The policies, those on the front first, then by their bill; invalid ones last.
        problems: The problems of files, sessions and policies.
        keys: The keys of the sessions, in the order of their files.
        groups: The policies over the sessions of each tool and of each length, in the order of `rows`.
    """

    run: LabRun
    sessions: int
    rows: tuple[PolicyRow, ...]
    problems: tuple[Problem, ...] = ()
    keys: tuple[str, ...] = ()
    groups: tuple[GroupRow, ...] = ()

    def __repr__(self) -> str:
        """Return the bill and the evidence of each policy as a table of text."""
        lines = [self._titles, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = (map(str.ljust, line, widths) for line in lines)
        return "\n".join([self._heading, *("  ".join(cells).rstrip() for cells in padded)])

    def _repr_html_(self) -> str:
        """Return the bill and the evidence of each policy, for a notebook."""
        return html_table(self._heading, self._titles, self._cells())

    @property
    def _heading(self) -> str:
        return f"{counted(self.sessions, 'session')}, {self.run.model}, bills in {self.run.currency} a session"

    @property
    def _titles(self) -> tuple[str, ...]:
        return ("policy", "summaries", *FIGURES.values(), "cuts", "")

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (row.policy, row.stand_in, *(_shown(row.scores.get(name)) for name in FIGURES), f"{row.cuts:,}", row.remark)
            for row in self.rows
        ]


def _shown(score: Score | None) -> str:
    return "" if score is None or score.value is None else f"{score.value:,.4g}"
