"""A branch as a model sees it: its views, the requests that are compiled from them, and what makes a view smaller."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

from palaver.context import DEFAULT_POLICY, Composed
from palaver.context.placing import carrying_on, unstated
from palaver.context.record.carried import carried
from palaver.context.triggers import Figures, held
from palaver.errors import InvalidInput
from palaver.ids import BlobId, now
from palaver.log import Handle, Node, Quarantine
from palaver.messages import Content
from palaver.prompts import Runtime
from palaver.session.calls.booking import Books, rates_of
from palaver.session.calls.composing import NO_LIMIT, BudgetLike, Composing, PolicyLike, composing, tokens_of
from palaver.session.calls.invocations import Invocations, Latest, latest, recorded
from palaver.session.calls.quarantining import blamed, lifting, quarantine_of
from palaver.session.carried.follower import Follower
from palaver.session.compaction.attempts import figures_of
from palaver.session.compaction.committing import MARGIN, compaction, in_one_step, undoing
from palaver.session.compaction.pacing import due
from palaver.session.compaction.preview import CompactionPreview
from palaver.session.compaction.proposing import CompactionWish, apropose, propose
from palaver.session.dialog.branch import Branch
from palaver.session.dialog.constraining import DialogConstraints
from palaver.session.dialog.keywords import keywords_of
from palaver.session.reading.erased import require_unerased
from palaver.session.reading.marks import quarantined_in
from palaver.session.reading.recalling import Originals, whole
from palaver.store.blocks import require_no_block
from palaver.store.protocol import Store
from palaver.tools.aside import aside
from palaver.view import Folding, Plan, View, apply, fold, header_at
from palaver.wire import Call, Compiled, Profile, Request
from palaver.wire import compile as compile_request
from palaver.wire import profile as find_profile

__all__ = ["SeenBranch"]


class _Kept:
    """What is kept of views and calls for the next ones, all of it made of entries that the dialog knew.

    Attributes:
        folding: The view.
        books: What calls cost, and what was measured.
        call: The newest call that was recorded here.
        undone: How much of what the dialog knew had been taken back when this was begun.
    """

    def __init__(self, store: Store, node: Node, undone: int) -> None:
        """Keep nothing yet."""
        self.folding = Folding(store, node)
        self.books = Books(store, node.dialog_id)
        self.call: Latest | None = None
        self.undone = undone


class SeenBranch(Branch):
    """A branch as a model sees it. The log below knows nothing of views; whatever is left out of one is an entry of the log, or nothing."""

    def __init__(self, store: Store, node: Node, follower: Follower | None) -> None:
        super().__init__(store, node, follower)
        self._compiled = Compiled()
        self._held_on = _Kept(store, node, self._ending.undone)

    @property
    def _kept(self) -> _Kept:
        """What is kept; nothing of it where it was made of what a block took back, or of what another thread's block may still take back."""
        ending = self._ending
        ending.last  # noqa: B018 - look first
        shared = ending.shared
        undone = ending.undone  # in this order: a block that was taken back is counted before it is gone
        if not shared:
            return _Kept(self.store, self._node, undone)
        if self._held_on.undone != undone:
            self._held_on = _Kept(self.store, self._node, undone)
        return self._held_on

    @property
    def _books(self) -> Books:
        return self._kept.books

    @property
    @abstractmethod
    def runtime(self) -> Runtime:
        """What paths and names are resolved with."""

    @abstractmethod
    def derive(self, view: View) -> Self:
        """Give a dialog that is never written back: its view is this one, its messages are what the model sees of it."""

    # --- views ------------------------------------------------------------------------------------------------------------------

    def _seen(self, at: int | None) -> View:
        """Give everything up to an own entry: from the view before and what came since where there is one, an earlier one by itself."""
        self._look()
        last = self._last
        upto = last if at in {None, last.seq} else header_at(self.store, self.dialog_id, at)
        folding = self._kept.folding
        if upto.seq >= folding.at:
            return folding.view(upto)
        return fold(self.store, self.dialog_id, upto.seq)

    def _look(self) -> bool:
        """Let go of what is kept where something was erased, by whomever: an erasure is the one write of others that is taken note of at once."""
        erased = self._ending.look()
        if erased:
            self._tell()
        return erased

    def view(
        self,
        policy: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        at: int | None = None,
        *,
        model: str = "",
    ) -> View:
        """Give what the model is to see: everything, or what a policy makes of it. Nothing is written.

        Args:
            policy: A policy or context manager, its name or its configuration; with a budget alone, the policy `palaver`.
            budget: What one request may occupy, in tokens.
            at: The number of the last own entry to take into account: an earlier view; the newest known when not given.
            model: The model that counts; the one in force when not given.

        Raises:
            InfeasibleBudget: What must be sent is larger than the budget.
            UnknownPolicy: There is none of this name.
        """
        if policy is None and budget is None:
            return self._seen(at)
        return self.compose(DEFAULT_POLICY if policy is None else policy, budget, at, model=model).view

    def compose(  # noqa: PLR0913 - what is composed, for whom, and for when
        self,
        policy: PolicyLike,
        budget: BudgetLike | None = None,
        at: int | None = None,
        *,
        model: str = "",
        view: View | None = None,
        when: float | None = None,
        most: int | None = None,
    ) -> Composed:
        """Preview what a policy would do: the view, the plan it comes from and the sizes before and after. As `view`.

        A policy with a schedule is told of the calls that the log records, of what the provider said of the last one, of the living branches
        that share the prefix, and of the model's prices; the room is corrected by what the provider counted (docs/scheduling.md). Behind an undo
        it sets nothing aside but for want of room, before the view has grown by a tenth.

        Args:
            policy: As for `view`.
            budget: As for `view`.
            at: As for `view`.
            model: As for `view`.
            view: A view made from the dialog's, in its place.
            when: When the model will be called, in seconds since 1970-01-01 UTC; not known when not given, and then no cache is taken for cold.
            most: Fewer tokens than the budget allows, as they are counted here.
        """
        ready = self._composing(policy, budget, at, model)
        ready = self._booked(ready, when) if at is None else ready
        return (ready if most is None else ready.within(most)).composed(view=view)

    def _composing(self, policy: PolicyLike, budget: BudgetLike | None, at: int | None, model: str) -> Composing:
        ready = composing(
            self._seen(at), policy, budget, model, runtime=self.runtime, derive=self.derive, sources=self._originals
        )
        return replace(ready, ledger=self._books.measuring(ready.ledger, ready.model))

    @property
    def _originals(self) -> Callable[[Handle], Content | None]:
        return Originals(self.store).block

    def _booked(self, ready: Composing, when: float | None) -> Composing:
        """Tell a policy with a schedule what the log says of its calls, and what its model costs."""
        books = self._books.ledger(ready.ledger, self._spans(), ready.model, when)
        told = replace(ready, ledger=books, prices=rates_of(ready.model, self._last.at))
        return replace(told, ledger=replace(books, held=self._holds(told)))

    def _holds(self, ready: Composing) -> bool:
        """Tell whether a compaction that was taken back stays so."""
        compacted, undone = self._books.since(self._node, self._last, ready.model)
        if not undone:
            return False
        size = ready.ledger.meter.view(ready.view).total
        return held(Figures(tokens=size, compacted=compacted, undone=True), ready.room.for_input)

    @property
    def constraints(self) -> DialogConstraints:
        """What the user said must or must not be, as it holds now, with `add` and `remove`. Costs what the view has."""
        return DialogConstraints(self._seen(None), self._originals, self.annotate)

    def figures(self, *, at: float | None = None, model: str = "") -> Figures:
        """Give what triggers look at (`palaver.context.triggers`), without the provider's word.

        Args:
            at: The time by which it is idle, in seconds since 1970-01-01 UTC; that of the clock when not given.
            model: The model that counts; the one in force when not given.
        """
        seen = self._seen(None)
        counting = model or seen.model
        size = self._books.measured(counting).meter.view(seen).total
        figures = figures_of(seen, size, self.store, self._spans(), now() if at is None else at, counting)
        compacted, undone = self._books.since(self._node, self._last, counting)
        return replace(figures, compacted=compacted, undone=undone)

    def due(self, policy: PolicyLike, *, model: str = "") -> str | None:
        """Say why a policy would make the view smaller now by its own limit; presets of other systems have one (docs/presets.md).

        Args:
            policy: The policy.
            model: The model that counts; the one in force when not given.

        Returns:
            Why, in one clause; an empty text where it would not; None where the policy has no limit of its own.
        """
        return due(self._composing(policy, None, None, model or self._seen(None).model))

    # --- requests ---------------------------------------------------------------------------------------------------------------

    def request(
        self,
        profile: Profile | str,
        model: str,
        *,
        policy: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        at: int | None = None,
        **call: Any,  # noqa: ANN401 - the fields of a Call
    ) -> Request:
        """Compile the request that a provider gets. Nothing is sent and nothing is written.

        Args:
            profile: The provider's profile, or its name.
            model: The model.
            policy: As for `view`.
            budget: As for `view`.
            at: As for `view`.
            call: Further fields of `palaver.wire.Call`, such as `max_tokens`, `tool_choice` or `then`.

        Raises:
            UnknownProfile: There is none of this name.
            InfeasibleBudget: What must be sent is larger than the budget.
            InvalidRequest: The request breaks a rule of its provider: a defect of palaver.
        """
        known = find_profile(profile, model) if isinstance(profile, str) else profile
        view = self.view(policy, budget, at, model=model)
        asked = Call(model=model, **call)
        request = compile_request(
            view, known, asked, lambda digest: self.store.blob(BlobId(digest)), compiled=self._compiled
        )
        request.check()
        return request

    def record_call(self, request: Request, decision: Mapping[str, Any] | None = None) -> Handle:
        """Record that a model is asked, and what it sees, so that `invocations` gives it back to the byte.

        Costs what changed since the call before; belongs before the call, so that a crash during it leaves a trace.

        Args:
            request: The request.
            decision: What a schedule decided before this call (`Composed.plan.details`), to be kept with it.

        Raises:
            Conflict: Something that the dialog holds was erased since the request was compiled: what it saw would be written down again.
            InvalidInput: The request was not compiled from a view of this dialog.
        """
        self._look()
        kept = self._kept
        before = kept.call
        if before is None or kept is not self._kept:  # another thread has begun a block: the call may be that one's
            before = latest(self.store, self.dialog_id)
        entry, call = recorded(self._seen, self.dialog_id, request, before, decision)
        at = -1 if request.view is None else request.view.at
        look = partial(require_unerased, self.store, self.dialog_id, at, "the request", "Compile it again.")
        place = self._said(entry, look)
        kept.call = call._replace(seq=place.seq)
        if request.view is not None:
            kept.books.took(place, request.view)
        return place

    @property
    def invocations(self) -> Invocations:
        """The model calls that were recorded, each with what it saw; reads the headers of the whole dialog."""
        return Invocations(self.store, self._spans())

    # --- what is refused is set aside --------------------------------------------------------------------------------------------

    @property
    def quarantined(self) -> Mapping[Handle, str]:
        """What is set aside here, and why, in that order; reads the headers of the whole dialog."""
        return quarantined_in(self.store, self._spans())

    def quarantine(self, handle: Handle | str, reason: str = "") -> Handle:
        """Set a block aside that a provider refuses: views of this dialog, and of forks to come, show a placeholder with its handle.

        The log keeps the original, and `recall` gives it. A call keeps its name and its result, and loses its arguments.

        Args:
            handle: The block, or an entry with all its blocks.
            reason: Why, for people.

        Raises:
            InvalidHandle: It is no handle, or it names an entry that no view shows.
            UnknownHandle: The session has no such entry or block.
            Conflict: The entry was erased since the last `reload`: the reason may say what it said.
        """
        return self._reasoned(quarantine_of(self.store, self.session_id, handle, reason))

    def lift_quarantine(self, handle: Handle | str, reason: str = "") -> Handle:
        """Show again what was set aside, by an entry of its own.

        Raises:
            InvalidHandle: It is no handle, or not spelt like one.
            UnknownHandle: The session has no such dialog.
            InvalidInput: It is not in quarantine here.
            Conflict: As for `quarantine`.
        """
        place = whole(self.store, self.session_id, handle)
        return self._reasoned(lifting(place, self.quarantined, reason))

    def _reasoned(self, entry: Quarantine) -> Handle:
        """Add an entry with a reason, which is not to tell of what was erased meanwhile."""
        return self._said(entry, self._standing(entry.target)) if entry.reason else self.annotate(entry)

    def blamed(self, request: Request, words: str) -> Handle | None:
        """Find the block that a provider's refusal is about, from the place in the request that it names; None where it names none.

        Args:
            request: The request that was refused.
            words: What the provider said, as in `str(error)`: `messages.3.content.0.image: Could not process image`.
        """
        return blamed(self.store, request, words)

    # --- smaller views ----------------------------------------------------------------------------------------------------------

    def commit(
        self,
        what: Composed | Plan | View,
        *,
        model: str = "",
        margin: float = MARGIN,
        attempt: Mapping[str, Any] | None = None,
    ) -> Handle:
        """Write a smaller view down as one entry, from which later views start. The log keeps everything, and `undo` takes it back.

        Args:
            what: What `compose` gave; or a plan for the view as it stands; or a view made from this dialog's.
            model: The model whose tokens count, for a plan or a view; the one in force when not given.
            margin: By which share the view must become smaller.
            attempt: How it came about, to be kept with the entry; JSON values.

        Raises:
            Conflict: Another compaction was committed since the view was made, or something that the dialog holds was erased.
            InvalidInput: It is a view of another dialog, is not smaller by the margin, leaves out what every view must hold, or does not say a
                constraint that leaves it: a plan or a view of your own may, and its facts are carried on unseen.
        """
        made = what.view if isinstance(what, Composed) else what
        since = self._last.seq if isinstance(made, Plan) else made.at
        require_unerased(self.store, self.dialog_id, since, "the plan", "Make the plan again.")
        if isinstance(what, Composed):
            view, before, after = what.view, what.tokens_before + what.cut, what.tokens_after + what.cut
        else:
            seen = self._seen(None)
            view = apply(seen, carried(seen, what, self._originals)) if isinstance(what, Plan) else what
            before, after = tokens_of(self._seen(view.at), model), tokens_of(view, model)
        if view.dialog_id != self.dialog_id:
            raise InvalidInput(f"This is a view of dialog {view.dialog_id}, not of {self.dialog_id}.")
        view = self._carrying_on(view, told=isinstance(what, Composed))
        by = view.policies[-1] if view.policies else ""
        make = partial(
            compaction, self.store, view, policy=by, before=before, after=after, margin=margin, attempt=attempt
        )
        return self._took(in_one_step(self.store, self.dialog_id, make))

    def _carrying_on(self, view: View, *, told: bool) -> View:
        """Give a view that carries what is known of what it leaves out; where a policy made it, it must tell the constraints among that."""
        seen = self._seen(view.at)
        books = replace(self._books.measured(seen.model), sources=self._originals)
        final = carrying_on(seen, view, books)
        lost = next(iter(unstated(final)), None) if told else None
        if lost is not None:
            raise InvalidInput(
                f"The view has no room for what the user said and what leaves it: {lost.text!r}.",
                hint="With a larger budget it is told; for one request a view may go without it.",
            )
        return final

    @keywords_of(CompactionWish)
    def compact(self, wish: CompactionWish) -> CompactionPreview:
        """Look at what a compaction would do, at any time: nothing is written before `approve()` or `reject()` on what this gives.

        Raises:
            InfeasibleBudget: What every view must hold is larger than the budget that was given.
            UnknownPolicy: There is none of this name.
        """
        return propose(self, self._wished(wish), wish)

    @keywords_of(CompactionWish)
    async def acompact(self, wish: CompactionWish) -> CompactionPreview:
        """Look at what a compaction would do; as `compact`, for asynchronous callers. Cancelling it leaves nothing behind.

        Raises:
            InvalidInput: This thread is inside a block of the store: what is planned in another one would not see what it has written.
        """
        require_no_block(self.store, "A compaction that waits")
        return await apropose(self, await aside(partial(self._wished, wish)), wish)

    def _wished(self, wish: CompactionWish) -> Composing:
        counting = wish.model or self._seen(None).model
        budget = wish.budget if wish.budget is not None or counting else NO_LIMIT
        return self._composing(wish.policy or "palaver", budget, None, counting)

    def undo(self) -> Handle:
        """Undo the newest commit that is not undone yet, by an entry of its own: what that commit left out is back.

        Commits are a stack: a second undo takes back the commit before, an undo after a new commit that one. To have an undone commit
        again, commit anew. No trigger and no schedule does that at once, in whichever process: not before the view has grown by a tenth, or is
        too long.

        Raises:
            Conflict: Another compaction was committed since the last `reload`.
            InvalidInput: The dialog has no compaction of its own, or every one is undone; one that it inherited is undone where it was made.
        """
        make = partial(undoing, self.store, self.dialog_id, at=self._last.seq)
        return self._took(in_one_step(self.store, self.dialog_id, make))
