"""palaver view: what a model sees, and why not the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated

from typer import BadParameter, Option

from palaver import transcripts
from palaver.browsing.calls import ImportedCall, call_at, calls
from palaver.browsing.seen import OmissionRow, Seen, omissions, seen, sent
from palaver.cli.location import located
from palaver.cli.options import BudgetOption, EntryArgument, JsonOption, ModelOption, RedactOption, StoreOption
from palaver.cli.terminal import complain, listed, paged, print_json, say, write
from palaver.context import DEFAULT_POLICY, POLICIES
from palaver.log.redaction import PatternRedactor
from palaver.plurals import counted
from palaver.providers import APIS
from palaver.session import Dialog, Session
from palaver.session.calls import ModelCall
from palaver.tokens import model_info
from palaver.transcripts.markdown import markdown
from palaver.view.blocks import REASONS

_PLACES = 12
"""Places that an explanation names."""

_POLICY = f"One of: {', '.join(POLICIES)}. Default: {DEFAULT_POLICY} with --budget, else what the recorded agent saw."
_RECONSTRUCTED = "Reconstructed: what was said before this response. The file does not say what was sent."


def run(
    session: EntryArgument,
    *,
    explain: Annotated[
        bool, Option("--explain", "-e", help="Say first what is left out, why, and how to get it.")
    ] = False,
    call: Annotated[
        int | None, Option("--call", min=1, help="What the model saw at call N of `palaver calls`.")
    ] = None,
    whole: Annotated[bool, Option("--whole", help="Everything in the log: ignore compactions and edits.")] = False,
    by: Annotated[str | None, Option("--policy", "-p", metavar="P", help=_POLICY)] = None,
    budget: BudgetOption = None,
    wire: Annotated[str | None, Option("--wire", metavar="NAME", help=f"The request for: {', '.join(APIS)}.")] = None,
    then: Annotated[str | None, Option("--then", metavar="TEXT", help="With --wire: the user's next message.")] = None,
    model: ModelOption = "",
    redact: RedactOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a model sees of a session: by default what the recorded agent saw, with --whole everything.

    Of an entry, what a model saw after it. With --call the request of a recorded call, to the byte; of an imported session, what was said before
    that response. Exit code 6, with a breakdown, means that what must be sent exceeds the budget.
    """
    with located(session, store, entries=True) as there:
        dialog = _redacted(there.dialog) if redact else there.dialog
        past = None if call is None else call_at(calls(dialog), call)
        at = there.handle and there.handle.seq
        changing = {
            "--whole": whole,
            "--policy": by,
            "--budget": budget,
            "--wire": wire,
            "--then": then,
            "--model": model,
        }
        _check(past, at, changing)
        if isinstance(past, ModelCall):
            shown = sent(past)
        else:
            shown = seen(
                dialog, before=past, at=at, whole=whole, policy=by, budget=budget, model=model, wire=wire, then=then
            )
        if json:
            print_json(shown.to_dict())
            return
        if past is not None and shown.request is None:
            complain(_RECONSTRUCTED, "dim")
        with paged():
            for line in _explained(shown, model) if explain else ():
                (say if shown.request is None else complain)(line)
            for text in _texts(dialog, shown):
                write(text)


def _redacted(dialog: Dialog) -> Dialog:
    """Return a copy of a dialog without keys and tokens."""
    copy = transcripts.redacted_copy(dialog.store, dialog.session_id, PatternRedactor())
    return Session.open(copy, dialog.session_id).dialog(dialog.dialog_id)


def _check(past: ModelCall | ImportedCall | None, at: int | None, changing: Mapping[str, object]) -> None:
    """Refuse what would be ignored."""
    if past is not None and at is not None:
        raise BadParameter("an entry was named, too: leave one of them out.", param_hint="--call")
    if isinstance(past, ModelCall) and (names := [name for name, value in changing.items() if value]):
        raise BadParameter(f"{', '.join(names)} cannot change what was sent.", param_hint="--call")
    if changing["--then"] and not changing["--wire"]:
        raise BadParameter("it is part of a request: name its provider with --wire.", param_hint="--then")


def _texts(dialog: Dialog, shown: Seen) -> Iterator[str]:
    if shown.request is not None:
        yield f"{shown.request.data.decode()}\n"
        return
    shown.view.load()
    yield from markdown(dialog.store, dialog.store.session(dialog.session_id), shown.view)


def _why(row: OmissionRow) -> str:
    """Return the reason of an omission, and the policy that decided it where that is not our own."""
    by = "" if row["by"] == "palaver" else f", by {row['by']}"
    return f"{REASONS[row['reason']]}{by}"


def _explained(shown: Seen, named: str) -> Iterator[str]:
    said = (
        omission
        for omission in omissions(shown.view)
        if "shown" in omission or omission.get("messages") or omission.get("bytes")
    )
    rows = list(said)  # without changes of a model or a mode, which say nothing to it
    messages = sum(exchange.messages for exchange in shown.view.exchanges)
    tokens, before = shown.sizes()
    share = f"{tokens:,} tokens" if tokens == before else f"{tokens:,} of {before:,} tokens"
    whom = (shown.model or "an unknown model") + (
        ", which is not known" if named and not model_info(named).known else ""
    )
    yield f"The model sees {share} in {counted(messages, 'message')} (counted for {whom})."
    if not rows:
        yield "Nothing is left out."
    reasons: Counter[tuple[str, bool]] = Counter()
    for row in rows:
        reasons[row["reason"], "shown" in row] += row.get("messages") or 1
    for (reason, block), count in reasons.most_common():
        yield f"  {counted(count, 'block' if block else 'message'):>14}: {REASONS[reason]}"
    if rows:
        yield "The log keeps all of it. `palaver show PLACE` prints the original of:"
        yield from listed([f"  {row['place']}  ({_why(row)})" for row in rows], _PLACES)
    yield from (f"  note: {note}" for note in shown.notes())
    yield from (f"  for the provider: {change}" for change in (shown.request.report if shown.request else ()))
    yield ""
