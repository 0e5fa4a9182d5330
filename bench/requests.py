"""A request: in a process that has just opened the conversation, in one that goes on with it, and as a list that `fit` cuts.

The answers think, so that each request has the fingerprints of what thinking is bound to. What these cost shows against the same request of an API that
binds nothing, and what a model costs that checks them, against one that does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from bench.measure import Row, compared, in_turn, text, timed
from palaver import (
    AssistantMessage,
    Dialog,
    Message,
    Session,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    fit,
)
from palaver.log import MessageEntry
from palaver.messages import ThinkingContent
from palaver.providers import profile
from palaver.store import SqliteStore
from palaver.store.records import payloads_of
from palaver.wire import Call
from palaver.wire import compile as compiled
from palaver.wire.request import Memo

DEPTHS = (1_000, 2_000)
LISTED = (500, 1_000)
API = "anthropic"
MODELS = {"trusts": "claude-opus-5", "checks": "claude-opus-5-5"}
"""A model that reads thinking whatever comes before it, and one that refuses it where that changed."""

SIZE = 1_000
WINDOW = 60_000
_REPEATED = 15


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time requests of conversations of several lengths."""
    rows: list[Row] = []
    for depth in DEPTHS[:1] if quick else DEPTHS:
        paths = {kind: grown(folder / f"{kind}-{depth}.db", depth, model) for kind, model in MODELS.items()}
        rows += [*_cold(paths, depth), *_warm(paths, depth), *_fingerprints(paths)]
    for length in LISTED[:1] if quick else LISTED:
        rows += _fits(length)
    return rows


def _round(number: int, model: str) -> tuple[Message, Message]:
    """Return an answer that thinks and calls a tool, and the tool's result."""
    call = ToolCallContent(id=f"call_{number}", name="read", args={"path": f"src/{number}.py"})
    thought = ThinkingContent(text(300, number), f"c2lnbmF0dXJl{number}", provider=API, model=model)
    return (
        AssistantMessage(contents=(thought, call), response_id=f"response-{number}", model=model),
        ToolMessage.from_result(
            ToolResultContent(id=call.id, name="read", content=f"{number} {text(SIZE, number % 64)}")
        ),
    )


