"""The parameters of a request of the Messages API: what each model accepts of thinking, tool choices, sampling and prefill."""

from __future__ import annotations

from typing import Final

from palaver.testing.strict.claude.fields import BINDING, NEWEST_VERSION, UPDATES, ClaudeRequest, refuse
from palaver.testing.strict.claude.turns import tool_changes
from palaver.testing.strict.seal import Json

__all__ = ["check_options", "thinking_type"]

_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_THINKING_FIELDS: Final = {
    "adaptive": ("block_binding", "display"),
    "enabled": ("block_binding", "display", "budget_tokens"),
}
_NO_FORCE: Final = 'tool_choice: type "tool" and "any" are not supported for this model.'


def check_options(subject: ClaudeRequest, *, counting: bool = False) -> None:
    """Check the parameters; a request that only counts tokens needs no `max_tokens`."""
    _check_limits(subject, counting=counting)
    _check_thinking(subject)
    _check_tool_choice(subject)
    _check_sampling(subject)
    _check_prefill(subject)


def thinking_type(subject: ClaudeRequest) -> str:
    """Return how the model thinks in this request: a value of `thinking.type`."""
    asked = subject.body.get("thinking") or {}
    if "type" in asked:
        return str(asked["type"])
    return "disabled" if subject.model.default == "off" else "adaptive"


def _check_limits(subject: ClaudeRequest, *, counting: bool) -> None:
    limit, most = subject.body.get("max_tokens"), subject.model.max_tokens
    if limit is None and not counting:
        refuse("max_tokens: Field required")
    if limit is not None and limit > most:
        name = subject.model.name
        refuse(f"max_tokens: {limit} > {most}, which is the maximum allowed number of output tokens for {name}")


def _check_thinking(subject: ClaudeRequest) -> None:
    thinking = subject.body.get("thinking")
    if thinking is None:
        return
    kind = thinking.get("type")
    if kind not in subject.model.types:
        if kind == "adaptive":
            refuse("adaptive thinking is not supported on this model")
        refuse(
            f'"thinking.type.{kind}" is not supported for this model. '
            'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )
    for name in thinking:
        if name != "type" and name not in _THINKING_FIELDS.get(kind, ()):
            refuse(f"thinking.{kind}.{name}: Extra inputs are not permitted")
    if "block_binding" in thinking:
        subject.needs(f"thinking.{kind}.block_binding", BINDING)
    if thinking.get("display") == "updates":
        subject.needs(f"thinking.{kind}.display", UPDATES)
    _check_budget(subject, thinking)
    _check_disabled(subject, kind)


def _check_disabled(subject: ClaudeRequest, kind: str) -> None:
    """Check that thinking is turned off only up to the effort at which the model allows it."""
    effort, most = (subject.body.get("output_config") or {}).get("effort", "medium"), subject.model.disabled_up_to
    if kind == "disabled" and most and _EFFORTS.index(effort) > _EFFORTS.index(most):
        refuse(f'"thinking.type.disabled" is not supported for this model at effort "{effort}".')


def _check_budget(subject: ClaudeRequest, thinking: Json) -> None:
    if thinking["type"] != "enabled":
        return
    budget, limit = thinking.get("budget_tokens"), subject.body.get("max_tokens")
    if budget is None:
        refuse("thinking.enabled.budget_tokens: Field required")
    if budget < 1_024:  # noqa: PLR2004 - the least of the API
        refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if limit is not None and limit <= budget:
        refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_tool_choice(subject: ClaudeRequest) -> None:
    choice, tools = subject.body.get("tool_choice"), subject.body.get("tools") or []
    if choice is None:
        return
    if not tools:
        refuse("tool_choice: tool_choice may only be specified while providing tools.")
    kind = choice.get("type")
    if kind not in ("tool", "any"):
        return
    if not subject.model.forced:
        refuse(_NO_FORCE)
    if thinking_type(subject) == "enabled":
        refuse("Thinking may not be enabled when tool_choice forces tool use.")
    # a tool is offered from its addition on (SDK 2.14, `tool_addition`), so that it can be forced like a declared one
    inline = [block["tool"].get("definition") or {} for _, block in tool_changes(subject.body["messages"])]
    named = [tool for tool in (*tools, *inline) if tool.get("name") == choice.get("name")]
    if kind == "tool" and not named:
        refuse(f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")
    if named and "direct" not in named[0].get("allowed_callers", ["direct"]):
        refuse(f"tool_choice: Tool '{choice.get('name')}' does not allow the caller `direct`")


def _check_sampling(subject: ClaudeRequest) -> None:
    for name in ("temperature", "top_p", "top_k"):
        value = subject.body.get(name)
        if value is None:
            continue
        if subject.version == NEWEST_VERSION:  # https://platform.claude.com/docs/en/api/migration-2026-10-21
            refuse(f"{name}: Extra inputs are not permitted")
        if not subject.model.sampling and not (name == "temperature" and value == 1):
            refuse(f"`{name}` is deprecated for this model.")
        if thinking_type(subject) == "enabled" and name == "temperature" and value != 1:
            refuse("`temperature` may only be set to 1 when thinking is enabled.")


def _check_prefill(subject: ClaudeRequest) -> None:
    """Check that the request does not end with words of the assistant; an open turn of server tools is no prefill."""
    last = subject.body["messages"][-1]
    if subject.model.prefill or last["role"] != "assistant" or subject.body.get("compaction"):
        return
    content = last["content"]
    final = content[-1]["type"] if content and not isinstance(content, str) else "text"
    if final in ("text", "thinking", "redacted_thinking"):
        refuse("This model does not support assistant message prefill. The conversation must end with a user message.")
