"""palaver view: what a model would see, and why not the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from palaver.cli.calls import numbered
from palaver.cli.dialogs import dialog_of
from palaver.cli.options import DialogOption, JsonOption, SessionArgument, StoreOption, opened, worded
from palaver.cli.outcome import Exit
from palaver.cli.printing import print_json
from palaver.cli.surroundings import errors, write
from palaver.context import DEFAULT_POLICY, POLICIES, Ledger, Meter, compose, policy
from palaver.context import Policy as ContextPolicy
from palaver.context.decided import sentences
from palaver.context.triggers import held
from palaver.errors import InvalidInput, NotFound
from palaver.ids import BlobId, DialogId
from palaver.log.redaction import PatternRedactor
from palaver.plurals import counted
from palaver.session import Session
from palaver.session.calls.booking import Books, rates_of
from palaver.session.compaction.preview import place_of
from palaver.store import Store
from palaver.tokens import Budget, Rates, counter, model_info
from palaver.transcripts.markdown import markdown
from palaver.transcripts.redacting import redacted_copy
from palaver.view import Exchange, View, fold
from palaver.wire import PROFILES, Call, Request, compile, profile  # noqa: A004 - the word for it

_WHOLE = "full"
_NO_LIMIT = 10**9
"""A budget that nothing exceeds, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the words of the command ask for; each says in its help what it is."""

    session: SessionArgument
    dialog: DialogOption = None
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", min=0, help="As it was after this entry of the dialog.")
    ] = None
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="P",
            help=f"One of: {', '.join(POLICIES)}. Default: {DEFAULT_POLICY} with --budget, else what the recorded agent saw.",
        ),
    ] = None
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="N", min=1, help="Tokens the request may occupy.")
    ] = None
    wire: Annotated[
        str | None, typer.Option("--wire", metavar="PROFILE", help=f"Compile for: {', '.join(PROFILES)}.")
    ] = None
    model: Annotated[str, typer.Option("--model", metavar="M", help="The model; default: the session's own.")] = ""
    then: Annotated[
        str | None, typer.Option("--then", metavar="TEXT", help="The user's next words, put after the view.")
    ] = None
    call: Annotated[
        int | None,
        typer.Option(
            "--call",
            metavar="N",
            min=1,
            help="What the model saw at this call: the request that was sent, to the byte.",
        ),
    ] = None
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of everything left out why, and how to bring it back.")
    ] = False
    redact: Annotated[
        bool, typer.Option("--redact", help="Take keys and tokens out of what is shown; the store keeps them.")
    ] = False


@worded(Asked)
def run(asked: Asked, *, store: StoreOption = None, json: JsonOption = False) -> int:
    """Compute what the model sees: by default as the recorded agent saw it, `--policy full` for everything.

    With --wire the request of a provider, validated against its rules. A session that ends on the assistant's words is a history; with
    --then it is the next request. Ends with 6, and the breakdown, when the budget cannot hold what must be sent. With --call the request
    of a recorded model call (`calls` lists them), or 4 when it cannot be given back.
    """
    with opened(store) as there:
        found = _found(there, asked.session, redact=asked.redact)
        seen, request = _computed(found, asked) if asked.call is None else _recorded(found, asked, asked.call)
        if request is not None:
            request.check()
        if json:
            print_json(_data(seen, request))
        elif request is not None:
            print_json(request.body)
        else:
            for text in markdown(found.record, seen.view):
                write(text)
        if asked.explain and not json:
            _explain(seen, request)
    return Exit.OK


def _found(store: Store, reference: str, *, redact: bool) -> Session:
    """Open the session, or a copy of it in memory without its secrets."""
    found = Session.open(reference, store)
    return (
        Session.open(found.session_id, redacted_copy(store, found.session_id, PatternRedactor())) if redact else found
    )


def _computed(found: Session, asked: Asked) -> tuple[_Seen, Request | None]:
    """Give what the model sees, as it is asked for, and the request where one is."""
    dialog_id = dialog_of(found, asked.dialog)
    _check(found.store, dialog_id, asked.at)
    view = fold(found.store, dialog_id, asked.at, whole=asked.policy == _WHOLE)
    model = asked.model or view.model or profile(asked.wire or "openai-chat").model
    seen = _seen(view, model, asked.policy, asked.budget, _known(found, dialog_id, model, asked))
    return seen, None if asked.wire is None else _request(found.store, seen, asked.wire, asked.then)


def _recorded(found: Session, asked: Asked, call: int) -> tuple[_Seen, Request]:
    """Give what the model saw at a past call, and what was sent."""
    _alone(
        {
            "--at": asked.at,
            "--policy": asked.policy,
            "--budget": asked.budget,
            "--wire": asked.wire,
            "--model": asked.model,
            "--then": asked.then,
        }
    )
    past = numbered(found.dialog(dialog_of(found, asked.dialog)).invocations, call)
    seen = _seen(past.view(), past.model, None, None)
    return seen if past.decision is None else replace(seen, notes=sentences(past.decision)), past.request()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A view with its size and the model it was measured for."""

    view: View
    model: str
    tokens: int
    before: int
    notes: tuple[str, ...]


