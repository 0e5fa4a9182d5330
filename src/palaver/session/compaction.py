"""Compaction: a smaller view, previewed, then committed as one entry from which later views start. The log keeps everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from palaver import context, tokens, tools, wire
from palaver.context.policy import PolicyLike
from palaver.errors import Conflict, InfeasibleBudget, InvalidInput
from palaver.log import ATTEMPT, Compaction, Custom, Entry, Handle, Header, entry_at
from palaver.session.opened import OpenDialog
from palaver.tokens.budget import BudgetLike
from palaver.view import Exchange, Omission, View, checkpoint, fold, header_at, held, in_force

__all__ = ["ATTEMPT", "BudgetLike", "CompactionPreview", "Compactions", "PolicyLike"]

_NO_LIMIT = 2**53
"""The limit of a request where nothing has one: not the caller, no model's window, no window of the policy."""

_SUMMARY_SHARE = 4
"""A summary has at most a quarter of the limit (`palaver.context.summary`), which is kept free for it."""


@dataclass(frozen=True, kw_only=True)
class CompactionPreview:
    """A compaction that was previewed: nothing is written before `approve` or `reject`.

    Attributes:
        before: The view as it is.
        composed: The view as it would be, and the plan that leads to it.
        attempt: The record of how it came about: trigger, focus, and the summarizer's usage.
    """

    before: View
    composed: context.Composed
    attempt: Mapping[str, Any] = field(default_factory=dict)
    _of: Compactions = field(repr=False, compare=False)

    def __repr__(self) -> str:
        sizes = f"{self.tokens_before:,} to {self.tokens_after:,} tokens"
        return f"<CompactionPreview of dialog {self.before.dialog_id[:12]}: {sizes}, {len(self.omitted)} omitted>"

    @property
    def tokens_before(self) -> int:
        """The size of the view as it is, in tokens."""
        return self.composed.before.total

    @property
    def tokens_after(self) -> int:
        """The size of the view as it would be."""
        return self.composed.after.total

    @property
    def worthwhile(self) -> bool:
        """Whether the view would become smaller."""
        return self.composed.view is not self.before and self.tokens_after < self.tokens_before

    @property
    def inserted(self) -> tuple[str, ...]:
        """The texts that would replace what leaves: summary, record, notice."""
        known = {text_of(exchange) for exchange in self.before.exchanges if exchange.derived}
        texts = (text_of(exchange) for exchange in self.composed.view.exchanges if exchange.derived)
        return tuple(text for text in texts if text not in known)

    @property
    def omitted(self) -> tuple[Omission, ...]:
        """What would be left out that is shown now."""
        known = set(self.before.omissions)
        return tuple(gone for gone in self.composed.view.omissions if gone not in known)

    @property
    def summary(self) -> str:
        """The running summary as it would be, the new one or an older one that stays; empty if there is none."""
        return self.composed.view.summary

    @property
    def summary_failed(self) -> str:
        """Why there is no summary although a summarizer was asked; else empty."""
        return str((self.attempt.get("summary") or {}).get("failed", ""))

    def approve(self) -> Handle:
        """Commit it: one entry of the log, from which later views start. `undo` reverts it.

        Raises:
            Conflict: Another compaction was committed meanwhile, or part of the dialog was erased.
            InvalidInput: The view would not become smaller.
        """
        return self._of.commit(self.composed, attempt=self.attempt)

    def reject(self, reason: str = "") -> Handle | None:
        """Leave the view as it is. Where a summarizer was asked, its cost is recorded; the entry is returned."""
        if "summary" not in self.attempt:
            return None
        return self._of.record_rejected({**self.attempt, "rejected": reason})

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "policy": self.composed.by,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "worthwhile": self.worthwhile,
            "omitted": [
                {"place": gone.place, "reason": gone.reason.value, "messages": gone.messages, "bytes": gone.size}
                for gone in self.omitted
            ],
            "inserted": list(self.inserted),
            "summary": self.summary,
            "attempt": dict(self.attempt),
        }


def text_of(exchange: Exchange) -> str:
    """Return the text of a derived exchange."""
    return "\n".join(str(getattr(block.content, "content", "")) for block in exchange.blocks())


