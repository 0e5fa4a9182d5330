"""The runtime: a registry of names. Runtimes are independent of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from palaver.errors import Ambiguous, InvalidInput, NotFound
from palaver.messages.frozen import FrozenDict
from palaver.prompts.prompt import Prompt
from palaver.tools import Function, Toolbox

_Manager = TypeVar("_Manager", bound=type)
_Invoker = TypeVar("_Invoker", bound=Callable[..., Any])


_Thing = TypeVar("_Thing")


class _Registry(Generic[_Thing]):
    """Objects by key. A key is `name` or `namespace:name`."""

    def __init__(self, kind: str) -> None:
        """Create an empty registry; errors use the name `kind`."""
        self._things: dict[str, _Thing] = {}
        self._kind = kind

    def put(self, name: str, thing: _Thing, namespace: str = "", *, overwrite: bool = False) -> str:
        """Register an object and return its key.

        Raises:
            InvalidInput: The name is empty, or the key is in use and `overwrite` is false.
        """
        if not name:
            raise InvalidInput(f"{thing!r} has no name.")
        key = f"{namespace}:{name}" if namespace else name
        if not overwrite and key in self._things:
            raise InvalidInput(f"{key!r} is already registered.", hint="Pass overwrite=True to replace it.")
        self._things[key] = thing
        return key

    def find(self, key: str, *namespaces: str) -> _Thing | None:
        """Return the object with this key, looked up unchanged and then in each namespace, or None."""
        for candidate in (key, *(f"{namespace}:{key}" for namespace in namespaces if namespace)):
            if candidate in self._things:
                return self._things[candidate]
        return None

    def get(self, key: str, *namespaces: str) -> _Thing:
        """Return the object with this key, looked up as in `find`.

        Raises:
            NotFound: No object has this key; `close` has similar keys.
        """
        thing = self.find(key, *namespaces)
        if thing is None:
            raise self.lacking(key)
        return thing

    def only(self, name: str) -> _Thing | None:
        """Return the only object with this name in any namespace, or None.

        Raises:
            Ambiguous: Several objects have this name.
        """
        keys = [key for key in self.keys() if key.rpartition(":")[2] == name]
        if len(keys) > 1:
            raise Ambiguous(name, keys, hint="Write the namespace too.")
        return self._things[keys[0]] if keys else None

    def lacking(self, key: str, others: Iterable[str] = ()) -> NotFound:
        """Return the error for an unknown key. `others` are keys of other registries that could have been meant."""
        return NotFound(key, what=self._kind, close=_close(key, (*self._things, *others)))

    def key_of(self, thing: _Thing) -> str | None:
        """Return the key of this object, compared by identity, or None."""
        return next((key for key, known in self._things.items() if known is thing), None)

    def keys(self) -> tuple[str, ...]:
        """Return all keys, sorted."""
        return tuple(sorted(self._things))


def _close(name: str, known: Iterable[str]) -> list[str]:
    """Return similar keys, also those that are similar in their last part."""
    known = sorted(known)
    near = get_close_matches(name, known)
    tail = _tail(name)
    last = {key: _tail(key) for key in known}
    near += [key for key in known if last[key] == tail and key not in near]
    close_tails = get_close_matches(tail, last.values()) if not near else []
    return near + [key for key in known if last[key] in close_tails]


def _tail(key: str) -> str:
    return key.rpartition(":")[2].rpartition("/")[2].partition("#")[0]


class ToolSource(Protocol):
    """An object that provides a tool without being a function, such as a tactic."""

    def as_function(self, tool: str = "", *, runtime: Any = None) -> Function:  # noqa: ANN401 - a runtime
        """Return the function: the one called `tool`, or the only one."""
        ...


_Tactic = TypeVar("_Tactic", bound=ToolSource)


def as_tool(given: Any) -> str | Function | ToolSource:  # noqa: ANN401 - any value
    """Return a value as a tool: a callable becomes a function, and a reference or a tactic stays.

    Raises:
        InvalidInput: It is neither a function nor a tactic nor a reference to one.
    """
    if isinstance(given, str | Function):
        return given
    if hasattr(given, "as_function"):
        source: ToolSource = given
        return source
    if callable(given):
        return Function.from_callable(given)
    raise InvalidInput(f"{given!r} is not a tool.", hint="Pass a function, a tactic, or a reference to one.")


class Runtime:
    """A registry of prompts, tools, tactics, context managers, configurations and invokers, by name.

    A key is `name` or `namespace:name`. A key without a namespace is looked up unchanged, then in the default namespace.
    Register at program start; after that any thread may read. If no runtime is passed, the default one is used.
    """

    def __init__(self, default_namespace: str = "") -> None:
        self.default_namespace = default_namespace
        self._prompts: _Registry[Prompt] = _Registry("prompt")
        self._tools: _Registry[Function] = _Registry("tool")
        self._tactics: _Registry[Any] = _Registry("tactic")
        self._managers: _Registry[type] = _Registry("policy")
        self._configs: _Registry[Mapping[str, Any]] = _Registry("configuration")
        self._invokers: _Registry[Callable[..., Any]] = _Registry("invoker")

    # --- prompts ------------------------------------------------------------------------------------------------------------

    def register_prompt(self, prompt: Prompt, overwrite: bool = True, namespace: str = "") -> str:  # noqa: FBT001, FBT002 - a public signature
        """Register a prompt under its path and return its key.

        Raises:
            InvalidInput: The key is in use and `overwrite` is false.
        """
        return self._prompts.put(prompt.path, prompt, namespace, overwrite=overwrite)

    def get_prompt(self, path: str) -> Prompt:
        """Return the prompt with this key.

        Raises:
            NotFound: No prompt has this key; `close` has similar keys.
        """
        return self._prompts.get(path, self.default_namespace)

    def key_of(self, prompt: Prompt) -> str:
        """Return the key of this prompt, compared by identity, or its own path."""
        return self._prompts.key_of(prompt) or prompt.path

    def prompts(self) -> tuple[str, ...]:
        """Return the keys of all registered prompts, sorted."""
        return self._prompts.keys()

    # --- tools --------------------------------------------------------------------------------------------------------------

    def register_tool(
        self, tool: Function | Callable[..., Any], *, name: str = "", namespace: str = "", overwrite: bool = False
    ) -> Function:
        """Register a function under its name and return it, so that this serves as a decorator.

        Args:
            tool: The function; a plain callable becomes one as with `@tool`.
            name: Another name for references; the model still uses the function's own.
            namespace: The namespace, such as `research.tools`.
            overwrite: Whether to replace an object with the same key.

        Raises:
            InvalidInput: The key is in use, or the callable cannot be a tool.
        """
        function = tool if isinstance(tool, Function) else Function.from_callable(tool)
        self._tools.put(name or function.name, function, namespace, overwrite=overwrite)
        return function

    def get_tool(self, ref: str, namespace: str = "") -> Function:
        """Return the function of a reference.

        Args:
            ref: `pkg.tools:name`; `pkg:name`, which is also looked up in `pkg.tools`; a bare `name`, looked up in `namespace`,
                in the default namespace, and then wherever only one function has it; or a tactic's name, with `#tool` for
                one of its methods.
            namespace: The namespace of the object that contains the reference.

        Raises:
            NotFound: The reference matches nothing; `close` has similar references.
            Ambiguous: A bare name fits functions of several namespaces.
        """
        tool = self._tool(ref, namespace)
        if tool is not None:
            return tool
        name, _, method = ref.partition("#")
        tactic = self._tactics.find(name, *self._near(namespace, "tactics"))
        if tactic is None and ":" not in name:
            tactic = self._tactics.only(name)
        if tactic is None:
            raise self._tools.lacking(ref, self._tactics.keys())
        function: Function = tactic.as_function(method, runtime=self)
        return function

    def _tool(self, ref: str, namespace: str) -> Function | None:
        tool = self._tools.find(ref, *self._near(namespace, "tools"))
        if tool is not None:
            return tool
        package, colon, name = ref.rpartition(":")
        return self._tools.find(f"{package}.tools:{name}") if colon else self._tools.only(name)

    def _near(self, namespace: str, room: str) -> tuple[str, ...]:
        """Return the namespaces in which a bare name is looked up, the nearest first."""
        package = namespace.partition(".")[0]
        homes = (namespace, f"{package}.{room}" if package else "", package, self.default_namespace)
        return tuple(dict.fromkeys(filter(None, homes)))

    def functions_of(self, prompt: Prompt) -> tuple[Function, ...]:
        """Return the functions of a prompt: references resolved, callables and tactics converted, declarations linked.

        A function without implementation gets that of the registered function of the same name; otherwise it stays a
        declaration.

        Raises:
            NotFound: A reference matches nothing.
            Ambiguous: A bare name fits functions of several namespaces.
            InvalidInput: Two functions have the same name, a declaration differs from the registered function, or a value is not a tool.
        """
        namespace = self.key_of(prompt).rpartition(":")[0]
        return tuple(Toolbox(self._function(tool, namespace) for tool in prompt.function_list))

    def _function(self, given: object, namespace: str) -> Function:
        tool = as_tool(given)
        if isinstance(tool, Function):
            return tool if tool.linked else self._linked(tool, namespace)
        return self.get_tool(tool, namespace) if isinstance(tool, str) else tool.as_function(runtime=self)

    def _linked(self, declared: Function, namespace: str) -> Function:
        """Return a declaration with the implementation of the registered function of its name, if there is one.

        Raises:
            InvalidInput: The registered function accepts other arguments.
        """
        known = self._tool(declared.name, namespace)
        if known is None or known.function is None:
            return declared
        if known.name != declared.name or known.properties.keys() != declared.properties.keys():
            ours, theirs = (", ".join(side.properties) or "nothing" for side in (declared, known))
            raise InvalidInput(
                f"The declaration of {declared.name!r} has the arguments {ours}, the registered function {known.name!r} {theirs}.",
                hint="Make them the same, or rename one.",
            )
        return declared.extend(function=known.function)

    # --- tactics ------------------------------------------------------------------------------------------------------------

    def register_tactic(
        self, tactic: _Tactic, *, name: str = "", namespace: str = "", overwrite: bool = False
    ) -> _Tactic:
        """Register a tactic, a class or an object, under its `tactic_type` or `name`, and return it.

        Raises:
            InvalidInput: It has no name, or the key is in use and `overwrite` is false.
        """
        own = name or getattr(tactic, "tactic_type", None) or getattr(tactic, "name", None)
        self._tactics.put(_required(own, tactic, "tactic_type"), tactic, namespace, overwrite=overwrite)
        return tactic

    def get_tactic(self, name: str) -> Any:  # noqa: ANN401 - a class or an object of a room above
        """Return the tactic of this name.

        Raises:
            NotFound: No tactic has this name; `close` has similar names.
        """
        return self._tactics.get(name, *self._near("", "tactics"))

    def tactic_key(self, tactic: object) -> str | None:
        """Return the key of this tactic, compared by identity, or None."""
        return self._tactics.key_of(tactic)

    # --- context managers ---------------------------------------------------------------------------------------------------

    def register_context_manager(self, manager: _Manager, overwrite: bool = True) -> _Manager:  # noqa: FBT001, FBT002 - a public signature
        """Register a context manager class under its `name` and return the class, so that this serves as a decorator.

        Raises:
            InvalidInput: The class has no name, or the name is in use and `overwrite` is false.
        """
        name = _required(getattr(manager, "name", None), manager, "name")
        self._managers.put(name, manager, overwrite=overwrite)
        return manager

    def get_context_manager(self, name: str) -> type:
        """Return the context manager class of this name.

        Raises:
            NotFound: No object has this name; `close` has similar names.
        """
        return self._managers.get(name)

    def context_managers(self) -> tuple[str, ...]:
        """Return the names of all registered context managers, sorted."""
        return self._managers.keys()

    # --- configurations and invokers ----------------------------------------------------------------------------------------

    def register_config(
        self, name: str, config: Mapping[str, Any], *, namespace: str = "", overwrite: bool = False
    ) -> str:
        """Register a configuration of agents, JSON values that are copied, and return its key. A tactic uses that of its name.

        Raises:
            InvalidInput: The key is in use and `overwrite` is false.
        """
        return self._configs.put(name, FrozenDict(config), namespace, overwrite=overwrite)

    def get_config(self, name: str) -> Mapping[str, Any]:
        """Return the configuration with this key, read-only.

        Raises:
            NotFound: No object has this key; `close` has similar keys.
        """
        return self._configs.get(name, self.default_namespace)

    def register_invoker(self, name: str, builder: _Invoker, *, overwrite: bool = False) -> _Invoker:
        """Register what builds an invoker from a configuration, and return it.

        Raises:
            InvalidInput: The name is in use and `overwrite` is false.
        """
        self._invokers.put(name, builder, overwrite=overwrite)
        return builder

    def get_invoker(self, name: str) -> Callable[..., Any]:
        """Return what builds the invoker of this name.

        Raises:
            NotFound: No object has this name; `close` has similar names.
        """
        return self._invokers.get(name)

    def invokers(self) -> tuple[str, ...]:
        """Return the names of all registered invokers, sorted."""
        return self._invokers.keys()


def _required(name: object, thing: object, attribute: str) -> str:
    if isinstance(name, str) and name:
        return name
    raise InvalidInput(
        f"{getattr(thing, '__name__', thing)} has no name to register.", hint=f"Set the class attribute {attribute!r}."
    )


class _Default:
    """The default runtime, in a class so that it can be replaced."""

    runtime: ClassVar[Runtime] = Runtime()


def get_default_runtime() -> Runtime:
    """Return the default runtime."""
    return _Default.runtime


def set_default_runtime(runtime: Runtime) -> Runtime:
    """Replace the default runtime and return the one before."""
    before, _Default.runtime = _Default.runtime, runtime
    return before
