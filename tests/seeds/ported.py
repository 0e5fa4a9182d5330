"""Running what the source documents show, with nothing changed but where things are imported from."""

import re
from typing import Any

import palaver

_IMPORT = re.compile(r"^(\s*)from lllm[\w.]* import (.+)$", re.MULTILINE)


def ported(source: str) -> str:
    """Give a snippet with its import lines changed: whatever room of the other package a name came from, it is in palaver's face (C29)."""
    return _IMPORT.sub(r"\1from palaver import \2", source)


def run(source: str, /, **names: Any) -> dict[str, Any]:  # noqa: ANN401 - what the prose around a snippet implies
    """Execute a snippet among the names that its prose implies, and give the namespace."""
    namespace = {"__name__": "snippet", **names}
    exec(compile(ported(source), "snippet", "exec"), namespace)  # noqa: S102 - the snippets of this folder
    return namespace


def imported(source: str) -> list[str]:
    """Give the names that a snippet imports from the other package."""
    found = [name.strip() for _, names in _IMPORT.findall(source) for name in names.split(",")]
    assert all(hasattr(palaver, name) for name in found)
    return found
