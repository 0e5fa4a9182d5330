"""palaver calls: the model calls of a dialog, and what two of them saw differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from typer import Argument, BadParameter

from palaver.cli.options import JsonOption, SessionArgument, StoreOption, found
from palaver.cli.terminal import emit, paged, print_rows, say
from palaver.errors import NotFound
from palaver.ids import BlobId
from palaver.log import Handle
from palaver.messages import Content, Role, Usage, words_of
from palaver.plurals import counted
from palaver.session import Dialog
from palaver.session.calls import ModelCall
from palaver.session.differences import CallDifference, Difference, compare
from palaver.tokens import cost_of
from palaver.view import fold
from palaver.wire import Call, Request, compile, profile  # noqa: A004 - the word for it

__all__ = ["Answer", "numbered", "run"]

_WIDTH = 96
"""Characters of a block that a line shows."""


class Answer(NamedTuple):
    """A response of a session that was imported, as a call: its file says what was said, not what the call was given.

    Attributes:
        number: Its number, starting at 1.
        handle: The entry that begins the response.
        model: The model.
        at: When it came, or None.
        usage: What the provider reported, or None.
    """

    number: int
    handle: Handle
    model: str
    at: float | None
    usage: Usage | None


def run(
    session: SessionArgument,
    first: Annotated[int | None, Argument(metavar="[N", min=1, help="Compare this call …")] = None,
    second: Annotated[int | None, Argument(metavar="M]", min=1, help="… with this one.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the model calls of a session, numbered as `view --call N` takes them; with two numbers, compare what these saw.

    Calls that palaver made are recorded. Those of an imported session are reconstructed from its responses.
    """
    with found(session, store) as (_, dialog, _, _), paged(data=json):
        if first is not None:
            if second is None:
                raise BadParameter(
                    f"name two calls to compare; `palaver view {session} --call {first}` shows one.", param_hint="M"
                )
            one, other = numbered(dialog, first), numbered(dialog, second)
            difference = compare(_comparable(dialog, one), _comparable(dialog, other))
            row = _data(difference) | {"recorded": isinstance(one, ModelCall)}
            if not (json or row["recorded"]):
                say("Reconstructed from what was said before each response:")
            emit(json, row, *_lines(difference))
            return
        calls = list(dialog.calls) or _answers(dialog)
        rows = [_row(call) for call in calls]
        if rows:
            print_rows(json, rows, _COLUMNS)
        if not json:
            how = "" if not calls else ", recorded" if rows[0]["recorded"] else ", reconstructed from the responses"
            say(f"{counted(len(calls), 'call')}{how}.")


def _answers(dialog: Dialog) -> list[Answer]:
    told = [(place, each) for place, each in dialog.messages.placed() if each.role is Role.ASSISTANT]
    return [
        Answer(number, place, each.model or "", each.timestamp, each.usage)
        for number, (place, each) in enumerate(told, 1)
    ]


def numbered(dialog: Dialog, number: int) -> ModelCall | Answer:
    """Return a call by its number.

    Raises:
        NotFound: There is none.
    """
    calls = dialog.calls if len(dialog.calls) else _answers(dialog)
    if number > len(calls):
        hint = f"The dialog has {counted(len(calls), 'call')}; `palaver calls` lists them."
        raise NotFound(str(number), what="call", hint=hint)
    return calls[number - 1]


def _comparable(dialog: Dialog, call: ModelCall | Answer) -> ModelCall | Request:
    """Return a recorded call, or the request that shows what was said before a response."""
    if isinstance(call, ModelCall):
        return call
    store, place = dialog.store, call.handle
    view = fold(store, place.dialog, place.seq - 1)
    return compile(view, profile("openai-chat"), Call(model=call.model), lambda digest: store.blob(BlobId(digest)))


def _row(call: ModelCall | Answer) -> dict[str, Any]:
    usage = (call.usage() if isinstance(call, ModelCall) else call.usage) or Usage()
    cost = cost_of(usage, call.model, call.at)
    row = {"call": call.number, "at": call.at, "model": call.model, "entry": str(call.handle)}
    row |= {"recorded": isinstance(call, ModelCall), "dollars": cost.cost or None, "estimated": cost.estimated > 0}
    row |= {"read": usage.input_tokens, "cached": usage.cache_read_tokens, "written": usage.output_tokens}
    if isinstance(call, ModelCall):
        row |= {name: call.sent[name] for name in ("profile", "digest", "bytes", "compiler") if name in call.sent}
        row["reproducible"] = call.reproducible
    return row


def _figure(number: int) -> str:
    return f"{number:,}" if number else ""


_COLUMNS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "call": lambda row: str(row["call"]),
    "when (UTC)": lambda row: datetime.fromtimestamp(row["at"], UTC).strftime("%Y-%m-%d %H:%M:%S") if row["at"] else "",
    "model": lambda row: row["model"],
    "read": lambda row: _figure(row["read"]),
    "cached": lambda row: _figure(row["cached"]),
    "written": lambda row: _figure(row["written"]),
    "cost": lambda row: f"{'~' if row['estimated'] else ''}${row['dollars']:.4f}" if row["dollars"] else "",
    "entry": lambda row: row["entry"],
}


# --- two calls ------------------------------------------------------------------------------------------------------------------------


def _data(difference: CallDifference) -> dict[str, Any]:
    broken = None if difference.broken is None else difference.broken.decode()
    prefix = {"kept": difference.kept, "broken": broken, "instead": difference.unit.decode() or None}
    blocks = {name: [_block(one) for one in getattr(difference, name)] for name in ("entered", "left", "changed")}
    return {**blocks, "tools": list(difference.tools), "prefix": prefix}


def _block(one: Difference) -> dict[str, Any]:
    before, after = (content and _words(content) for content in (one.before, one.after))
    return {"place": one.place and str(one.place), "before": before, "after": after, "why": one.why}


def _lines(difference: CallDifference) -> Iterator[str]:
    if not difference:
        yield "Both calls saw the same."
    for sign, blocks in (("+", difference.entered), ("-", difference.left), ("~", difference.changed)):
        for one in blocks:
            shown = one.after or one.before
            yield f"{sign} {one.place or ''}  {_cut(_words(shown)) if shown else ''}  ({one.why})"
    for tool in difference.tools:
        yield f"{tool[0]} tool {tool[1:]}"
    kept = counted(difference.kept, "unit")
    if difference.broken is None:
        yield f"The second request begins with the whole first ({kept}): the cached prefix holds."
    else:
        yield f"The cached prefix holds for {kept}, then breaks:"
        yield f"  - {_cut(difference.broken.decode())}"
        yield f"  + {_cut(difference.unit.decode()) or 'nothing'}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."


def _words(content: Content) -> str:
    return words_of(content) or f"[{content.type}]"
