"""palaver proxy: record the calls of any program that can be told another address for its vendor."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import Annotated

from typer import Option

from palaver.cli.interrupts import interruptible
from palaver.cli.options import BudgetOption, JsonOption, StoreOption, opened
from palaver.cli.terminal import complain, emit
from palaver.errors import MissingExtra
from palaver.store.connect import shown

_MEND = "Repair what the vendor would refuse: unpaired calls and results, ids, and thinking whose prefix changed."

_PORT = 7787
"""The port by default: programs keep the address in their settings."""

_HINTS = (
    ("OpenAI's SDKs", "OPENAI_BASE_URL={url}/v1"),
    ("Codex", "codex -c openai_base_url={url}/v1"),
    ("Anthropic's SDKs, Claude Code", "ANTHROPIC_BASE_URL={url}"),
    ("Google's SDKs, Gemini CLI", "GOOGLE_GEMINI_BASE_URL={url}"),
)
"""What tells programs the address."""

_TO = "Send all requests to this address. Default: to OpenAI, Anthropic or Google, by path."
_SESSION = (
    "Record all calls in this session; create it if needed. Default: the sessions that requests name, or a new one."
)


def run(
    *,
    to: Annotated[str, Option("--to", metavar="URL", help=_TO)] = "",
    session: Annotated[str, Option("--session", "-s", metavar="SESSION", help=_SESSION)] = "",
    port: Annotated[
        int, Option("--port", min=0, max=65535, help="The port on this machine; 0 for a free one.")
    ] = _PORT,
    mend: Annotated[bool, Option("--mend", help=_MEND)] = False,
    budget: BudgetOption = None,
    redact: Annotated[bool, Option("--redact", help="Remove keys and tokens from what is recorded.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Forward the requests of any program to its vendor, unchanged, and record each as a call of a session. Needs the extra `web`.

    The proxy answers this machine only, until Ctrl-C. Keys pass through and are not recorded. With --mend or --budget requests are changed; the log and a
    header of the answer list each change.
    """
    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "httpx")):
        raise MissingExtra("`palaver proxy`", "web", package="httpx")
    from palaver.proxy.mending import RequestMender  # noqa: PLC0415 - the room needs the extra
    from palaver.proxy.recorder import Recorder  # noqa: PLC0415 - the room needs the extra
    from palaver.proxy.routes import base_of  # noqa: PLC0415 - as above
    from palaver.proxy.serving import serve  # noqa: PLC0415 - as above

    base = base_of(to) if to else ""
    mender = RequestMender(mend, budget) if mend or budget else None
    with interruptible(), opened(store, create=True, writes=True) as known:

        def told(url: str) -> None:
            row = {"url": url, "store": shown(known), "to": base or None}
            emit(json, row, *_lines(url, base), f"It records into {shown(known)}. Ctrl-C ends it.")
            sys.stdout.flush()

        with suppress(KeyboardInterrupt):
            serve(
                Recorder(known, session, redact=redact, mender=mender),
                told,
                lambda line: complain(line, "yellow"),
                port=port,
                to=base,
            )


def _lines(url: str, base: str) -> list[str]:
    if base:
        return [f"Give programs {url} instead of {base}."]
    wide = max(len(name) for name, _ in _HINTS)
    return ["Settings for programs:", *(f"  {name:{wide}}  {hint.format(url=url)}" for name, hint in _HINTS)]
