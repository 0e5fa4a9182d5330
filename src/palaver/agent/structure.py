"""What a prompt asks of a provider besides the conversation: the structure of the answer, and tools of the provider's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.messages import thaw
from palaver.prompts import Format, Prompt
from palaver.wire import Profile
from palaver.wire.schemas import not_strict

__all__ = ["asked_addons", "asked_format"]


def asked_format(prompt: Prompt, profile: Profile) -> dict[str, Any]:
    """Give the parameters that ask a provider for the prompt's structure; none where it has no such parameter, or the parser reads it."""
    form = prompt.answer
    if form is None or profile.name not in _WORDS:
        return {}
    return _WORDS[profile.name](form, thaw(form.schema))


def _strict(form: Format, schema: object) -> bool:
    return form.strict and not not_strict(schema)


def _chat(form: Format, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - a JSON schema
    """Developers.openai.com/api/docs/guides/structured-outputs: `response_format` of chat completions."""
    inner = {"name": form.name, "schema": schema, "strict": _strict(form, schema)}
    return {"response_format": {"type": "json_schema", "json_schema": inner}}


def _responses(form: Format, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """The same page: `text.format` of responses."""
    asked = {"type": "json_schema", "name": form.name, "schema": schema, "strict": _strict(form, schema)}
    return {"text": {"format": asked}}


def _messages(form: Format, schema: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
    """Platform.claude.com/docs/en/build-with-claude/structured-outputs: `output_config.format` of messages, always strict."""
    del form
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


_WORDS: Mapping[str, Callable[[Format, Any], dict[str, Any]]] = MappingProxyType(
    {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _messages}
)
"""How each provider is asked. Gemini has no adapter here."""


def asked_addons(prompt: Prompt, profile: Profile) -> dict[str, Any]:
    """Give the parameters that ask a provider for tools of its own.

    Raises:
        InvalidInput: The prompt wants one that this provider cannot be asked for here.
    """
    asked: dict[str, Any] = {}
    for name, options in prompt.addon_args.items():
        word = _ADDONS.get((profile.name, name))
        if options is False or options is None:
            continue
        if word is None:
            raise InvalidInput(
                f"The prompt {prompt.path!r} wants {name!r}, for which {profile.name} has no parameter here.",
                hint="Pass the provider's own parameter in model_args.",
            )
        asked[word] = thaw(options) if isinstance(options, Mapping) else {}
    return asked


_ADDONS: Mapping[tuple[str, str], str] = MappingProxyType({("openai-chat", "web_search"): "web_search_options"})
"""Which parameter asks for which add-on (developers.openai.com/api/docs/guides/tools-web-search, chat completions)."""
