"""Doors: packages that load a name from its module when the name is first used, so that a program loads only what it uses."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyPackage(ModuleType):
    """A package with names that are not loaded yet."""

    _names: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any name of a module
        module = self._names.get(name)
        if module is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(module), name)
        vars(self)[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, except that the import of a submodule does not hide the name that the package exports."""
        if not (isinstance(value, ModuleType) and name in self._names):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *self._names})


def open_door(package: str, modules: Mapping[str, str]) -> list[str]:
    """Let a package load its names on first use, and return the names for its `__all__`.

    Type checkers read the same names below `if TYPE_CHECKING:`.

    Args:
        package: The package's `__name__`.
        modules: The names, separated by spaces, by module. A module that begins with a dot is in the package.
    """
    door = sys.modules[package]
    names = {
        name: f"{package}{module}" if module.startswith(".") else module
        for module, listed in modules.items()
        for name in listed.split()
    }
    vars(door)["_names"] = names
    door.__class__ = _LazyPackage
    return sorted(names)
