"""palaver why: when a model saw an entry, when it left the view and by what, and what the model did after."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

from typer import Argument

from palaver.browsing.calls import calls
from palaver.browsing.places import locate
from palaver.browsing.why import StepRow, WhyRow, why
from palaver.cli.options import JsonOption, StoreOption, opened
from palaver.cli.terminal import emit, paged
from palaver.errors import InvalidInput


def run(
    handle: Annotated[str, Argument(metavar="HANDLE", help="An entry or block, as `show` and `search` print it.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show when a model saw an entry, when and why it left the view, what still says it, and what the model did next."""
    with opened(store) as source:
        place = locate(source, handle, entries=True)
        if place.handle is None:
            raise InvalidInput(
                f"{handle!r} is a session.", hint="Name an entry; `palaver show SESSION --entries` lists them."
            )
        row = why(place.dialog, place.handle, calls(place.dialog))
    with paged(data=json):
        emit(json, row, *_lines(row))


def _lines(row: WhyRow) -> Iterator[str]:
    yield f"{row['handle']}  {row['role'] or row['kind']}, {_time(row['at'])}"
    for step in row["steps"]:
        cause = "" if step is row["steps"][0] else f"{_time(step['at'])}, {step['kind']} {step['since']}: "
        yield f"  {cause}{_state(step)}; {_seen(step)}"
        for still in step["still"]:
            yield (
                f"    a {still['what']} says it {still['how']}"
                if still["how"] != "made from it"
                else f"    a {still['what']} was made from it"
            )
    yield f"Now {_state(row['steps'][-1])}. `palaver show {row['handle']}` prints it."
    yield "The first responses after it left:" if row["left"] else "The first responses after it:"
    for action in row["after"]:
        yield f"  {action['handle']}  {', '.join(f'call {name}' for name in action['calls']) or 'answers'}"
    if not row["after"]:
        yield "  none"
    if row["named"]:
        yield f"Its handle is named later in {', '.join(row['named'])}."


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") if at else "at an unknown time"


def _state(step: StepRow) -> str:
    why = f" ({step['reason'].replace('_', ' ')} by {step['by']})" if step["reason"] else ""
    return {"whole": "in view, whole", "no": "not in view"}.get(step["shown"], f"in view {step['shown']}") + why


def _seen(step: StepRow) -> str:
    if step["calls"] is None:
        return "no call"
    first, last = step["calls"]
    return f"call {first}" if first == last else f"calls {first} to {last}"
