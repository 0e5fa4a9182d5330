"""./run demo: a session is recorded, killed, resumed, cut to a quarter, explained, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from palaver import Dialog, Session, Store, View, open_store
from palaver.context import POLICIES, Ledger, Policy, compose, policy
from palaver.context.measure import Meter
from palaver.ids import BlobId
from palaver.log import Handle
from palaver.tokens import Budget, counter, rates
from palaver.transcripts import examine
from palaver.view import fold
from palaver.wire import Call, compile, profile  # noqa: A004 - the word for it

HERE = Path(__file__).resolve().parent
MODEL = "claude-sonnet-4-5"
KILL_AFTER = 90
PATIENCE = 60.0
PROVIDERS = (("anthropic", MODEL), ("openai-chat", "gpt-4o"))

console = Console(highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Say what comes next."""
    console.print(f"\n[bold]{text}[/bold]")


def agent(url: str) -> subprocess.Popen[bytes]:
    """Start the agent in a process of its own."""
    return subprocess.Popen([sys.executable, str(HERE / "agent.py"), url])


def entries(url: str) -> int:
    """Count the entries of the session's dialogs, as another process sees them."""
    if not Path(url).exists():
        return 0
    with closing(open_store(url)) as store:
        return sum(
            store.last(node.dialog_id).seq + 1 for one in store.sessions() for node in store.nodes(one.session_id)
        )


def record_and_kill(url: str) -> None:
    """Let the agent work, and kill it in the middle."""
    say(f"1. An agent works over this checkout. After {KILL_AFTER} entries it is killed (SIGKILL).")
    working = agent(url)
    until = time.monotonic() + PATIENCE
    while working.poll() is None and entries(url) < KILL_AFTER and time.monotonic() < until:
        time.sleep(0.02)
    working.send_signal(signal.SIGKILL)
    working.wait()
    console.print(f"   killed; {entries(url)} entries are in {url}")


def resume(url: str) -> None:
    """Start the agent again: it goes on where the log ends."""
    say("2. It is started again. The log says where to go on; nothing recorded is asked or done again.")
    with closing(open_store(url)) as store:
        (record,) = store.sessions()
        waiting = [call for node in store.nodes(record.session_id) for call in store.last(node.dialog_id).open_calls]
    console.print(f"   calls cut off in the middle: {', '.join(waiting) or 'none'}")
    if agent(url).wait() != 0:
        sys.exit("the agent failed")
    console.print(f"   done: {entries(url)} entries")


def once_each(session: Session) -> None:
    """Prove that every call was answered exactly once."""
    for dialog in session.dialogs:
        calls = Counter(call.id for message in dialog.messages for call in message.tool_calls())
        results = Counter(message.tool_call_id for message in dialog.messages if message.role == "tool")
        if not set(calls) <= set(results) or {*calls.values(), *results.values()} != {1}:
            sys.exit(f"a call was lost or answered twice in {dialog.dialog_id}")
    console.print(f"   every call has exactly one result; {session.opened}")


def quarter(store: Store, dialog: Dialog) -> View:
    """Show the view at a quarter of the session's size, for two providers."""
    whole = fold(store, dialog.dialog_id)
    meter = Meter(counter(MODEL))
    size = meter.view(whole).total
    budget = Budget.of_input(size // 4)
    say(f"4. The whole session is {size:,} tokens. What fits into a quarter of it, for two providers:")
    small = whole
    for name, model in PROVIDERS:
        done = compose(whole, made("offload", model), budget, counter(model))
        request = compile(
            done.view, profile(name, model), Call(model=model, then="Go on."), lambda one: store.blob(BlobId(one))
        )
        request.check()
        small = done.view if name == "anthropic" else small
        shown = Counter(
            block.reason.value for exchange in done.view.exchanges for block in exchange.blocks() if block.reason
        )
        gone = Counter(omission.reason.value for omission in done.view.omissions)
        console.print(
            f"   {name:<12} {done.tokens_after:>8,} tokens, valid; {len(done.view.exchanges)} of {len(whole.exchanges)} exchanges; "
            f"in another form: {dict(shown) or 'none'}; left out: {dict(gone) or 'nothing'}; changed on the wire: {len(request.report)}"
        )
    return small


def made(name: str, model: str) -> Policy:
    """Make a policy by its name."""
    manager = policy(name, model)
    if not isinstance(manager, Policy):
        sys.exit(f"{name} is no policy")
    return manager


def bring_back(session: Session, small: View) -> None:
    """Recall one thing that was left out."""
    handles = [
        block.origin for exchange in small.exchanges for block in exchange.blocks() if block.reason and block.origin
    ]
    handle: Handle = handles[0] if handles else next(small.omissions[0].handles())
    placeholder = next(
        (_text(block.content) for exchange in small.exchanges for block in exchange.blocks() if block.origin == handle),
        "",
    )
    say(f"5. Nothing is lost: recall {handle}")
    console.print(f"   the model sees: {placeholder[:200]!r}", markup=False)
    found = session.recall(handle)
    text = _text(found) if not hasattr(found, "message") else found.message.text_content()
    console.print(f"   recalled: {len(text):,} characters, beginning {text[:70]!r}", markup=False)


def _text(content: object) -> str:
    said = getattr(content, "content", "")
    return said if isinstance(said, str) else "".join(_text(part) for part in said) if isinstance(said, tuple) else ""


def costs(store: Store, dialog: Dialog) -> None:
    """Say what every policy would have sent: the view before each of the model's answers, at list price, without a cache."""
    say("7. What each policy would have sent, call by call, under a budget of a quarter:")
    price = rates(MODEL).input
    answers = [header.seq for header in store.headers(dialog.dialog_id) if header.role == "assistant"]
    views = [fold(store, dialog.dialog_id, seq - 1) for seq in answers]
    table = Table("policy", "calls", "tokens sent", "largest", "dollars", box=None)
    for name in POLICIES:
        ledger = Ledger(meter=Meter(counter(MODEL)))
        limit = max(ledger.meter.view(view).total for view in views) // 4 if name != "full" else 10**9
        sizes = [
            compose(view, made(name, MODEL), Budget.of_input(limit), counter(MODEL), ledger=ledger).tokens_after
            for view in views
        ]
        table.add_row(name, f"{len(sizes)}", f"{sum(sizes):,}", f"{max(sizes):,}", f"{sum(sizes) * price:.2f}")
    console.print(table)
    console.print("   (Without the provider's cache. Which policy is best for you, with cache and recall: the lab.)")


def main() -> None:
    """Run the demo."""
    folder = Path(tempfile.mkdtemp(prefix="palaver-demo-"))
    url = str(folder / "demo.db")
    record_and_kill(url)
    resume(url)
    with closing(open_store(url)) as store:
        (record,) = store.sessions()
        session = Session.open(record.session_id, store)
        once_each(session)
        say("3. The tree: the agent also tried a branch.")
        console.print(session.tree_overview(), markup=False)
        small = quarter(store, session.root)
        bring_back(session, small)
        found = examine(store, session.session_id)
        say("6. The doctor:")
        console.print(
            f"   {'healthy' if found.healthy else 'FAULTS'}: {found.total} entries, {found.unreachable} unreachable; next request: {found.valid}"
        )
        costs(store, session.root)
    say("Now yours:")
    console.print("   .venv/bin/palaver import ~/.claude/projects/*/*.jsonl")
    console.print(
        "   .venv/bin/palaver sessions        .venv/bin/palaver doctor        .venv/bin/palaver view SESSION --budget 50000 --explain"
    )
    console.print(f"   (this demo's session stays in {url}: .venv/bin/palaver show demo --store {url})")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
