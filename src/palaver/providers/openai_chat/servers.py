"""Servers of chat completions other than OpenAI's: how reasoning goes back to each, and what each refuses.

Every row names its source: the vendor's page, or threads that quote the server's answer. A row is found by the name of a server (`OpenAIProvider(name="deepseek")`
or `server="vllm"`), else by the model's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from palaver.providers.openai_chat.check import for_server
from palaver.wire.table import Profile, Reasoning


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatServer:
    """A server, or a family of models wherever it is served.

    Attributes:
        name: Its name.
        models: The pattern of the names of its models, in small letters; None where the name of the server alone decides.
        field: The field of a message in which reasoning goes back: `content` for chunks of it; empty where none goes back.
        wanted: Which messages of the assistant must have the field: those with `calls`, `all`, or none.
        same_model: Whether reasoning goes back to the model that wrote it only.
        call_id: The pattern of the id of a call, where it is narrower than OpenAI's; such ids are derived with `call_digits` digits.
        call_digits: See `call_id`.
        signed: Whether calls have signatures of Google's.
        answered: Whether nobody but the assistant may speak after results.
    """

    name: str
    models: re.Pattern[str] | None = None
    field: str = ""
    wanted: Literal["", "calls", "all"] = ""
    same_model: bool = False
    call_id: re.Pattern[str] | None = None
    call_digits: int = 24
    signed: bool = False
    answered: bool = False


SERVERS: Final = (
    # Routers and engines, by the name of the server.
    # openrouter.ai/docs/guides/best-practices/reasoning-tokens: «reasoning_details», unmodified and in order
    ChatServer(name="openrouter", field="reasoning_details", same_model=True),
    # vllm-project/vllm (docs/features/reasoning_outputs) has renamed `reasoning_content` to `reasoning`; both go back as they came
    ChatServer(name="vllm", field="reasoning"),
    ChatServer(name="sglang", field="reasoning_content"),
    ChatServer(name="ollama", field="reasoning"),
    # Models, by their names.
    # «The input must not contain `reasoning_content`»: the old reasoner (api-docs.deepseek.com/guides/reasoning_model)
    ChatServer(name="deepseek-reasoner", models=re.compile(r"deepseek-(?:reasoner|r1)")),
    # «The `reasoning_content` in the thinking mode must be passed back to the API.»: MoonshotAI/kimi-cli#2141, OpenHands/OpenHands#14177
    ChatServer(name="deepseek", models=re.compile(r"deepseek"), field="reasoning_content", wanted="all"),
    # «thinking is enabled but reasoning_content is missing in assistant tool call message at index 2»: anthropics/claude-code#32511,
    # zeroclaw-labs/zeroclaw#5600
    ChatServer(name="kimi", models=re.compile(r"kimi|moonshot"), field="reasoning_content", wanted="calls"),
    # docs.z.ai/guides/capabilities/thinking-mode: «complete, unmodified reasoning_content»: huggingface/chat-ui#2470
    ChatServer(name="glm", models=re.compile(r"\bglm-"), field="reasoning_content"),
    # platform.minimax.io, «interleaved thinking»: `reasoning_details` with reasoning_split; `<think>` in the text goes back as text
    ChatServer(name="minimax", models=re.compile(r"minimax"), field="reasoning_details"),
    # 422 extra_forbidden for foreign fields: OpenMinis/OpenMinis#87; its own chunks go back: vercel/ai#17969.
    # «Tool call id … must be a-z, A-Z, 0-9, with a length of 9»: its answer in many threads, such as vllm-project/vllm#9059
    ChatServer(
        name="mistral",
        models=re.compile(r"(?:mi|magi|mini|code|dev|pix|vox)stral|mixtral"),
        field="content",
        call_id=re.compile(r"[a-zA-Z0-9]{9}"),
        call_digits=9,
        # «Unexpected role 'user' after role 'tool'»: mistral-common, `validator.py`: roles after `tool` are `assistant` and `tool`
        answered=True,
    ),
    # ai.google.dev/gemini-api/docs/openai: `extra_content.google.thought_signature` of calls goes back
    ChatServer(name="gemini", models=re.compile(r"gemini"), signed=True),
)
"""The servers, the first that fits counts. A model that no row names gets no reasoning back: templates of Qwen and Gemma strip it, and OpenAI has no field for it."""

_NAMES: Final = {row.name: row for row in SERVERS}


def server_of(model: str, server: str = "") -> ChatServer | None:
    """Return the row of a server by its name, else of a model; None for OpenAI's own and unknown ones."""
    known = _NAMES.get(server.lower())
    named = model.lower()
    return known or next((row for row in SERVERS if row.models is not None and row.models.search(named)), None)


def as_served(profile: Profile, row: ChatServer | None) -> Profile:
    """Return OpenAI's profile as a server has it."""
    if row is None:
        return profile
    calls, turns = profile.calls, replace(profile.turns, answered=row.answered)
    if row.call_id is not None:
        calls = replace(calls, id=row.call_id, unique="request", prefix="", digits=row.call_digits)
    if not row.field:
        return replace(
            profile,
            turns=turns,
            calls=calls,
            api=for_server(profile.api, "", signed=row.signed),
            reasoning=_none(profile.reasoning, row),
        )
    family = re.compile("|".join(filter(None, (re.escape(row.name), row.models.pattern if row.models else ""))))
    reasoning = replace(
        profile.reasoning,
        form="fields",
        maker=row.name,
        field=row.field,
        wanted=row.wanted,
        family=family,
        same_model=row.same_model,
    )
    return replace(profile, turns=turns, calls=calls, api=for_server(profile.api, row.field), reasoning=reasoning)


def _none(reasoning: Reasoning, row: ChatServer) -> Reasoning:
    return replace(reasoning, form="none", signed_calls=row.signed, maker="google" if row.signed else "")
