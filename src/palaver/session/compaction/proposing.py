"""Proposing a compaction: what code makes of the view for what is wanted, a summary beside it where one is asked for, and the preview of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from palaver.context import Composed, Summarized, Summarizer, summarized
from palaver.context.ground import asks
from palaver.context.placing import shaped
from palaver.context.summary import HEADINGS, INPUT_TOKENS, SECONDS, Breaker, Digested, digested, given
from palaver.context.triggers import MANUAL, Fired
from palaver.errors import InvalidInput
from palaver.log import Entry, Handle, Span
from palaver.session.calls.composing import BudgetLike, Composing, PolicyLike
from palaver.session.compaction.attempts import attempt_of, breaker_of
from palaver.session.compaction.planning import Made, by_code
from palaver.session.compaction.preview import CompactionPreview
from palaver.session.compaction.proving import noted, or_plain
from palaver.store.blocks import require_no_block
from palaver.store.protocol import Store
from palaver.tokens import model_info
from palaver.tools.aside import aside
from palaver.tools.portal import run_sync
from palaver.view import View, fold

__all__ = ["ASKED_FOR", "CompactionWish", "apropose", "propose"]

_OF_WINDOW = 0.75
"""The share of its model's window that a summariser reads at once, where nobody says: the rest is for its answer, and for what counting gets
wrong (dynamiq, SummarizationConfig: token_budget_ratio)."""

_ANY = 2**31
"""What somebody can read at once who has the summary already."""

ASKED_FOR = Fired(MANUAL, "")
"""What is recorded of a compaction that somebody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionWish:
    """What is wanted of a compaction.

    Attributes:
        policy: The policy; None for `palaver`.
        focus: What to dwell on: exchanges that hold one of its words stay, as far as there is room, those with the rarest words before
            others, and a summariser is told.
        budget: What one request may occupy then; None for the policy's own, and what that cuts down to, where it has a limit of its
            own (a preset of another system); else for half of what it occupies now, or the policy's own budget where that is less.
        summarizer: What summarises beside the record; None for nothing.
        model: The model whose tokens count; the one in force when empty.
        trigger: Why it is made.
        seconds: After so many seconds an answer of the summariser is given up.
        input_tokens: What the summariser can read at once, in tokens; None for the share of its model's window that the policy says (three
            quarters, unless it says so), and for 100,000 where the window is not known.
        running: The running summary, where the caller keeps it himself; else the one in the view.
        summary: A summary that is there already: that of a preview, or one of your own. It is held to the same as that of a summariser.
    """

    policy: PolicyLike | None = None
    focus: str = ""
    budget: BudgetLike | None = None
    summarizer: Summarizer | None = None
    model: str = ""
    trigger: Fired = ASKED_FOR
    seconds: float = SECONDS
    input_tokens: int | None = None
    running: str | None = None
    summary: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no text, and two summaries at once.

        Raises:
            TypeError: Focus, running summary or summary is no text.
            InvalidInput: A summary is given, and somebody to make one.
        """
        for name, text in (("focus", self.focus), ("running", self.running or ""), ("summary", self.summary or "")):
            if not isinstance(text, str):
                raise TypeError(f"{name} is a str, not a {type(text).__name__}.")
        if self.summary is not None and self.summarizer is not None:
            raise InvalidInput("A summary and a summariser are given.", hint="Give the one or the other.")

    @property
    def by(self) -> Summarizer | None:
        """What gives the summary; None where none is wanted."""
        return self.summarizer if self.summary is None else given(self.summary)


class Compactable(Protocol):
    """What a compaction needs of a dialog."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """The entries that it holds."""
        ...

    @property
    def store(self) -> Store:
        """Where they lie."""
        ...

    def commit(self, what: Composed, *, attempt: Mapping[str, Any] | None) -> Handle:
        """Write a smaller view down."""
        ...

    def annotate(self, entry: Entry) -> Handle:
        """Add an entry beside the turn."""
        ...


def propose(dialog: Compactable, ready: Composing, wish: CompactionWish) -> CompactionPreview:
    """Preview a compaction of what is ready for it; without a summariser nothing waits, so that no loop is begun."""
    if wish.by is not None:
        require_no_block(dialog.store, "A compaction with a summariser")
        return run_sync(partial(apropose, dialog, ready, wish))
    return _preview(dialog, ready, wish, _by_code(ready, wish), None, Breaker())


async def apropose(dialog: Compactable, ready: Composing, wish: CompactionWish) -> CompactionPreview:
    """Preview a compaction of what is ready for it, with a summary where one is asked for."""
    made = await aside(partial(_by_code, ready, wish))
    if wish.by is None:
        return _preview(dialog, ready, wish, made, None, Breaker())
    plain = made.composed
    asked = await aside(partial(_asked, dialog, ready, wish, wish.by, plain))
    made, digests = await _with_digests(ready, wish, made, asked)
    summary = await _by_model(ready, wish.by, wish, made, asked)
    if digests is not None:
        summary = summary.with_digests(digests)
    held = await aside(partial(or_plain, dialog.store, ready.view, summary, plain, wish.running, asked.breaker))
    return _preview(dialog, ready, wish, made, held, asked.breaker)


async def _with_digests(
    ready: Composing, wish: CompactionWish, made: Made, asked: _Asked
) -> tuple[Made, Digested | None]:
    """Have the summariser say what outputs say that the policy would rather have told than shown in part."""
    beyond = _settled(ready.manager, "digest_beyond")
    if beyond is None or wish.summarizer is None:
        return made, None
    done = await digested(
        ready.view,
        made.composed,
        wish.summarizer,
        ready.ledger,
        beyond=beyond,
        input_tokens=asked.input_tokens,
        breaker=asked.breaker,
        seconds=wish.seconds,
    )
    return replace(made, composed=done.composed), done


def _preview(
    dialog: Compactable,
    ready: Composing,
    wish: CompactionWish,
    made: Made,
    summary: Summarized | None,
    breaker: Breaker,
) -> CompactionPreview:
    return CompactionPreview(
        before=ready.view,
        composed=made.composed if summary is None else summary.composed,
        summarized=summary,
        focus=wish.focus,
        found=len(made.focused.found),
        missing=made.focused.missing,
        kept=made.kept,
        attempt=attempt_of(wish.trigger, wish.focus, summary),
        breaker=breaker,
        commit=lambda composed, attempt: dialog.commit(composed, attempt=attempt),
        note=partial(noted, dialog.store, dialog.annotate, ready.view),
    )


# --- by code, and by a model --------------------------------------------------------------------------------------------------------


def _by_code(ready: Composing, wish: CompactionWish) -> Made:
    return by_code(ready, wish.focus, given=wish.budget is not None, summarised=wish.by is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """How a summariser is asked, as policy, wish and log say.

    Attributes:
        headings: The sections.
        input_tokens: What it can read at once.
        whole: The view of all that was ever said, where the policy wants a summary of that; None where one goes on from the one before.
        breaker: The breaker as the attempts before left it.
    """

    headings: tuple[str, ...]
    input_tokens: int
    whole: View | None
    breaker: Breaker


def _asked(dialog: Compactable, ready: Composing, wish: CompactionWish, by: Summarizer, composed: Composed) -> _Asked:
    view, manager = ready.view, ready.manager
    split = _settled(manager, "split")
    anew = _settled(manager, "incremental") is False
    return _Asked(
        headings=(_settled(manager, "headings") or HEADINGS) + ((split,) if split and _splits(view, composed) else ()),
        input_tokens=_input_tokens(ready, wish, by),
        whole=fold(dialog.store, view.dialog_id, view.at, whole=True) if anew else None,
        breaker=_breaker(dialog, wish),
    )


def _splits(view: View, composed: Composed) -> bool:
    """Tell whether a plan leaves out the beginning of a turn whose end stays."""
    exchanges = shaped(view, composed.limits).exchanges
    last = max((drop.index for drop in composed.plan.drops), default=-1)
    begun = max((index for index in range(last + 1) if asks(exchanges[index])), default=-1)
    inside = last + 1 < len(exchanges) and not asks(exchanges[last + 1])
    return inside and 0 <= begun < last


def _settled(manager: object, word: str) -> Any:  # noqa: ANN401 - what a policy of anybody's says
    """Give what a policy says of summaries: itself, its configuration, or the preset that it schedules; None where none of them does."""
    for who in (manager, getattr(manager, "policy", None)):
        for what in (who, getattr(who, "config", None)):
            if (said := getattr(what, word, None)) is not None:
                return said
    return None


def _input_tokens(ready: Composing, wish: CompactionWish, by: Summarizer) -> int:
    """Give what a summariser can read at once: what is wished, else a share of its model's window; of the agent's, where only the policy knows."""
    if wish.input_tokens is not None or wish.summary is not None:
        return _ANY if wish.input_tokens is None else wish.input_tokens
    share, said = _settled(ready.manager, "token_budget_ratio"), getattr(by, "window", 0)
    window = said if isinstance(said, int) else 0  # it is the caller's, and may say anything
    if share is not None and not window:
        info = model_info(ready.model)
        window = info.max_input if info.known else INPUT_TOKENS
    return int(window * (_OF_WINDOW if share is None else share)) if window else INPUT_TOKENS


def _breaker(dialog: Compactable, wish: CompactionWish) -> Breaker:
    """Give the breaker as the attempts before left it; somebody who wants it is answered, however often it failed."""
    found = breaker_of(dialog.store, dialog.spans)
    return Breaker(failures=found.failures) if wish.trigger.trigger == MANUAL else found


async def _by_model(
    ready: Composing, summarizer: Summarizer, wish: CompactionWish, made: Made, asked: _Asked
) -> Summarized:
    """Have a summariser put its words beside the record. Whatever goes wrong, the plan stands."""
    return await summarized(
        ready.view,
        made.composed,
        summarizer,
        made.target,
        ready.ledger,
        headings=asked.headings,
        focus=wish.focus,
        running=wish.running,
        incremental=asked.whole is None,
        whole=asked.whole,
        input_tokens=asked.input_tokens,
        breaker=asked.breaker,
        seconds=wish.seconds,
    )
