"""An agent over a store that redacts, without a session of the caller's: whatever a turn says, no secret of it reaches the disk."""

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from palaver import Agent, CallContext, Prompt, ProviderInvoker, Store, open_store, redacting
from palaver.agent import Decision, decide
from palaver.errors import ModelCallFailed, ProviderDown
from palaver.log.redaction import PatternRedactor
from palaver.models import ScriptedProvider
from palaver.prompts import DefaultTagParser
from palaver.tools import Function, tool
from tests.agent.helper import MODEL, QUICK, calling
from tests.privacy.secrets_made import SECRETS

PLACES = ("said", "argument", "result", "failure", "answer", "inbox", "refused", "reason", "down", "gone", "variable")
PLANTED = dict(zip(PLACES, SECRETS.values(), strict=False))
"""A secret of its own for each place in which a turn can say one."""


def _tools(seen: list[str]) -> list[Function]:
    @tool
    def deploy(key: str) -> str:
        """Deploy."""
        seen.append(key)
        return f"deployed with {PLANTED['result']}"

    @tool(needs_approval=True)
    def restart(context: CallContext) -> str:
        """Restart."""
        context.emit_progress("restarting")
        raise ValueError(f"no such key: {PLANTED['failure']}")

    return [deploy, restart]


SCRIPT = [
    calling("deploy", f"I use {PLANTED['answer']}.", "c1", key=PLANTED["argument"]),
    ProviderDown(f"upstream: {PLANTED['down']}", status=503),
    calling("restart", "", "c2"),
    f"no tag: {PLANTED['refused']}",
    f"<answer>with {PLANTED['answer']}</answer>",
    ProviderDown(f"for good: {PLANTED['gone']}", status=503),
]


def _talk(store: Store) -> None:
    """Have a conversation that says a secret wherever one can be said; what ran saw the real ones."""
    seen: list[str] = []
    prompt = Prompt(
        path="ops/system",
        prompt="You deploy with {key}.",
        parser=DefaultTagParser(required_xml_tags=["answer"]),
    )
    agent = Agent(
        "ops", prompt, MODEL, ProviderInvoker(ScriptedProvider(SCRIPT)), tools=_tools(seen), store=store, retry=QUICK
    )
    agent.open("main", {"key": PLANTED["variable"]}).receive(f"Deploy with {PLANTED['said']}.")
    waiting = agent.respond(return_session=True)
    assert waiting.state == "waiting"
    decide(
        agent.current_dialog, waiting.waiting[0].id, Decision(decision="approve", reason=PLANTED["reason"], by="ann")
    )
    agent.receive(f"And hurry: {PLANTED['inbox']}")
    agent.respond()
    assert seen == [PLANTED["argument"]]
    agent.retry = None
    agent.receive("Again.")
    with pytest.raises(ModelCallFailed):
        agent.respond()


def _killed(work: Callable[[], None]) -> None:
    """Do something in a process that is killed right behind it, so that nothing is tidied up."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os.kill(os.getpid(), signal.SIGKILL)
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
            traceback.print_exc()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _on_disk(folder: Path) -> set[str]:
    raw = b"".join(file.read_bytes() for file in folder.iterdir())
    return {place for place, secret in PLANTED.items() if secret.encode() in raw}


@pytest.mark.parametrize("redacted", [True, False])
def test_no_secret_of_a_turn_reaches_the_disk(tmp_path: Path, *, redacted: bool) -> None:
    """Whatever a turn says, no secret of it is in the raw files of a process that was killed.

    Words of users, variables, arguments, results, errors, decisions, refused answers, failures of the provider. Without a redactor all of them
    are there, so the look has teeth.
    """

    def work() -> None:
        store = open_store(str(tmp_path / "store.db"))
        _talk(redacting(store, PatternRedactor()) if redacted else store)

    _killed(work)
    assert _on_disk(tmp_path) == (set() if redacted else set(PLANTED))


def test_a_decision_says_no_secret_either(tmp_path: Path) -> None:
    """What somebody else decides about a call of the agent, from a page that knows only the store, is redacted by the same gate."""
    store = redacting(open_store(str(tmp_path / "store.db")), PatternRedactor())
    script = [calling("restart", "", "c1"), "Not done."]
    prompt = Prompt(path="ops/other", prompt="You deploy.")
    agent = Agent("ops", prompt, MODEL, ProviderInvoker(ScriptedProvider(script)), tools=_tools([]), store=store)
    agent.open("main").receive("Restart.")
    (call,) = agent.respond(return_session=True).waiting
    agent.deny(call.id, PLANTED["reason"])
    assert agent.respond().content == "Not done."
    store.close()
    assert _on_disk(tmp_path) == set()