def _known(session: Session, dialog_id: DialogId, model: str, asked: Asked) -> tuple[Ledger, Rates | None]:
    """Give what a schedule goes by: the calls that the log has, whether an undo holds, and the prices; of an earlier view nothing but the prices."""
    dialog = session.dialog(dialog_id)
    books = Ledger(meter=Meter(counter(model)))
    prices = rates_of(model, dialog.store.last(dialog_id).at)
    if asked.at is not None:
        return books, prices
    figures = dialog.figures(model=model)
    known = Books(dialog.store, dialog_id).ledger(books, dialog.spans, model, None)
    stays = held(figures, figures.window if asked.budget is None else asked.budget)
    return replace(books, calls=known.calls, branches=known.branches, held=stays), prices


def _seen(
    view: View, model: str, by: str | None, budget: int | None, known: tuple[Ledger | None, Rates | None] = (None, None)
) -> _Seen:
    info = model_info(model)
    if by is not None and budget is None and not info.known:  # where no policy acts, no window counts
        errors().print(info.warning, style="yellow")
    manager = policy(by or (_WHOLE if budget is None else DEFAULT_POLICY), model)
    if not isinstance(manager, ContextPolicy):
        raise InvalidInput(f"{by!r} is no policy that plans.", hint=f"Policies: {', '.join(POLICIES)}.")
    room = Budget.of_input(_NO_LIMIT if budget is None else budget)
    done = compose(view, manager, room, counter(model), ledger=known[0], prices=known[1])
    return _Seen(
        view=done.view, model=model, tokens=done.tokens_after, before=done.tokens_before, notes=done.plan.notes
    )


def _request(store: Store, seen: _Seen, wire: str, then: str | None) -> Request:
    chosen = profile(wire, seen.model)
    return compile(seen.view, chosen, Call(model=seen.model, then=then), lambda digest: store.blob(BlobId(digest)))


def _alone(others: Mapping[str, object]) -> None:
    """Refuse options that would change what a past call saw."""
    given = [name for name, value in others.items() if value not in {None, ""}]
    if given:
        raise typer.BadParameter(f"shows what was sent: {', '.join(given)} cannot change that.", param_hint="--call")


def _check(store: Store, dialog_id: DialogId, at: int | None) -> None:
    """Refuse a number that the dialog has not reached: its view would be that of another number."""
    newest = store.last(dialog_id).seq
    if at is not None and at > newest:
        raise NotFound(f"{dialog_id[:12]}:{at}", what="entry", hint=f"The newest entry of this dialog is {newest}.")


def _omitted(view: View) -> Iterator[dict[str, Any]]:
    for gone in view.omissions:
        yield {
            "place": place_of(gone),
            "reason": gone.reason.value,
            "by": gone.by,
            "messages": gone.messages,
            "bytes": gone.size,
        }
    for block in (*view.system, *(block for exchange in view.exchanges for block in exchange.blocks())):
        if block.reason is not None:
            row = {
                "place": str(block.origin),
                "reason": block.reason.value,
                "by": ", ".join(view.policies) or "palaver",
            }
            yield {**row, "reversible": block.reversible, "shown": "in another form"}


def _data(seen: _Seen, request: Request | None) -> dict[str, object]:
    common = {
        "tokens": seen.tokens,
        "tokens_before": seen.before,
        "model": seen.model,
        "omitted": list(_omitted(seen.view)),
    }
    if request is None:
        return {"view": [_exchange(exchange) for exchange in seen.view.exchanges], **common, "report": list(seen.notes)}
    report = [
        {"handle": None if c.handle is None else str(c.handle), "what": c.what, "how": c.how.value, "why": c.why}
        for c in request.report
    ]
    return {"request": request.body, "history": request.history, **common, "report": report}


def _exchange(exchange: Exchange) -> list[dict[str, object]]:
    return [
        {
            "role": turn.role.value,
            "blocks": [
                {
                    "handle": None if b.origin is None else str(b.origin),
                    "derived": b.derived,
                    **b.content.model_dump(mode="json"),
                }
                for b in turn.blocks
            ],
        }
        for turn in exchange.turns
    ]


def _explain(seen: _Seen, request: Request | None) -> None:
    console = errors()
    rows = list(_omitted(seen.view))
    console.print(f"\n{seen.tokens:,} of {counted(seen.before, 'token')} (estimated for {seen.model}) are in the view.")
    if not rows:
        console.print("Nothing is left out.")
    for reason, count in Counter(str(row["reason"]) for row in rows).most_common():
        console.print(f"{count:>6} x {reason.replace('_', ' ')}")
    for row in rows:
        size = f", {counted(row['messages'], 'message')}, {counted(row['bytes'], 'byte')}" if row.get("bytes") else ""
        console.print(f"  {row['place']}: {str(row['reason']).replace('_', ' ')} by {row['by']}{size}")
    for note in seen.notes:
        console.print(f"  note: {note}")
    for change in request.report if request is not None else ():
        console.print(f"  on the wire: {change}")
    if rows:
        console.print("`palaver recall PLACE` brings any of it back.")
