"""palaver view: what a model sees, and why not the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

from typer import BadParameter, Option

from palaver.cli.calls import Answer, numbered
from palaver.cli.options import BudgetOption, JsonOption, ModelOption, RedactOption, SessionArgument, StoreOption, found
from palaver.cli.terminal import complain, listed, paged, print_json, say, write
from palaver.context import DEFAULT_POLICY, POLICIES, Composed, Meter
from palaver.errors import NotFound
from palaver.ids import BlobId
from palaver.log.redaction import PatternRedactor
from palaver.plurals import counted
from palaver.session import Dialog, Session
from palaver.session.calls import ModelCall
from palaver.session.compaction import place_of
from palaver.tokens import counter, model_info
from palaver.transcripts.markdown import markdown
from palaver.view import Exchange, Reason, View, fold
from palaver.wire import PROFILES, Call, Request, compile, profile  # noqa: A004 - the word for it

_WHOLE = "full"

_PLACES = 12
"""Places that an explanation names."""

_POLICY = f"One of: {', '.join(POLICIES)}. Default: {DEFAULT_POLICY} with --budget, else what the recorded agent saw."
_RECONSTRUCTED = "Reconstructed: what was said before this response. The file does not say what was sent."

_WHY = {
    Reason.OVER_BUDGET: "left out, because the view had to become smaller",
    Reason.OFFLOADED: "replaced by a short reference",
    Reason.FOLDED: "replaced by a record or summary",
    Reason.COMPACTED: "left out by a compaction of the agent that recorded it",
    Reason.UNPAIRED: "a result without its call, shown as text",
    Reason.PARTED: "a result that is on another branch",
    Reason.QUARANTINED: "in quarantine",
    Reason.SUPERSEDED: "replaced by something newer",
    Reason.MANAGER: "left out by the context manager",
    Reason.ERASED: "erased for good",
}
"""Reasons in words, where their names do not say it."""


def run(
    session: SessionArgument,
    *,
    explain: Annotated[
        bool, Option("--explain", "-e", help="Say first what is left out, why, and how to get it.")
    ] = False,
    call: Annotated[
        int | None, Option("--call", min=1, help="What the model saw at call N of `palaver calls`.")
    ] = None,
    at: Annotated[
        int | None,
        Option("--at", min=0, help="As it was after this entry of the dialog; the same as a handle for SESSION."),
    ] = None,
    by: Annotated[str | None, Option("--policy", "-p", metavar="P", help=_POLICY)] = None,
    budget: BudgetOption = None,
    wire: Annotated[
        str | None, Option("--wire", metavar="NAME", help=f"The request for: {', '.join(PROFILES)}.")
    ] = None,
    then: Annotated[str | None, Option("--then", metavar="TEXT", help="With --wire: the user's next message.")] = None,
    model: ModelOption = "",
    redact: RedactOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a model sees of a session: by default what the recorded agent saw, with --policy full everything.

    With --call the request of a recorded call, to the byte; of an imported session, what was said before that response. Exit code 6, with a
    breakdown, means that the budget cannot hold what must be sent.
    """
    with found(session, store) as there:
        dialog = there.dialog
        if redact:
            from palaver.transcripts import redacted_copy  # noqa: PLC0415 - it loads what reads files

            copy = redacted_copy(dialog.store, dialog.session_id, PatternRedactor())
            dialog = Session.open(copy, dialog.session_id).dialog(dialog.dialog_id)
        at = there.handle.seq if at is None and there.handle else at
        past = None if call is None else numbered(dialog, call)
        if isinstance(past, ModelCall):
            changing = {
                "--at": at,
                "--policy": by,
                "--budget": budget,
                "--wire": wire,
                "--then": then,
                "--model": model,
            }
            if names := [name for name, value in changing.items() if value]:
                raise BadParameter(f"{', '.join(names)} cannot change what was sent.", param_hint="--call")
            seen = _Seen(view=past.view(), model=past.model, request=past.request())
        else:
            seen = _policed(dialog, _past(dialog, past, at, whole=by == _WHOLE), by, budget, model, wire)
            seen = seen if wire is None else _compiled(dialog, seen, wire, then)
        if json:
            print_json(_data(seen))
            return
        if past is not None and seen.request is None:
            complain(_RECONSTRUCTED, "dim")
        with paged():
            for line in _explained(seen) if explain else ():
                (say if seen.request is None else complain)(line)
            for text in _texts(dialog, seen):
                write(text)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What the model sees.

    Attributes:
        view: The view.
        model: The model whose tokens are counted.
        made: What a policy made of the view before, where one was asked for.
        request: The request, where one was asked for.
    """

    view: View
    model: str
    made: Composed | None = None
    request: Request | None = None

    def sizes(self) -> tuple[int, int]:
        """Return the size of the view, and of everything that was there to choose from, in tokens."""
        if self.made is not None:
            return self.made.after.total, self.made.before.total
        tokens = Meter(counter(self.model)).view(self.view).total
        return tokens, tokens

    def notes(self) -> tuple[str, ...]:
        """Return what the policy says about its plan."""
        return () if self.made is None else self.made.plan.notes


def _past(dialog: Dialog, past: Answer | None, at: int | None, *, whole: bool) -> View:
    """Return the view of a dialog now, after an entry, or before a response."""
    if past is not None:
        return fold(dialog.store, past.handle.dialog, past.handle.seq - 1, whole=whole)
    newest = dialog.store.last(dialog.dialog_id).seq
    if at is not None and at > newest:
        hint = f"The newest entry of this dialog is {newest}."
        raise NotFound(f"{dialog.dialog_id[:12]}:{at}", what="entry", hint=hint)
    return fold(dialog.store, dialog.dialog_id, at, whole=whole)


def _policed(dialog: Dialog, view: View, by: str | None, budget: int | None, model: str, wire: str | None) -> _Seen:
    """Return what a policy makes of a view."""
    model = model or view.model or ("" if wire is None else profile(wire).model)
    if by in {None, _WHOLE} and budget is None:
        return _Seen(view=view, model=model)
    if budget is None and not model_info(model).known:
        complain(model_info(model).warning, "yellow")
    made = dialog.compaction.compose(by or DEFAULT_POLICY, budget, model=model, view=view)
    return _Seen(view=made.view, model=model, made=made)


def _compiled(dialog: Dialog, seen: _Seen, wire: str, then: str | None) -> _Seen:
    call = Call(model=seen.model, then=then)
    request = compile(seen.view, profile(wire, seen.model), call, lambda digest: dialog.store.blob(BlobId(digest)))
    request.check()
    return replace(seen, request=request)


def _texts(dialog: Dialog, seen: _Seen) -> Iterator[str]:
    if seen.request is not None:
        yield f"{seen.request.data.decode()}\n"
        return
    seen.view.load()
    yield from markdown(dialog.store.session(dialog.session_id), seen.view)


# --- explaining -----------------------------------------------------------------------------------------------------------------------


def _omitted(view: View) -> Iterator[dict[str, Any]]:
    """Yield what is left out, and what is shown in another form, each with the place that `show` takes."""
    for gone in view.omissions:
        row = {"place": place_of(gone), "reason": gone.reason.value, "by": gone.by}
        yield row | {"messages": gone.messages, "bytes": gone.size}
    by = ", ".join(view.policies) or "palaver"
    for block in (*view.system, *(block for exchange in view.exchanges for block in exchange.blocks())):
        if block.reason is not None:
            row = {"place": str(block.origin), "reason": block.reason.value, "by": by}
            yield row | {"reversible": block.reversible, "shown": "in another form"}


def _explained(seen: _Seen) -> Iterator[str]:
    rows = list(_omitted(seen.view))
    shown = sum(exchange.messages for exchange in seen.view.exchanges)
    tokens, before = seen.sizes()
    share = f"{tokens:,} tokens" if tokens == before else f"{tokens:,} of {before:,} tokens"
    yield f"The model sees {share} in {counted(shown, 'message')} (counted for {seen.model or 'an unknown model'})."
    if not rows:
        yield "Nothing is left out."
    reasons: Counter[tuple[str, bool]] = Counter()
    for row in rows:
        reasons[row["reason"], "shown" in row] += row.get("messages") or 1
    for (reason, block), count in reasons.most_common():
        yield f"  {counted(count, 'block' if block else 'message'):>14}: {_why(reason)}"
    if rows:
        yield "The log keeps all of it. `palaver show PLACE` prints the original of:"
        yield from listed([f"  {row['place']}  ({_why(row['reason'])}; {row['by']})" for row in rows], _PLACES)
    yield from (f"  note: {note}" for note in seen.notes())
    yield from (f"  for the provider: {change}" for change in (seen.request.report if seen.request else ()))
    yield ""


def _why(reason: str) -> str:
    return _WHY.get(Reason(reason), reason.replace("_", " "))


def _data(seen: _Seen) -> dict[str, object]:
    tokens, before = seen.sizes()
    row = {"tokens": tokens, "tokens_before": before, "model": seen.model, "omitted": list(_omitted(seen.view))}
    if seen.request is None:
        seen.view.load()
        return {"view": [_turns(each) for each in seen.view.exchanges], **row, "report": list(seen.notes())}
    changes: list[dict[str, Any]] = [
        {"what": one.what, "how": one.how.value, "why": one.why} for one in seen.request.report
    ]
    handles = [one.handle and str(one.handle) for one in seen.request.report]
    report = [change | {"handle": handle} for change, handle in zip(changes, handles, strict=True)]
    return {"request": seen.request.body, "history": seen.request.history, **row, "report": report}


def _turns(exchange: Exchange) -> list[dict[str, object]]:
    def data(block: Any) -> dict[str, object]:  # noqa: ANN401 - a block
        content = block.content.model_dump(mode="json")
        return {"handle": block.origin and str(block.origin), "derived": block.derived, **content}

    return [{"role": turn.role.value, "blocks": [data(block) for block in turn.blocks]} for turn in exchange.turns]
