"""What the lab finds, as values: the schema of its results.

A run is a folder::

    run.json                     the Run: what was asked, with which prices and assumptions
    sessions/<key>.jsonl         one session: a SessionRow, then for each policy a ReplayRow and the CallRows of it
    files/<digest>.json          a source file that is done: the keys of its sessions, and its problems
    table.json                   the Table: each policy over all sessions, with intervals

Every line of a session's file is a JSON object whose `record` says which row it is (`session`, `replay`, `call`, `end`), and whose other
keys are the attributes here. Attributes are only ever added; `SCHEMA` grows when one changes its meaning. Tokens are of the run's model;
money is in the run's currency; times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

__all__ = [
    "PARTS",
    "SCHEMA",
    "CallRow",
    "LabRun",
    "PolicyRow",
    "Problem",
    "ReplayRow",
    "Score",
    "SessionRow",
    "Table",
]

SCHEMA = 3
"""The version of the meaning of the results. 3: human messages are counted; views are committed as by an agent."""

PARTS = ("system", "tools", "user", "assistant", "results", "summaries", "placeholders")
"""The attributes of a CallRow into which its tokens are divided, in the order in which they are best stacked."""


class _Row:
    """What can be written as JSON values and read again; keys of a newer version are passed over."""

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as JSON values."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]  # every row is a dataclass

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        return cls(**cls._known(values))

    @classmethod
    def _known(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what this version knows of values."""
        known = {each.name for each in fields(cls)}  # type: ignore[arg-type]  # the same
        return {name: value for name, value in values.items() if name in known}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(_Row):
    """Something that a reader of the results must know: what is missing, what was assumed, what went wrong.

    Attributes:
        kind: `unreadable`, `damaged`, `empty`, `twice`, `no timestamps`, `no usage`, `no model`, `no price`, `policy failed`, `invalid policy`, `violation`.
        text: A sentence: what it is, and what was done about it.
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
class CallRow(_Row):
    """One recorded model call under one policy. (session, policy, stand_in, call) names it.

    Attributes:
        session: The key of the session.
        policy: The policy's name, as the run lists it.
        stand_in: What stood for a model's summaries.
        call: The number of the call in the session, from 1; the same for every policy.
        dialog: The dialog in which it was made.
        seq: The number of the dialog's last own entry that it saw, or -1.
        at: When the answer was recorded, in seconds since 1970 UTC; None where that is not known.
        gap: Seconds since the answer before it in the same dialog; None for the first one, or where that is not known.
        warm: Whether the provider's cache of the call before was still there.
        tokens: The size of the request. The parts (`PARTS`) add up to it.
        system: Instructions, and what stands around a request.
        tools: Tool schemas.
        user: Words of the user.
        assistant: The model's words, thinking and calls.
        results: Tool results as they were recorded.
        summaries: Records and summaries, and files brought back.
        placeholders: Blocks shown in another form, and notices.
        exchanges: How many exchanges the view shows.
        left_out: How many recorded messages the view leaves out because it had to become smaller.
        changed: How many blocks it shows in another form.
        mark: What the policy did: empty where the request goes on from the one before; `cut` where the view is smaller than it would be
            and was written down, so that later views begin from it; `edit` where something changed and was not worth writing down.
        stable: With how many tokens it begins that the request before had: there the provider's prefix ends.
        read: Tokens read from the provider's cache.
        written: Tokens read anew (and, where the provider charges for it, written to the cache).
        output: Tokens that the model wrote.
        cost: What the call cost, without recalls and summaries.
        summary_cost: What the model's summary that a stand-in stands for would have cost.
        recalls: How many calls were needed to get at what the next response refers to and the view does not hold: lookups, those that find
            something else included, and what then had to be done again.
        refetched: Of how many exchanges something had to be got as it was got at first, because no lookup finds it.
        recall_tokens: The tokens that they brought.
        recall_cost: What they cost: each a call of its own and its tokens, then their place in every later request up to the next cut.
        references: Identifiers in the calls of the response that had been said before.
        in_view: How many of them the view holds, if only as a word.
        reached: How many of them it holds or a lookup brings back.
        evidence: How many of them it holds as content: in a block as the log has it, or in a passage of the log.
        evidence_reached: How many of them it holds as content or a lookup brings back.
        evidence_cost: What recalls would cost if a word were not enough: if all that is not there as content had to be recalled.
        humans: The human's messages before the call.
        humans_kept: How many of them are in the view, quoted in a record, or listed there by handle.
        planning: Seconds that the policy took.
        infeasible: The tokens that had to be sent where they were more than the budget allows; else 0. Such a call is counted as if it
            had been sent with what the policy had to begin with.
        checked: Whether the view was held to all laws.
        broken: How many laws it broke.
        digest: The first 16 hexadecimal digits of the SHA-256 of the view's canonical text: the view can be made again and compared.
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
    exchanges: int = 0
    left_out: int = 0
    changed: int = 0
    mark: str = ""
    stable: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    cost: float = 0.0
    summary_cost: float = 0.0
    recalls: int = 0
    refetched: int = 0
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
        """What the call cost in all."""
        return self.cost + self.summary_cost + self.recall_cost

    @property
    def composition(self) -> dict[str, int]:
        """The tokens by what they are for, in the order of `PARTS`; they add up to `tokens`."""
        return {part: getattr(self, part) for part in PARTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow(_Row):
    """One session under one policy: sums over its calls. (session, policy, stand_in) names it.

    Attributes:
        session: The key of the session.
        policy: The policy's name, as the run lists it.
        stand_in: What stood for a model's summaries.
        status: `ok`, or `failed`: then the rows end with the call before the one at which the policy failed.
        error: What it failed with.
        calls: How many calls were replayed.
        infeasible: For how many of them what must be sent was larger than the budget.
        cuts: How often the view was made smaller and written down.
        edits: How often it was changed otherwise.
        tokens: Tokens sent, all calls together.
        largest: The largest request.
        read: Tokens read from the cache.
        written: Tokens read anew.
        stable: Tokens of requests that the next one began with.
        stable_of: Tokens of all requests that had a next one.
        output: Tokens written by the model.
        cost: What the calls cost, without recalls and summaries.
        summary_cost: What a model's summaries would have cost.
        recalls: Calls to get at what views do not hold.
        refetched: Exchanges of which something had to be got again, because no lookup finds it.
        recall_cost: What they cost.
        optimum: The bill of the best possible schedule of cuts, found afterwards; None where it was not computed.
        references: Identifiers that later calls referred to.
        in_view: Of those, in the view.
        reached: Of those, in the view or brought back by a lookup.
        evidence: Of those, in the view as content.
        evidence_reached: Of those, in the view as content or brought back.
        evidence_cost: What recalls would cost if all that is not in view as content had to be recalled.
        complete: Calls with references, all of which were in the view.
        referring: Calls with references.
        humans: The human's messages before each call, all calls together.
        humans_kept: Of those, in the view, quoted in a record, or listed there by handle.
        planning: Seconds that the policy took, all calls together.
        slowest: Seconds that its slowest plan took.
        checked: Views that were held to all laws.
        broken: Laws that they broke.
        violations: What was broken, in words; the first few.
    """

    session: str
    policy: str
    stand_in: str
    status: str = "ok"
    error: str = ""
    calls: int = 0
    infeasible: int = 0
    cuts: int = 0
    edits: int = 0
    tokens: int = 0
    largest: int = 0
    read: int = 0
    written: int = 0
    stable: int = 0
    stable_of: int = 0
    output: int = 0
    cost: float = 0.0
    summary_cost: float = 0.0
    recalls: int = 0
    refetched: int = 0
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
    slowest: float = 0.0
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
        run: The key of the run's settings: results of other settings are not taken up.
        source: The file.
        ordinal: Its number among the conversations of the file, from 0.
        name: Its name.
        format: The format it was read in.
        dialogs: How many of its dialogs have model calls.
        messages: Recorded messages.
        calls: Model calls.
        tokens: The size of its largest whole view.
        started: When its first call was answered, in seconds since 1970 UTC; None where that is not known.
        model: The model that was recorded last, or empty.
        summaries: Summaries that were recorded in it.
        problems: What is to be known about it.
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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        given = cls._known(values)
        given["problems"] = tuple(Problem.from_dict(one) for one in given.get("problems", ()))
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score(_Row):
    """A figure of a policy over all sessions, with the interval that holds 95 of 100 resamplings of the sessions.

    Attributes:
        value: The figure; None where nothing could be measured.
        low: The lower end of its interval; None where there is none: of one session, or without resampling.
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
        stand_in: What stood for a model's summaries.
        status: `ok`, `failed` (in some session; the figures are of the others) or `invalid` (it broke a law before it was replayed).
        sessions: How many sessions it was replayed on to their end.
        failed: On how many it failed.
        calls: How many calls.
        infeasible: How many of them could not be sent.
        cuts: How often a view was cut.
        scores: Figures by name (`palaver.lab.scores.SCORES` says what each is).
        best: Whether it is on the front: no other policy has a bill as low and an in-view recall as high, and one of them better.
        best_evidence: Whether it is on the other front, on which a word is not enough: of `evidence_bill` and `evidence`.
        differences: Its figures less those of the run's default policy, over the sessions that both came to the end of, by name
            (`palaver.lab.scores.COMPARED`); empty for the default policy itself, and where it is not in the run.
        beats: In what share of resamplings of the sessions it beats the default policy in bill and in-view recall; None where there are none.
        beats_evidence: The same in `evidence_bill` and `evidence`.
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
    beats: float | None = None
    beats_evidence: float | None = None
    broken: int = 0

    @property
    def remark(self) -> str:
        """What a reader must know beside its name, where it is not in order: of which sessions its figures are not."""
        if self.status == "failed":
            return f"failed on {self.failed:,} of {self.sessions + self.failed:,}"
        return "" if self.status == "ok" else self.status

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        given = cls._known(values)
        for each in ("scores", "differences"):
            given[each] = {name: Score.from_dict(one) for name, one in given.get(each, {}).items()}
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRun(_Row):
    """What was asked.

    Attributes:
        key: Hexadecimal digits that stand for everything below that changes a figure.
        sources: The files and folders that were named.
        policies: The policies, in the order in which they were named.
        stand_ins: What stands for a model's summaries: `fold`, `recorded`, `empty`, `oracle`.
        model: The model whose tokens, prices and window count.
        window: Its window in tokens, or None for its own.
        budget: The tokens that a request may occupy under every policy, or None where each divides the window in its own way.
        prices: The price sheet, as its attributes.
        currency: `USD`, or `input tokens` where the model has no known price.
        assumptions: What was assumed, a sentence each.
        seed: What the resampling of sessions begins with.
        resamples: How often sessions are resampled.
        version: The version of palaver.
        schema: The version of this schema.
        code: The digest of palaver's code: of two runs with different ones the figures are not of the same thing.
        own: Of each policy that is a user's own, the digest of the file it comes from.
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
    seed: int = 0
    resamples: int = 1_000
    version: str = ""
    schema: int = SCHEMA
    code: str = ""
    own: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in cls._known(values).items()
        }
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(_Row):
    """All policies over all sessions.

    Attributes:
        run: What was asked.
        sessions: How many sessions there were.
        rows: The policies, those on the front first, then by their bill; invalid ones last.
        problems: What a reader must know, of files, sessions and policies.
        keys: The keys of the sessions, in the order of their files.
    """

    run: LabRun
    sessions: int
    rows: tuple[PolicyRow, ...]
    problems: tuple[Problem, ...] = ()
    keys: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave."""
        return cls(
            run=LabRun.from_dict(values["run"]),
            sessions=values["sessions"],
            rows=tuple(PolicyRow.from_dict(one) for one in values["rows"]),
            problems=tuple(Problem.from_dict(one) for one in values.get("problems", ())),
            keys=tuple(values.get("keys", ())),
        )
