"""Conversations that workers answer: `palaver work demo.fleet:fleet` in each of them, `uvicorn demo.fleet:app` for the web.

A request only writes what was said and wakes its session, so it takes some milliseconds, and a worker answers. The environment says which store
(`PALAVER_STORE`, the address of a PostgreSQL database) and which model (`PALAVER_MODEL`).
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, Literal

import procrastinate
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from palaver import Agent, Session, tool
from palaver.agent import Decision, open_calls
from palaver.errors import NotFound, PalaverError, StoreError
from palaver.integrations.fleet import Fleet
from palaver.store.postgres import PostgresStore


class Said(BaseModel):
    """What a user says."""

    text: str


@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Give money back."""
    return f"{amount} given back"


def make_fleet(address: str, model: tuple[Any, ...]) -> Fleet:
    """Return the fleet of a store's address and a model: its name, and what sends its requests if the name does not say."""
    store = PostgresStore(address)
    # the schema is named: a role with a schema of its own name, such as `palaver`, has its tables there
    path = {"options": "-csearch_path=public"}
    queue = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=store.conninfo, kwargs=path))

    def clerk(_name: str) -> Agent[Any]:
        return Agent("clerk", "You answer briefly.", *model, store=store, tools=[refund])

    return Fleet(queue, store, clerk)


def make_queue(fleet: Fleet) -> None:
    """Make the tables of the queue, once, and an index that procrastinate does without: jobs are looked up by their locks."""
    with fleet.app.open():
        fleet.app.schema_manager.apply_schema()
        fleet.app.connector.get_sync_connector().execute_query(
            "CREATE INDEX palaver_locks ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing')"
        )


def make_app(fleet: Fleet) -> FastAPI:
    """Return the application of a fleet."""
    app = FastAPI(exception_handlers={PalaverError: _refused})

    @app.post("/talks/{name}", status_code=202)
    async def say(name: str, said: Said) -> dict[str, str]:
        """Keep what was said; a worker answers."""
        return {"session": await fleet.say(name, said.text)}

    @app.get("/talks/{name}")
    def read(name: str) -> dict[str, Any]:
        """Show the conversation, and the calls that wait for a person."""
        dialog = Session.open(fleet.store, name).newest
        texts = [{"role": message.role, "text": str(message.content)} for message in dialog.messages]
        return {"messages": texts, "waiting": [call.id for call in open_calls(dialog)]}

    @app.post("/talks/{name}/calls/{call}/{decision}", status_code=202)
    async def decide(name: str, call: str, decision: Literal["approve", "deny"], by: str = "") -> None:
        """Decide about a call that waits, today or tomorrow."""
        await fleet.decide(name, call, Decision(decision=decision, by=by))

    return app


async def _refused(_request: object, error: Exception) -> JSONResponse:
    status = next((code for kind, code in ((NotFound, 404), (StoreError, 503)) if isinstance(error, kind)), 500)
    return JSONResponse({"error": str(error)}, status)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the fleet or the application
    """Return what was asked for: a module that is only imported opens nothing."""
    if name not in {"fleet", "app"}:
        raise AttributeError(name)
    fleet = _fleet()
    return fleet if name == "fleet" else make_app(fleet)


@cache
def _fleet() -> Fleet:
    return make_fleet(os.environ["PALAVER_STORE"], (os.environ["PALAVER_MODEL"],))
