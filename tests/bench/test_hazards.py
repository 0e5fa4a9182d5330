"""The table of twelve hazards: palaver's column, and that its verdicts are those of the servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anthropic
import anyio
import pytest

from bench.hazards.palaver_way import Talk
from bench.hazards.plays import HAZARDS, Ask, Hazard, verdict
from bench.hazards.table import BEGIN, END, PAGE

pytestmark = pytest.mark.filterwarnings(
    "ignore:Inheritance class AiohttpClientSession"
)  # of google-genai, from aiohttp


@pytest.mark.parametrize("hazard", HAZARDS, ids=lambda hazard: hazard.name)
def test_palaver_is_accepted_whole(hazard: Hazard) -> None:
    """In each hazard the servers refuse nothing of palaver's, and the last request has everything that they want back."""
    assert anyio.run(verdict, hazard, Talk) == ("accepted", "")


class _Loop:
    """A loop of a user's own over the vendor's client, which forgets what it is told to."""

    forgets: frozenset[str] = frozenset()

    def __init__(self, urls: Mapping[str, str]) -> None:
        self._url = urls["anthropic"]
        self._history: list[Any] = []

    async def ask(self, ask: Ask) -> None:
        self._history.append({"role": "user", "content": ask.text})
        async with anthropic.AsyncAnthropic(base_url=self._url, max_retries=0) as client:
            answer = await client.messages.create(
                model=ask.to[1], max_tokens=99, system=ask.instructions, messages=self._history
            )
        kept = [block for block in answer.content if block.type not in self.forgets]
        self._history.append({"role": "assistant", "content": kept})


class _ForgetfulLoop(_Loop):
    forgets = frozenset({"thinking"})


CHANGED = Hazard(
    "changed", "The instructions change.", (Ask(tools=()), Ask("And?", instructions="Be kind.", tools=())), ("say",) * 2
)
SAME = Hazard("same", "Nothing changes.", (Ask(tools=()), Ask("And?", tools=())), ("say",) * 2)
CUT = Hazard("cut", "Nothing is cut.", (Ask(tools=()), Ask("And?", tools=(), keep=0)), ("say",) * 2)


def test_verdicts_are_what_the_servers_saw() -> None:
    """A refusal has the server's text; thinking that was not sent back is named, although nobody complained; a cut that did not happen is seen."""
    assert anyio.run(verdict, SAME, _Loop) == ("accepted", "")
    state, said = anyio.run(verdict, CHANGED, _Loop)
    assert state == "refused"
    assert "bound to a different conversation" in said
    for hazard in (CHANGED, SAME):
        assert anyio.run(verdict, hazard, _ForgetfulLoop) == ("accepted, thinking lost", "")
    assert anyio.run(verdict, CUT, _Loop) == ("nothing is cut", "")


def test_the_page_is_of_the_pinned_releases() -> None:
    """The page has a row for each hazard, in which palaver is accepted, and names the releases that the benchmark installs."""
    page = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    assert [row[0] for row in rows[1:]] == [hazard.line for hazard in HAZARDS]
    assert {row[1] for row in rows[1:]} == {"accepted"}
    pins = (Path(__file__).parents[2] / "requirements" / "bench.txt").read_text(encoding="utf-8")
    releases = re.findall(r"([\w-]+) (\d[\w.]*)[,.]", page.partition("Releases:")[2])
    assert len(releases) >= 8
    for name, release in releases:
        assert f"\n{name}=={release} " in pins, name
