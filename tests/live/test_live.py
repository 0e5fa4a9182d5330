"""The scenarios of `./run live`, against the stand-ins: its code runs in every run of the tests, without a key."""

from __future__ import annotations

import anyio
import pytest

from palaver.tokens import UnknownModelWarning
from tests.live.__main__ import main
from tests.live.matrix import APIS, LiveApi, cells
from tests.live.scenarios import SCENARIOS, Bounds

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{UnknownModelWarning.__module__}.{UnknownModelWarning.__qualname__}",
    "ignore:Inheritance class AiohttpClientSession",  # of google-genai, from aiohttp
)
NAMES = [f"{api.prefix} {api.models[0]}" for api in APIS]


@pytest.mark.parametrize("api", APIS, ids=NAMES)
def test_scenarios_are_accepted(api: LiveApi) -> None:
    """No stand-in refuses or drops anything in any scenario, and a scenario makes no more calls than it says."""
    side = api.side(*api.models)

    async def played() -> None:
        count = 0
        async for model, scenario, outcome in cells(
            api, api.standing_in(side.server.url), Bounds(999, 999.0), side=side
        ):
            assert outcome.startswith("accepted") or (not api.served and "no tool of the server's" in outcome), (
                f"{model}, {scenario.name}: {outcome}"
            )
            assert "dropped" not in outcome, f"{model}, {scenario.name}: {outcome}"
            assert len(side.server.served) <= scenario.calls
            count += len(side.server.served)
            side.server.forget()
        assert count

    with side.server:
        anyio.run(played)


def test_bounds_end_the_calls() -> None:
    """Where the next call could cost more calls or dollars than remain, nothing is sent."""
    api = APIS[0]
    side = api.side(*api.models)

    async def outcomes(bounds: Bounds) -> set[str]:
        return {outcome async for _, _, outcome in cells(api, api.standing_in(side.server.url), bounds, side=side)}

    with side.server:
        for bounds in (Bounds(5, 999.0), Bounds(999, 0.5)):
            assert "not played: the bound is reached" in anyio.run(outcomes, bounds)
            assert bounds.calls >= 0
            assert bounds.dollars >= 0
    assert len(side.server.served) < 5 + 0.5 / 0.02


def test_the_matrix_is_printed_without_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    """`./run live --list` and `./run live` without a key list every model and scenario, and send nothing."""
    for words in (["--list"], []):
        assert main(words) == 0
        said = capsys.readouterr().out
        assert said.count("is not set") == len(APIS)
        assert all(model in said for api in APIS for model in api.models)
        assert all(said.count(f" {scenario.name} ") == len(APIS) for scenario in SCENARIOS)
        assert "0 calls" in said
