"""The pytest plugin, run as its users run it: in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from palaver.errors import InvalidInput
from palaver.store import MemoryStore
from palaver.testing.cassettes import Cassette
from palaver.transcripts import Importer

pytest_plugins = ["pytester"]

QUIET = ("-p", "no:langsmith_plugin", "-p", "no:cacheprovider", "-p", "no:xdist")

CHAT = '''
from palaver import Agent, ScriptedProvider

asked = []

def made():
    asked.append(1)
    return ScriptedProvider([{"tool_calls": [{"name": "weigh", "id": "c1", "arguments": {"parcel": "lamp"}}]}, "12 kg."])

def weigh(parcel: str) -> str:
    """Weigh."""
    return "12"

def test_answer(palaver_cassette, request):
    provider = palaver_cassette(made)
    agent = Agent("clerk", "You weigh.", "gpt-5-mini", provider, tools=[weigh])
    assert agent.respond(QUESTION).content == "12 kg."
    assert len(asked) == EXPECTED
'''


def chat(pytester: pytest.Pytester, *options: str, question: str = "How heavy?", asked: int) -> pytest.RunResult:
    """Run the test of a chat that asks a question, and expects that its provider is made so often."""
    source = CHAT.replace("QUESTION", repr(question)).replace("EXPECTED", str(asked))
    pytester.makepyfile(test_chat=source)
    return pytester.runpytest_inprocess(*QUIET, *options)


def test_cassette_is_recorded_once_and_played_back(pytester: pytest.Pytester) -> None:
    """The first run asks the provider, a second one does not make it; a changed question is refused; `always` records it, and `never` needs a file."""
    with pytest.raises(InvalidInput, match="There is no cassette"):
        Cassette(pytester.path / "none.palaver", "never")
    chat(pytester, asked=1).assert_outcomes(passed=1)
    chat(pytester, "--palaver-record=never", asked=0).assert_outcomes(passed=1)
    changed = chat(pytester, question="How long?", asked=0)
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(["*was not recorded in test_answer.palaver*"])
    changed.stdout.fnmatch_lines(["*--palaver-record=always*"])
    chat(pytester, "--palaver-record=always", question="How long?", asked=1).assert_outcomes(passed=1)
    chat(pytester, question="How long?", asked=0).assert_outcomes(passed=1)
    cassette = pytester.path / "cassettes" / "test_chat" / "test_answer.palaver"
    store = MemoryStore()
    (imported,) = Importer(store).import_path(cassette)
    assert imported.outcome == "new"
    assert store.last(store.nodes(imported.session_id)[0].dialog_id).number == 4


def test_requests_policies_and_kills(pytester: pytest.Pytester) -> None:
    """A request that a vendor refuses fails with its words; kept messages are known by index; a loop that resumes survives, one that repeats is caught."""
    pytester.makepyfile(
        test_loop='''
import pytest
from palaver import Agent, ScriptedProvider

def test_valid(palaver_valid):
    palaver_valid({"model": "gpt-5", "messages": [{"role": "user", "content": "hi"}]}, api="openai-chat")
    with pytest.raises(AssertionError, match="openai-chat refuses the request: .*tool"):
        orphan = {"role": "tool", "tool_call_id": "c1", "content": "x"}
        palaver_valid({"model": "gpt-5", "messages": [orphan]}, api="openai-chat")

def test_kept(palaver_kept):
    messages = [{"role": "user", "content": f"{n} " + "word " * 500} for n in range(20)]
    kept = palaver_kept(messages, model="gpt-5", budget=4_000)
    assert kept and kept[-1] == 19 and 1 not in kept

def script(request):
    done = any(message["role"] == "tool" for message in request["messages"])
    return "12 kg." if done else {"tool_calls": [{"name": "weigh", "id": "c1", "arguments": {"parcel": "lamp"}}]}

def weigh(parcel: str) -> str:
    """Weigh."""
    return "12"

def loop(store):
    agent = Agent("clerk", "You weigh.", "gpt-5-mini", ScriptedProvider(script), tools=[weigh], store=store)
    agent.open("main", resume=True)
    said = [message.text_content() for message in agent.current_dialog.messages if message.role.value == "user"]
    agent.respond("" if said else "How heavy?") if not any(m.text_content() == "12 kg." for m in agent.current_dialog.messages) else None

def test_survives(palaver_survives):
    first, *killed = palaver_survives(loop)
    assert len(killed) > 5
    for outcome in killed:
        assert outcome.texts[-1] == "assistant: 12 kg.", outcome.step
        assert outcome.texts.count("user: How heavy?") == 1, outcome.step

def test_broken_loop(palaver_survives):
    def broken(store):
        assert not list(store.sessions()), "begins anew each time"
        loop(store)
    with pytest.raises(AssertionError, match="Killed after write .*, the loop does not resume: begins anew"):
        palaver_survives(broken)
'''
    )
    result = pytester.runpytest_subprocess(*QUIET)
    result.assert_outcomes(passed=4)


def test_plugin_loads_little(tmp_path: Path) -> None:
    """The entry point names the plugin, and pytest loads it without palaver's stores, providers and third-party packages."""
    (entry,) = entry_points(group="pytest11", name="palaver")
    assert entry.value == "palaver.testing.plugin"
    program = """
import sys, pytest
before = set(sys.modules)
import palaver.testing.plugin
new = {name.partition(".")[0] for name in set(sys.modules) - before}
print(sorted(new), len(set(sys.modules) - before))
"""
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    names, count = said.rsplit(" ", 1)
    assert names == "['palaver']"
    assert int(count) < 10
