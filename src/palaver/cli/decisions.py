"""palaver approve and palaver deny: list the calls that wait for a person, and decide about them."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from getpass import getuser
from typing import Annotated, Any, Literal, TypeAlias

from typer import Argument, BadParameter, Option

from palaver.agent import Decision, WaitingCall, decide, waiting_calls
from palaver.browsing.actions import waiting_row
from palaver.browsing.places import locate
from palaver.cli.options import JsonOption, OneOption, StoreOption, opened
from palaver.cli.terminal import emit, paged, print_rows, say, when
from palaver.errors import Ambiguous, NotFound
from palaver.session import Session

CallsArgument: TypeAlias = Annotated[
    list[str] | None,
    Argument(metavar="CALL", help="The ids of calls, or their beginnings. Without one, list what waits."),
]
AlwaysOption: TypeAlias = Annotated[bool, Option("--always", help="Also for later calls of this tool in the session.")]
ByOption: TypeAlias = Annotated[str, Option("--by", metavar="WHO", help="Who decides. Default: your user's name.")]

Word: TypeAlias = Literal["approve", "deny", "edit"]

_COLUMNS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "call": lambda row: row["call"],
    "tool": lambda row: row["tool"],
    "session": lambda row: row["session"][:12],
    "since": lambda row: when(row["since"]),
    "until": lambda row: (
        "" if row["until"] is None else f"{datetime.fromtimestamp(row['until'], UTC):%Y-%m-%d %H:%M} UTC"
    ),
    "arguments": lambda row: json_module.dumps(row["arguments"], ensure_ascii=False),
}


def _arguments(text: str) -> dict[str, Any]:
    """Read the arguments of a call."""
    try:
        read = json_module.loads(text)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise BadParameter('Write all arguments of the call as a JSON object, such as {"amount": 50}.')
    return read


def approve(
    calls: CallsArgument = None,
    session: OneOption = None,
    edit: Annotated[
        dict[str, Any] | None, Option("--edit", metavar="JSON", parser=_arguments, help="Run it with these arguments.")
    ] = None,
    always: AlwaysOption = False,
    by: ByOption = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Approve calls that wait for a person; without a CALL, list them.

    The decision is an entry of the log. The agent runs the call when it responds again, in any process; until then a new decision replaces it.
    """
    if edit is not None and len(calls or ()) != 1:
        raise BadParameter("name the one call that gets other arguments.", param_hint="CALL")
    word: Word = "approve" if edit is None else "edit"
    _decide(calls, session, store, json, word, {"arguments": edit, "always": always, "by": by})


def deny(
    calls: CallsArgument = None,
    session: OneOption = None,
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Why; the model reads it.")] = "",
    always: AlwaysOption = False,
    by: ByOption = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Refuse calls that wait for a person; without a CALL, list them."""
    _decide(calls, session, store, json, "deny", {"reason": reason, "always": always, "by": by})


def _decide(
    calls: list[str] | None, session: str | None, url: str | None, json: bool, word: Word, about: dict[str, Any]
) -> None:
    if not calls and any(about.values()):
        raise BadParameter("name the calls that this is about.", param_hint="CALL")
    with opened(url, writes=bool(calls)) as store:
        session_id = None if session is None else locate(store, session).session.session_id
        waiting = list(waiting_calls(store, session_id))
        if not calls:
            _list(waiting, json=json)
            return
        decided = [call for call in waiting_calls(store, session_id, decided=True) if call not in waiting]
        decision = Decision(decision=word, **about | {"by": about["by"] or getuser()})
        for named in [
            _named(waiting, decided, call) for call in calls
        ]:  # every name is checked before anything is written
            place = decide(Session(store, named.session.session_id).dialog(named.dialog_id), named.call.id, decision)
            done = {"approve": "Approved", "deny": "Refused", "edit": "Approved with other arguments"}[word]
            row: dict[str, Any] = {
                **waiting_row(named),
                "decision": word,
                "by": decision.by,
                "always": decision.always,
                "handle": str(place),
                "replaces": named in decided,
            }
            instead = ", in place of the earlier decision" if named in decided else ""
            later = f", and later calls of {named.call.name} in this session" if decision.always else ""
            emit(json, row, f"{done}: {named.call.name} ({named.call.id}){instead}{later}.")


def _named(waiting: list[WaitingCall], decided: list[WaitingCall], name: str) -> WaitingCall:
    """Return the call with an id, which comes before calls whose ids only begin with it; among the same, those without a decision come first.

    Raises:
        NotFound: None has.
        Ambiguous: Several have.
    """
    named = [[call for call in calls if call.call.id == name] for calls in (waiting, decided)]
    begun = [[call for call in calls if name and call.call.id.startswith(name)] for calls in (waiting, decided)]
    fitting: list[WaitingCall] = next(filter(None, named + begun), [])
    if not fitting:
        hint = "`palaver approve` lists the calls that wait."
        raise NotFound(name, what="waiting call", close=[call.call.id for call in waiting[:5]], hint=hint)
    if len(fitting) > 1:
        known = [f"{call.call.id} in {call.session.session_id[:12]}" for call in fitting]
        raise Ambiguous(name, known, hint="Add --session, or more of the id.")
    return fitting[0]


def _list(waiting: list[WaitingCall], *, json: bool) -> None:
    with paged(data=json):
        if waiting or json:
            print_rows(json, map(waiting_row, waiting), _COLUMNS, cut={"arguments": 20}, drop=("until", "since"))
        else:
            say("No call waits for a decision.")
