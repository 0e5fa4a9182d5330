"""The APIs that palaver speaks, one row each. A further API is a folder and a row.

The modules of a folder are loaded when they are needed, so that a request loads one API and a store of messages none.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from palaver.errors import NotFound
from palaver.messages.frozen import EMPTY
from palaver.providers.models import own_columns
from palaver.wire.models import read_model

if TYPE_CHECKING:
    from palaver.providers.dialect import Dialect
    from palaver.providers.reader import AnswerReader
    from palaver.wire import Profile
    from palaver.wire.models import ModelTable


class Adapter(NamedTuple):
    """An adapter over a vendor's client: its module in this package, its class, and options that are always passed."""

    module: str
    name: str
    options: Mapping[str, Any] = EMPTY


class Signs(NamedTuple):
    """What only the lists of one API have: roles, keys and types of items, types of parts of their content, and keys of tools.

    Where two APIs have items of one type, the earlier names a key that its own have, such as `function_call.call_id`. Where two have parts of one
    type, one of them has a list of further parts in its field of that name: `chunks`.
    """

    roles: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class ApiRow(NamedTuple):
    """One API.

    Attributes:
        name: Its name. The folder of its modules has underscores in place of hyphens.
        maker: The provider whose API it is.
        adapters: The adapter for each prefix of model strings.
        answer: The key that only its whole answers have, and the value there; an empty value means any. No message in a list has such a key.
        signs: What only its lists have.
    """

    name: str
    maker: str
    adapters: Mapping[str, Adapter]
    answer: tuple[str, str]
    signs: Signs

    def profile(self, model: str = "", columns: Mapping[str, Any] | None = None) -> Profile:
        """Return what the API accepts for a model; the strictest where none is named.

        Args:
            model: The model.
            columns: What is known of the model better than in palaver's table. Default: what the user's own table says.
        """
        known = own_columns(self.maker, model) if columns is None else columns
        made: Profile = self._module("profile").for_model(model, known) if known else _shipped(self.name, model)
        return made

    @property
    def table(self) -> ModelTable:
        """Its models."""
        table: ModelTable = _module(f"{__package__}.{_TABLES[self.maker]}.models").MODELS
        return table

    @property
    def dialect(self) -> Dialect:
        """How its lists of messages are read and written."""
        dialect: Dialect = self._module("list").DIALECT
        return dialect

    @property
    def reader(self) -> type[AnswerReader]:
        """The reader of its answers."""
        reader: type[AnswerReader] = self._module("read").READER
        return reader

    def _module(self, name: str) -> Any:  # noqa: ANN401 - a module
        return _module(f"{__package__}.{self.name.replace('-', '_')}.{name}")


_module = cache(import_module)

_TABLES: Mapping[str, str] = {"openai": "openai_chat", "anthropic": "anthropic", "google": "gemini"}
"""The folder with the models of each maker."""

_ROWS = (
    ApiRow(
        name="openai-chat",
        maker="openai",
        adapters={"openai": Adapter("openai_chat.client", "OpenAIProvider")},
        answer=("choices", ""),
        signs=Signs(
            roles=("tool", "function"),
            keys=("tool_calls", "tool_call_id", "function_call"),
            parts=("image_url", "input_audio", "refusal", "file"),
            chunks=("thinking",),  # Mistral's (docs.mistral.ai/capabilities/reasoning)
            tools=("function", "custom"),
        ),
    ),
    ApiRow(
        name="openai-responses",
        maker="openai",
        adapters={"openai-responses": Adapter("openai_chat.client", "OpenAIProvider", {"api": "responses"})},
        answer=("object", "response"),
        signs=Signs(
            items=(
                "function_call.call_id", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning",
                "item_reference", "compaction", "message", "shell_call_output", "local_shell_call_output", "apply_patch_call_output",
                "computer_call_output", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "program", "program_output",
                "tool_search_output", "additional_tools", "configuration_update",
            ),
            parts=("input_text", "output_text", "input_image", "input_file"),
        ),
    ),
    ApiRow(
        name="anthropic",
        maker="anthropic",
        adapters={"anthropic": Adapter("anthropic.client", "AnthropicProvider")},
        answer=("stop_reason", ""),
        signs=Signs(
            parts=("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"),
            tools=("input_schema",),
        ),
    ),
    ApiRow(
        name="gemini",
        maker="google",
        adapters=dict.fromkeys(("google", "gemini"), Adapter("gemini.client", "GoogleProvider")),
        answer=("candidates", ""),
        signs=Signs(roles=("model",), keys=("parts",), tools=("functionDeclarations", "function_declarations")),
    ),
    ApiRow(
        name="gemini-interactions",
        maker="google",
        adapters={"google-interactions": Adapter("gemini_interactions.client", "GoogleInteractionsProvider")},
        answer=("steps", ""),
        signs=Signs(
            items=(
                "user_input", "model_output", "thought", "function_call", "function_result",
                *(f"{name}_{half}" for half in ("call", "result") for name in (
                    "google_search", "url_context", "code_execution", "google_maps", "mcp_server_tool", "retrieval", "processing",
                )),
                "file_search_result", "file_search_call.signature", "tool_search_result", "tool_search_call.signature",
            ),
        ),
    ),
)  # fmt: skip

APIS: Mapping[str, ApiRow] = MappingProxyType({row.name: row for row in _ROWS})
"""The APIs, by name."""


@lru_cache(maxsize=256)
def _shipped(name: str, model: str) -> Profile:
    """Return what palaver's table says of a model. Making a profile costs 0.2 ms, and each request asks for one."""
    made: Profile = APIS[name]._module("profile").for_model(model)  # noqa: SLF001 - of this module
    return made


def profile(name: str, model: str = "", columns: Mapping[str, Any] | None = None) -> Profile:
    """Return the profile of an API for a model: what the tables of models say of it. Without a model it is the strictest.

    Args:
        name: The API, or a provider for the first of its APIs.
        model: The model.
        columns: What is known of the model better than in palaver's table, by the name of a column (`palaver.wire.models.ModelRow`), such as
            `{"version": "2023-06-01"}` for a client that asks in this version of the API. Default: what the user's own table says.

    Raises:
        NotFound: No API has this name; the error lists close matches.
    """
    row = APIS.get(name) or next((row for row in _ROWS if row.maker == name), None)
    if row is None:
        close = get_close_matches(name, APIS, cutoff=0.4)
        raise NotFound(name, what="provider", close=close, hint=f"Providers: {', '.join(APIS)}.")
    return row.profile(model, columns)


_OF_MAKERS = {"anthropic": "anthropic", "openai": "openai-responses"}
"""The API of each maker that compacts conversations, and takes changes of instructions and tools inside them."""


def profile_of(model: str) -> Profile:
    """Return the profile of a model where no API is named: that of its maker's API which does most by itself, else of chat completions."""
    return profile(_OF_MAKERS.get(read_model(model).maker, "openai-chat"), model)
