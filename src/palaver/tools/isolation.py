"""Running a function in a worker process, which is killed when its call is abandoned.

Function and arguments cross by name and as JSON, so the function must be importable from a module; the module of a script is
imported again and needs `if __name__ == "__main__":`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from anyio import to_process

from palaver.messages import ToolCallContent, canonical_json
from palaver.tools.calls import CallContext
from palaver.tools.function import Function
from palaver.tools.results import Result, describe_error, result_of
from palaver.tools.signature import bind, read_signature

__all__ = ["Job", "run_in_process"]


@dataclass(frozen=True, slots=True)
class Job:
    """One call of an isolated function, as it crosses to a process."""

    module: str
    qualname: str
    typed: bool
    tool: str
    call_id: str
    arguments: bytes
    max_bytes: int

    @classmethod
    def of(cls, function: Function, call: ToolCallContent) -> Job:
        """Return the job of a call."""
        typed = function.binding is not None and function.binding.typed
        module, qualname = (str(getattr(function.function, name)) for name in ("__module__", "__qualname__"))
        return cls(module, qualname, typed, call.name, call.id, canonical_json(call.args), function.max_bytes)


async def run_in_process(job: Job) -> Result:
    """Run a job in a worker process and return its result. A cancelled caller kills the process.

    Raises:
        BrokenWorkerProcess: The process died.
    """
    return await to_process.run_sync(_work, job, cancellable=True)


def _work(job: Job) -> Result:
    """Run a job, in the process."""
    try:
        found: Any = import_module(job.module)
        for step in job.qualname.split("."):
            found = getattr(found, step)
        function = found.function if isinstance(found, Function) else found
        binding = read_signature(function) if job.typed else bind(function)
        value = binding.call(json.loads(job.arguments), CallContext(call_id=job.call_id, tool=job.tool))()
        if inspect.isawaitable(value):
            value = asyncio.run(_wait(value))
        return result_of(value, job.max_bytes)
    except BaseException as error:  # noqa: BLE001 - whatever a tool raises, SystemExit too, is its result
        return Result(describe_error(error), is_error=True)


async def _wait(value: Awaitable[Any]) -> Any:  # noqa: ANN401 - whatever a tool returns
    return await value
