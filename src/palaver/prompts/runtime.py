"""The registry: prompts by path, context managers by name. Two runtimes know nothing of each other."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar, TypeVar

from palaver.errors import InvalidInput, UnknownPolicy, UnknownPrompt
from palaver.prompts.prompt import Prompt

__all__ = ["Runtime", "get_default_runtime", "set_default_runtime"]

_Manager = TypeVar("_Manager", bound=type)


class Runtime:
    """What names mean: the prompts and context managers that dialogs and configurations refer to.

    A key is `path`, or `namespace:path`. A key without a namespace is looked up as it stands, then in the default one.
    """

    def __init__(self, default_namespace: str = "") -> None:
        self.default_namespace = default_namespace
        self._prompts: dict[str, Prompt] = {}
        self._managers: dict[str, type] = {}

    def register_prompt(self, prompt: Prompt, overwrite: bool = True, namespace: str = "") -> str:  # noqa: FBT001, FBT002 - a public signature
        """Register a prompt under its path, and give its key.

        Raises:
            InvalidInput: The key is taken and `overwrite` is false.
        """
        key = _key(prompt.path, namespace)
        _free(key, self._prompts, overwrite=overwrite)
        self._prompts[key] = prompt
        return key

    def get_prompt(self, path: str) -> Prompt:
        """Give the prompt with this key.

        Raises:
            UnknownPrompt: There is none; `close` has the keys that look like it.
        """
        for key in (path, _key(path, self.default_namespace)):
            if key in self._prompts:
                return self._prompts[key]
        raise UnknownPrompt(path, close=_close(path, self._prompts))

    def key_of(self, prompt: Prompt) -> str:
        """Give the key under which this very prompt is registered; its own path when it is not."""
        return next((key for key, known in self._prompts.items() if known is prompt), prompt.path)

    def prompts(self) -> tuple[str, ...]:
        """Give the keys of all registered prompts, sorted."""
        return tuple(sorted(self._prompts))

    def register_context_manager(self, manager: _Manager, overwrite: bool = True) -> _Manager:  # noqa: FBT001, FBT002 - a public signature
        """Register a context manager class under its `name`, and give the class back, so that this serves as a decorator.

        Raises:
            InvalidInput: The class has no name, or the name is taken and `overwrite` is false.
        """
        name = getattr(manager, "name", None)
        if not isinstance(name, str) or not name:
            raise InvalidInput(
                f"{getattr(manager, '__name__', manager)} has no name to be registered under.",
                hint="Set the class attribute `name` to a string.",
            )
        _free(name, self._managers, overwrite=overwrite)
        self._managers[name] = manager
        return manager

    def get_context_manager(self, name: str) -> type:
        """Give the context manager class of this name.

        Raises:
            UnknownPolicy: There is none; `close` has the names that look like it.
        """
        if name not in self._managers:
            raise UnknownPolicy(name, close=_close(name, self._managers))
        return self._managers[name]

    def context_managers(self) -> tuple[str, ...]:
        """Give the names of all registered context managers, sorted."""
        return tuple(sorted(self._managers))


def _key(path: str, namespace: str) -> str:
    return f"{namespace}:{path}" if namespace else path


def _free(key: str, taken: Iterable[str], *, overwrite: bool) -> None:
    if not overwrite and key in taken:
        raise InvalidInput(f"{key!r} is registered already.", hint="Pass overwrite=True to replace it.")


def _close(name: str, known: Iterable[str]) -> list[str]:
    """Give the known names that look like this one, also by their last part alone."""
    known = sorted(known)
    last = {key: key.rpartition(":")[2].rpartition("/")[2] for key in known}
    near = get_close_matches(name, known)
    tail = name.rpartition(":")[2].rpartition("/")[2]
    return near + [key for key in known if last[key] == tail and key not in near]


class _Default:
    """Holds the one runtime that is used where none is named."""

    runtime: ClassVar[Runtime] = Runtime()


def get_default_runtime() -> Runtime:
    """Give the runtime that is used where none is named."""
    return _Default.runtime


def set_default_runtime(runtime: Runtime) -> Runtime:
    """Put another runtime in its place, and give the one before."""
    before, _Default.runtime = _Default.runtime, runtime
    return before
