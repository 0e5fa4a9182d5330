"""./run demo: an agent is killed and goes on, its session is cut to a quarter, and everything that left comes back."""

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

from palaver import Session, open_store

HERE = Path(__file__).resolve().parent
KILL_AFTER = 60
PATIENCE = 60.0
SHOWN = 9
"""Lines of a command's output that are shown."""


def say(text: str) -> None:
    """Print what comes next."""
    print(f"\n\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else f"\n{text}")


def agent(url: str) -> subprocess.Popen[bytes]:
    """Start the agent in a process of its own."""
    return subprocess.Popen([sys.executable, str(HERE / "agent.py"), url])


def entries(url: str) -> int:
    """Count the entries of the store, as another process sees them."""
    if not Path(url).exists():
        return 0
    with closing(open_store(url)) as store:
        nodes = [node for one in store.sessions() for node in store.nodes(one.session_id)]
        return sum(store.last(node.dialog_id).seq + 1 for node in nodes)


def palaver(url: str, *words: str) -> list[str]:
    """Run a command, print the first lines of its output, and return all."""
    print(f"   $ palaver {' '.join(words)}")
    command = [sys.executable, "-m", "palaver", *words, "--store", url]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = ran.stdout.splitlines()
    for line in lines[:SHOWN]:
        print(f"   {line[:140]}")
    if ran.returncode:
        sys.exit(f"palaver {words[0]} failed")
    return lines


def record_and_kill(url: str) -> None:
    """Let the agent work, and kill it in the middle."""
    say(f"1. An agent reviews this checkout. After {KILL_AFTER} entries it is killed with SIGKILL.")
    working = agent(url)
    until = time.monotonic() + PATIENCE
    while working.poll() is None and entries(url) < KILL_AFTER and time.monotonic() < until:
        time.sleep(0.02)
    working.send_signal(signal.SIGKILL)
    working.wait()
    print(f"   {entries(url)} entries are in {url}.")


def resume(url: str) -> None:
    """Start the agent again: it goes on where the log ends."""
    say("2. It is started again, and goes on where its log ends. Nothing that was recorded is asked or done again.")
    if agent(url).wait() != 0:
        sys.exit("the agent failed")
    with closing(open_store(url)) as store:
        (record,) = store.sessions()
        for dialog in Session.open(store, record.session_id).dialogs:
            calls = Counter(call.id for message in dialog.messages for call in message.tool_calls())
            results = Counter(message.tool_call_id for message in dialog.messages if message.role == "tool")
            if not set(calls) <= set(results) or {*calls.values(), *results.values()} != {1}:
                sys.exit(f"a call was lost or answered twice in {dialog.dialog_id}")
    print(f"   {entries(url)} entries; every call has exactly one result, on both branches:")
    palaver(url, "branch", "tree", "demo")


def cut(url: str) -> None:
    """Fit the session into a quarter of its size, for two providers, and bring back what left."""
    say("3. What a model would see in a quarter of the room, valid for two providers:")
    with closing(open_store(url)) as store:
        dialog = Session.open(store, "demo").root
        size = dialog.compaction.meter().view(dialog.view()).total
        for profile, model in (("anthropic", "claude-sonnet-4-5"), ("openai-chat", "gpt-4o")):
            request = dialog.request(profile, model, budget=size // 4)
            print(f"   {profile:<12} {len(request.data):,} bytes, checked against the provider's rules")
    lines = palaver(url, "view", "demo", "--budget", str(size // 4), "--explain")
    place = next(line.split()[0] for line in lines if line.startswith("  ") and line.split()[0].count(":") > 1)
    say(f"4. Nothing is lost. The original of {place}:")
    palaver(url, "show", place)


def main() -> None:
    """Run the demo."""
    url = str(Path(tempfile.mkdtemp(prefix="palaver-demo-")) / "demo.db")
    record_and_kill(url)
    resume(url)
    cut(url)
    say("5. The doctor:")
    palaver(url, "doctor", "demo")
    say("Now your own sessions:")
    print("   .venv/bin/palaver import          # offers those of Claude Code, Codex, pi, Gemini CLI and OpenCode")
    print("   .venv/bin/palaver sessions")
    print("   .venv/bin/palaver view SESSION --budget 50000 --explain")
    say("And this one in the browser:")
    print(f"   .venv/bin/palaver open demo --store {url}")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
