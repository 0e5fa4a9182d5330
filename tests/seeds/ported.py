"""Run the code of the source documents with only the import lines changed."""

import re
from typing import Any

from palaver import ProviderInvoker, ScriptedProvider, lllm

_IMPORT = re.compile(r"^(\s*)from lllm[\w.]* import (.+)$", re.MULTILINE)


def ported(source: str) -> str:
    """Return a snippet that imports from `palaver.lllm`, whichever module of the other package it named (C29)."""
    return _IMPORT.sub(r"\1from palaver.lllm import \2", source)


def run(source: str, /, **names: Any) -> dict[str, Any]:  # noqa: ANN401 - the names that the document's prose implies
    """Execute a snippet with the names that its document implies, and return the namespace."""
    namespace = {"__name__": "snippet", **names}
    exec(compile(ported(source), "snippet", "exec"), namespace)  # noqa: S102 - the snippets of this folder
    return namespace


def imported(source: str) -> list[str]:
    """Return the names that a snippet imports from the other package."""
    found = [name.strip() for _, names in _IMPORT.findall(source) for name in names.split(",")]
    assert all(hasattr(lllm, name) for name in found)
    return found


def invoker(*answers: Any) -> ProviderInvoker:  # noqa: ANN401 - what a script holds
    """Return what answers from a script."""
    return ProviderInvoker(ScriptedProvider(list(answers), profile="openai-chat"))
