"""The policies to compare: by name, by configuration, or a user's own from a Python file.

Results of different code do not belong in one table. During development a version does not distinguish them, so results record a digest of the code.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

from palaver.context import ContextManager, Policy, policy
from palaver.errors import InvalidInput, reported
from palaver.plurals import a_type
from palaver.tokens import Budget, UnknownModelWarning


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A policy to compare.

    Attributes:
        name: Its name, its configuration, or `file.py:Class`.
        manager: The policy.
        model: The model whose tokens and window count.
        budget: The budget of its requests.
        own: Whether it is a user's own, which must be checked against the laws first.
    """

    name: str
    manager: ContextManager
    model: str
    budget: Budget
    own: bool = False


def entrant(asked: str, model: str, *, window: int | None = None, budget: int | None = None) -> Entrant:
    """Create a policy.

    Args:
        asked: A name; `name(key=value, ...)` with its configuration; or `path/to/file.py:Class`.
        model: The model.
        window: The window in tokens. Default: the model's own.
        budget: The budget of a request in tokens. Default: the policy's own division of the window.

    Raises:
        NotFound: No policy has this name.
        InvalidInput: The configuration is wrong, the file cannot be loaded, or has no such class.
    """
    path, _, name = asked.rpartition(":")
    own = path.endswith(".py")
    if asked.endswith(".py"):
        raise InvalidInput(f"{asked!r} names no class.", hint=f"Add the class: {asked}:MyPolicy.")
    if own:
        manager = _made(_class(Path(path), name), asked, model, window)
    else:
        made = policy({**_words(asked), **({} if window is None else {"max_tokens": window})}, model)
        if made is None:
            raise InvalidInput(f"{asked!r} is not a policy.", hint="To leave nothing out, name the policy 'full'.")
        manager = made
    if budget is not None:
        allowed = Budget.of_input(budget)
    elif isinstance(manager, Policy) and (manager.model_name or manager.max_tokens is not None):
        allowed = manager.budget
    else:
        allowed = Budget.parse({"max_tokens": window}, model)
    return Entrant(
        name=asked,
        manager=manager,
        model=model,
        budget=allowed,
        own=own or type(manager).__module__.split(".")[0] != _OURS,
    )


_OURS = Policy.__module__.split(".")[0]


def _words(asked: str) -> Mapping[str, Any]:
    """Read `name` or `name(key=value, ...)`."""
    name, bracket, rest = asked.partition("(")
    words: dict[str, Any] = {"type": name.strip()}
    if not bracket:
        return words
    if not rest.endswith(")"):
        raise InvalidInput(f"{asked!r} has no closing bracket.", hint="Such as swe-agent(n=5,polling=1).")
    for pair in rest[:-1].replace(";", ",").split(","):
        key, sign, value = pair.partition("=")
        if not sign:
            raise InvalidInput(f"{pair!r} in {asked!r} is not key=value.", hint="Such as swe-agent(n=5,polling=1).")
        words[key.strip()] = _value(value.strip())
    return words


def _value(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.casefold(), text)


def _class(path: Path, name: str) -> Callable[..., object]:
    """Load a class, or a function that makes a policy, from a Python file."""
    found = getattr(_module(path), name, None)
    if not callable(found):
        raise InvalidInput(f"{path} has no class {name!r}.", hint="Write file.py:MyPolicy.")
    maker: Callable[..., object] = found
    return maker


def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.", hint="Write path/to/file.py:MyPolicy.")
    # by its content, so that a changed file is loaded again
    named = f"_palaver_lab_{path.stem}_{sha256(bytes(path.resolve()) + path.read_bytes()).hexdigest()[:16]}"
    if named in sys.modules:
        return sys.modules[named]
    spec = importlib.util.spec_from_file_location(named, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} cannot be loaded.", hint="Pass a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[named] = module
    try:
        with reported(f"{path} cannot be loaded", "Correct the file."):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[named]
        raise
    return module


def _made(maker: Callable[..., object], asked: str, model: str, window: int | None) -> ContextManager:
    """Create a user's policy: with model and window if its class accepts them, or else without arguments."""
    words = {"model_name": model} | ({} if window is None else {"max_tokens": window})
    with reported(f"{asked} cannot be created", "Correct its constructor."):
        policies = isinstance(maker, type) and issubclass(maker, Policy) and maker.__init__ is Policy.__init__
        made = maker(**words) if policies else _first(maker, words)
    if not isinstance(made, ContextManager):
        raise InvalidInput(f"{asked} returns {a_type(made)}, not a context manager.", hint="Subclass palaver.Policy.")
    return made


def _first(maker: Callable[..., object], words: Mapping[str, Any]) -> object:
    """Call a maker with those of the arguments that it accepts."""
    try:
        return maker(**words)
    except TypeError:
        return maker()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a run.

    Attributes:
        paths: Files and folders.
        policies: The policies.
        model: The model whose tokens, prices and window count.
        window: Its window in tokens; None for the model's own.
        budget: The budget of a request under every policy. Default: each policy divides the window in its own way.
        stand_ins: Replacements for a model's summaries.
        lifetime: The lifetime of the provider's cache in seconds; None for the provider's own.
        jobs: The number of processes.
        resamples: The number of resamplings of sessions.
        weight: How sessions count in the figures: `session`, `file` or `tokens`, as `palaver.lab.WEIGHTS` defines them.
    """

    paths: tuple[Path, ...]
    policies: tuple[str, ...]
    model: str
    window: int | None = None
    budget: int | None = None
    stand_ins: tuple[str, ...] = ("fold",)
    lifetime: float | None = None
    jobs: int = 1
    resamples: int = 1_000
    weight: str = "session"


_MAKING = Lock()
"""Workers can be threads, and the filters of warnings and a module that is being loaded belong to the whole process."""


def entrant_of(asked: str, settings: Settings) -> Entrant:
    """Create a policy with the settings of a run."""
    # the table lists the assumptions
    with _MAKING, warnings.catch_warnings(action="ignore", category=UnknownModelWarning):
        return entrant(asked, settings.model, window=settings.window, budget=settings.budget)


_PACKAGE = Path(__file__).parents[1]
_ABOVE = frozenset({"cli", "explorer", "integrations"})
"""Rooms above the lab, whose code does not change a figure."""

_ENDINGS = frozenset({".py", ".sql", ".xz"})
_DIGITS = 16


@cache
def code_digest() -> str:
    """Return the digest of the code that makes results: every room except those above the lab, and except the lab's own report."""
    digest = sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        place = path.relative_to(_PACKAGE)
        if path.suffix not in _ENDINGS or place.parts[0] in _ABOVE or place.parts[:2] == ("lab", "report"):
            continue
        digest.update(f"{place.as_posix()}\0".encode())
        digest.update(sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]


def source_digest(entrant: Entrant) -> str:
    """Return the digest of the file of a user's policy; empty for one of ours, which `code_digest` covers.

    Imports of that file do not count.
    """
    if not entrant.own:
        return ""
    digest = sha256()
    module = sys.modules.get(type(entrant.manager).__module__)
    for path in dict.fromkeys((_named(entrant.name), getattr(module, "__file__", None))):
        if path is not None and Path(path).is_file():
            digest.update(sha256(Path(path).read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]


def _named(asked: str) -> str | None:
    path = asked.rpartition(":")[0]
    return path if path.endswith(".py") else None