class Compactions:
    """The compactions of a dialog: previewed, committed, undone and redone."""

    def __init__(self, dialog: OpenDialog) -> None:
        """Create the compactions; nothing is read yet."""
        self._dialog = dialog
        self._store = dialog.store
        self._meters: dict[str, context.Meter] = {}

    # --- composing --------------------------------------------------------------------------------------------------------------------

    def compose(
        self,
        asked: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        *,
        model: str = "",
        view: View | None = None,
        profile: wire.Profile | None = None,
    ) -> context.Composed:
        """Return what a policy makes of the view: the smaller view, the plan, and both sizes. Nothing is written.

        Args:
            asked: The policy. Default: `palaver`.
            budget: The size of one request. Default: the policy's own budget; a plain context manager and a policy that cuts nothing need none. A number is
                the limit itself; with a model, at most its window.
            model: The model that counts tokens. Default: the policy's, or else the one in force.
            view: A view of this dialog to start from, in place of everything.
            profile: What requests are for, where it is known: a provider's compaction is of use to its maker alone.

        Raises:
            InfeasibleBudget: What must be sent is larger than the budget.
            NotFound: There is no policy of this name.
            PolicyFailed: The policy raised.
            InvalidInput: Neither the policy nor the caller has a budget.
        """
        seen = self._dialog.view() if view is None else view
        manager, counting = self._manager(asked, model, seen)
        if isinstance(manager, context.Policy) and profile is not None:
            manager = manager.for_profile(profile)
        needed = isinstance(manager, context.Policy) and manager.cuts
        room = self._budget(manager, budget, model, counting, needed=needed)
        return context.compose(seen, manager, room, self.meter(counting))

    def _manager(self, asked: PolicyLike | None, model: str, seen: View) -> tuple[context.ContextManager, str]:
        chosen = context.DEFAULT_POLICY if asked is None else asked
        manager = context.policy(chosen, model, runtime=self._dialog.session.runtime)
        if manager is None:
            raise InvalidInput("There is no policy to compose with.", hint="Leave the policy out to see everything.")
        return manager, model or str(getattr(manager, "model_name", "")) or seen.model

    def _budget(
        self, manager: context.ContextManager, budget: BudgetLike | None, model: str, counting: str, *, needed: bool
    ) -> tokens.Budget:
        """Return the caller's budget, or the policy's own; where neither is known and none is needed, one without a limit."""
        if budget is not None:
            return tokens.Budget.parse(budget, (model if isinstance(budget, int) else counting) or None)
        if isinstance(manager, context.Policy) and (needed or counting or manager.max_tokens):
            return manager.budget_for(counting)
        return tokens.Budget.of_input(_NO_LIMIT)

    def meter(self, model: str = "") -> context.Meter:
        """Return what counts tokens for a model; it remembers the sizes of exchanges."""
        if model not in self._meters:
            # one model at a time: a meter remembers the sizes of all exchanges
            self._meters = {model: context.Meter(tokens.counter(model))}
        return self._meters[model]

    def preview(
        self,
        asked: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        *,
        model: str = "",
        trigger: str = "manual",
    ) -> CompactionPreview:
        """Preview a compaction, at any time. A view that fits is made smaller, too, as if it had just exceeded the limit, unless the policy's tail has all of it.

        Args:
            asked: The policy. Default: `palaver`.
            budget: The size of one request. Default: the policy's own budget on the model.
            model: As for `compose`.
            trigger: Why it is made; recorded with it.

        Raises:
            InfeasibleBudget: The part that every view must show is larger than the budget.
            NotFound: There is no policy of this name.
        """
        return self._planned(asked, budget, model, trigger)[0]

    async def apreview(  # noqa: PLR0913 - the arguments of `preview` and those of a summary
        self,
        summarizer: context.Summarizer,
        asked: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        *,
        model: str = "",
        trigger: str = "manual",
        focus: str = "",
        anew: bool = False,
    ) -> CompactionPreview:
        """Preview a compaction with a summary and the record; with the record alone if the summarizer fails.

        Args:
            summarizer: Writes the summary; the policy says under which headings.
            asked: As for `preview`.
            budget: As for `preview`.
            model: As for `preview`.
            trigger: As for `preview`.
            focus: What the summarizer should describe in detail.
            anew: Whether to summarise again content that was summarised before.

        Raises:
            InfeasibleBudget: The part that every view must show is larger than the budget.
            NotFound: There is no policy of this name.
        """
        preview, manager, room, meter = await tools.run_in_worker(
            partial(self._planned, asked, budget, model, trigger, summary=True)
        )
        headings = getattr(manager, "headings", ()) or context.HEADINGS
        anew = anew or not getattr(manager, "incremental", True)
        done = await context.summarize(
            preview.before, preview.composed, summarizer, room, meter, headings=headings, focus=focus, anew=anew
        )
        attempt = {**preview.attempt, **({"focus": focus} if focus else {}), "summary": done.account()}
        return replace(preview, composed=done.composed, attempt=attempt)

    def _planned(
        self, asked: PolicyLike | None, budget: BudgetLike | None, model: str, trigger: str, *, summary: bool = False
    ) -> tuple[CompactionPreview, context.ContextManager, tokens.Budget, context.Meter]:
        view = self._dialog.view()
        manager, counting = self._manager(asked, model, view)
        if isinstance(manager, context.Policy) and manager.asks_provider:
            raise InvalidInput(
                f"The policy {manager.name!r} asks the provider to compact, so there is nothing to preview.",
                hint="Name another policy. With this one, requests begin with the provider's block once it is in the log.",
            )
        room, meter = self._budget(manager, budget, model, counting, needed=False), self.meter(counting)
        try:
            free = room.limit // _SUMMARY_SHARE if summary else 0  # the summary is added to what the policy leaves
            composed = context.compose(view, manager, room.with_limit(room.limit - free), meter, manual=True)
        except InfeasibleBudget:  # a view without room for a summary is better than none
            composed = context.compose(view, manager, room, meter, manual=True)
        made = CompactionPreview(before=view, composed=composed, attempt={"trigger": trigger}, _of=self)
        most = max(min(room.limit, made.tokens_before), 1)  # so that a summary leaves the view smaller
        return made, manager, room.with_limit(most), meter

    # --- committing -------------------------------------------------------------------------------------------------------------------

    def commit(
        self, made: context.Composed | View, *, model: str = "", attempt: Mapping[str, Any] | None = None
    ) -> Handle:
        """Write a smaller view as one entry, from which later views start.

        Args:
            made: What `compose` returned, or a view made from this dialog's with a plan.
            model: The model that counts the tokens of a view. Default: the one in force.
            attempt: How it came about, stored with the entry; JSON values.

        Raises:
            Conflict: Another compaction was committed since the view was made, or part of the dialog was erased.
            InvalidInput: It is a view of another dialog, or not smaller.
        """
        view = made.view if isinstance(made, context.Composed) else made
        if view.dialog_id != self._dialog.dialog_id:
            raise InvalidInput(f"This is a view of dialog {view.dialog_id}, not of {self._dialog.dialog_id}.")
        if isinstance(made, context.Composed):
            before, after = made.before.total, made.after.total
        else:
            meter = self.meter(model or view.model)
            before, after = meter.view(fold(self._store, view.dialog_id, view.at)).total, meter.view(view).total
        if after >= before:
            raise InvalidInput(
                f"The view would have {after:,} tokens instead of {before:,}.", hint="Commit a view that is smaller."
            )
        by = view.policies[-1] if view.policies else ""
        return self.write(view, policy=by, before=before, after=after, attempt=attempt)

    def write(
        self,
        view: View,
        *,
        policy: str,
        before: int,
        after: int = 0,
        **kept: object,
    ) -> Handle:
        """Write a view as a compaction entry, without comparing sizes.

        Args:
            view: The view.
            policy: Who made it.
            before: The size of the view that it replaces, in tokens.
            after: Its own size, in tokens.
            kept: Further fields of the entry; JSON values.

        Raises:
            Conflict: As for `commit`.
        """
        dialog_id, base = self._dialog.dialog_id, view.at
        spans = held(self._store, dialog_id, base)
        entry = checkpoint(view, spans, policy=policy, tokens_before=before, tokens_after=after)
        said = {name: value for name, value in kept.items() if value is not None}
        if said:
            entry = Compaction.model_validate({**dict(entry), **said})
        return self._dialog.annotate(entry, lambda newest: self._require_current(newest, base))

    def record_rejected(self, attempt: Mapping[str, Any]) -> Handle:
        """Write how a rejected compaction came about, outside the turn."""
        return self._dialog.annotate(Custom(custom_type=ATTEMPT, data=attempt))

    def _require_current(self, newest: Header, at: int) -> None:
        """Refuse a compaction of a view in which something changed before the newest entry."""
        dialog_id = self._dialog.dialog_id
        self._dialog.require_unerased(at, "the view")
        known = header_at(self._dialog.recent, dialog_id, at).view_base
        if newest.view_base != known:
            why = f"A compaction of dialog {dialog_id} was committed or undone meanwhile. Nothing was written."
            raise Conflict(
                dialog_id, known, newest.view_base, why=why, hint="Reload the dialog, and make the view again."
            )

    # --- undoing ----------------------------------------------------------------------------------------------------------------------

    def undo(self) -> Handle:
        """Undo the newest compaction in force by writing an entry: its omissions are shown again.

        Compactions are a stack: a second undo reverts the one before. Newer messages stay.

        Raises:
            Conflict: Another compaction was committed since the last `reload`.
            InvalidInput: No compaction of this dialog is in force, or the one in force was imported with the session.
        """
        seq, entry = self._in_force()
        if entry is None:
            raise InvalidInput(
                "This dialog has no compaction of its own in force.",
                hint="A compaction that it inherited is undone in the dialog that made it.",
            )
        if entry.foreign:
            raise InvalidInput("The compaction in force was imported with the session, so it is not undone.")
        return self._take_back(seq)

    def redo(self) -> Handle:
        """Redo the compaction of the last `undo` by writing an entry; several undos are redone one by one.

        Raises:
            Conflict: As for `undo`.
            InvalidInput: The last compaction entry is not an undo.
        """
        seq, entry = self._newest(self._dialog.refresh().view_base)
        while entry is not None and entry.undone is not None and self._is_undo(entry.undone):
            seq, entry = self._before(entry.undone)  # a redo: the entry before the undo that it reverted
        if entry is None or entry.undone is None:
            raise InvalidInput("There is no undo to redo: the newest compaction entry is not one.")
        return self._take_back(seq)

    def _in_force(self) -> tuple[int, Compaction | None]:
        """Return the newest compaction that is not undone; undoing it restores what was in force before."""
        seq, entry = self._newest(self._dialog.refresh().view_base)
        while entry is not None and entry.undone is not None:
            seq, entry = self._before(entry.undone)
        return seq, entry

    def _newest(self, base: int) -> tuple[int, Compaction | None]:
        """Return the newest compaction up to a number that was not erased; None where it cannot be read, or there is none."""
        seq, entry = in_force(self._store, self._dialog.dialog_id, base)
        return seq, entry if isinstance(entry, Compaction) else None

    def _is_undo(self, seq: int) -> bool:
        entry = entry_at(self._store, Handle(self._dialog.dialog_id, seq))
        return isinstance(entry, Compaction) and entry.undone is not None

    def _before(self, seq: int) -> tuple[int, Compaction | None]:
        """Return the compaction in force before another one."""
        return self._newest(header_at(self._store, self._dialog.dialog_id, seq - 1).view_base)

    def _take_back(self, seq: int) -> Handle:
        """Choose the view as it was before a compaction entry."""
        view, known = fold(self._store, self._dialog.dialog_id, seq - 1), self._dialog.last.seq
        entry: Entry = checkpoint(
            view, held(self._store, view.dialog_id, view.at), policy="undo", tokens_before=0, tokens_after=0
        ).model_copy(update={"undone": seq})
        return self._dialog.annotate(entry, lambda newest: self._require_current(newest, known))