def grown(path: Path, depth: int, model: str) -> Path:
    """Let a conversation grow to so many messages, each answer that of a request."""
    with closing(SqliteStore(path)) as store:
        dialog, memo = Session.create(store, path.stem).root, Memo()
        dialog.append(UserMessage("Read the files."))
        for number in range(depth // 2):
            go_on(dialog, number, model, memo)
    return path


def go_on(dialog: Dialog, number: int, model: str, memo: Memo) -> None:
    """Record a round as an agent does, going on from what it compiled last."""
    request = compiled(
        dialog.view(), profile(API, model), Call(model=model), payloads_of(dialog.store, dialog.session_id), memo
    )
    answer, result = _round(number, model)
    dialog.record(MessageEntry(message=answer, bound=request.bound), MessageEntry(message=result))


# --- a cold turn ------------------------------------------------------------------------------------------------------------------


def _cold(paths: Mapping[str, Path], depth: int) -> Iterator[Row]:
    """Time the first request of a new process, modules loaded, against its rows read, parsed and written as JSON in that process."""
    for kind, path in paths.items():
        small = grown(path.with_name(f"small-{path.name}"), 2, MODELS[kind])
        words = [sys.executable, "-m", "bench.requests", MODELS[kind], str(small), str(path)]
        said = [json.loads(subprocess.check_output(words)) for _ in range(_REPEATED)]
        ours, limit = (min(times) for times in zip(*said, strict=True))
        what = f"open and request, {depth:,} messages, new process, model {kind}; rows read, parsed, dumped"
        yield compared(what, ours, limit)


def cold(model: str, small: Path, path: Path) -> tuple[float, float]:
    """Return how long the request of a conversation takes, and reading, parsing and writing its rows; after both for a small one."""
    _first(model, small)
    _plain(small)
    return timed(partial(_first, model, path)), timed(partial(_plain, path))


def _first(model: str, path: Path) -> bytes:
    with closing(SqliteStore(path)) as store:
        return Session.open(store, path.stem).root.request(API, model).data


def _plain(path: Path) -> str:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        return json.dumps([json.loads(body) for (body,) in connection.execute("SELECT body FROM bodies")])


# --- the next request of a conversation -------------------------------------------------------------------------------------------


def _warm(paths: Mapping[str, Path], depth: int) -> Iterator[Row]:
    """Time the request after two more messages, to a model that checks and to one that does not."""
    times: dict[str, list[float]] = {kind: [] for kind in paths}
    with ExitStack() as opened:
        stores = {kind: opened.enter_context(closing(SqliteStore(path))) for kind, path in paths.items()}
        dialogs = {kind: Session.open(store, paths[kind].stem).root for kind, store in stores.items()}
        memos = {kind: Memo() for kind in paths}
        for number in range(_REPEATED):
            for kind, dialog in dialogs.items():
                go_on(dialog, depth + number, MODELS[kind], memos[kind])
                dialog.view()
                request = partial(dialog.request, API, MODELS[kind])
                times[kind].append(timed(lambda: request().digest))  # noqa: B023 - called now
    what = f"a request after two more of {depth:,} messages, model checks; trusts"
    yield compared(what, min(times["checks"]), min(times["trusts"]))


def _fingerprints(paths: Mapping[str, Path]) -> Iterator[Row]:
    """Time a request with and without fingerprints, as an agent makes it after the last one, and with nothing compiled before."""
    for kind, path in paths.items():
        with closing(SqliteStore(path)) as store:
            view = Session.open(store, path.stem).root.view()
            view.load()
            known = profile(API, MODELS[kind])
            both = [(known, Memo()), (replace(known, api=replace(known.api, binding=())), Memo())]
            call, load = Call(model=MODELS[kind]), payloads_of(store, store.node(view.dialog_id).session_id)

            def job(_number: int, which: int, *, new: bool) -> None:
                what, memo = both[which]  # noqa: B023 - called now
                request = compiled(view, what, call, load, None if new else memo)  # noqa: B023 - the same
                request.check()
                request.digest  # noqa: B018 - it is made when it is first read

            for new, said in ((False, "after the last one"), (True, "from nothing")):
                job(0, 0, new=new)
                job(0, 1, new=new)
                times = in_turn(partial(job, which=0, new=new), partial(job, which=1, new=new), _REPEATED)
                yield compared(f"  a request {said}, model {kind}; without fingerprints", *times, "≤ 1.1")


# --- fit in a loop ----------------------------------------------------------------------------------------------------------------


def _fits(length: int) -> Iterator[Row]:
    """Time `fit` of a list that grows by two messages a call, for a model that checks and one that does not."""
    items = [{"role": "user", "content": "Read the files."}]
    items += [item for number in range(length // 2 + _REPEATED) for item in _listed(number)]
    times: dict[str, list[float]] = {kind: [] for kind in MODELS}
    for number in range(_REPEATED):
        for kind, model in MODELS.items():
            listed = items[: length + 1 + 2 * number]
            times[kind].append(timed(partial(fit, listed, model=model, budget=WINDOW)))
    what = f"fit of {length:,} messages and two more a call, model checks; trusts"
    yield compared(what, min(times["checks"]), min(times["trusts"]))


def _listed(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a round as Anthropic's messages."""
    thought = {"type": "thinking", "thinking": text(300, number), "signature": f"c2lnbmF0dXJl{number}"}
    call = {"type": "tool_use", "id": f"call_{number}", "name": "read", "input": {"path": f"src/{number}.py"}}
    result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": f"{number} {text(SIZE, number % 64)}"}
    return {"role": "assistant", "content": [thought, call]}, {"role": "user", "content": [result]}


if __name__ == "__main__":
    print(json.dumps(cold(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
