"""The tools of a Python file: everything in it that was made with `@tool`, and every other `Function`."""

from __future__ import annotations

import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from palaver.errors import InvalidInput
from palaver.tools import Function

__all__ = ["tools_of"]


def tools_of(path: Path) -> tuple[Function, ...]:
    """Run a Python file and give its tools, in the order in which they stand there; names that begin with `_` are its own business.

    The file can import what lies beside it, as when it is run as a program.

    Raises:
        InvalidInput: It is not there, it raises, or it has no tools.
    """
    if not path.is_file():
        raise InvalidInput(f"--tools {str(path)!r} is no file.", hint="Give a Python file with functions under @tool.")
    module = _module(path)
    found = {id(each): each for name, each in vars(module).items() if isinstance(each, Function) and name[:1] != "_"}
    if not found:
        raise InvalidInput(
            f"{path} has no tools.",
            hint="Put @tool (from palaver import tool) over the functions that the model may call.",
        )
    return tuple(found.values())


def _module(path: Path) -> ModuleType:
    """Load a file as a module of its own name; tools that run in processes of their own find it by that."""
    name = path.stem
    spec = spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise InvalidInput(f"--tools {str(path)!r} is no Python file.", hint="Its name must end in .py.")
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) != str(path.resolve()):
        raise InvalidInput(f"{path} has the name of the module {name!r}, which is loaded.", hint="Rename the file.")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a file of the user's may raise anything while it is loaded
        del sys.modules[name]
        lines = [
            line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == spec.origin
        ]
        at = lines[-1] if lines else getattr(error, "lineno", None)
        place = f"{path}:{at}" if at else str(path)
        raise InvalidInput(f"{place} raised {type(error).__name__}: {error}") from error
    return module
