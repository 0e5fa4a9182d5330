"""The wordings by which providers report that a request is longer than the model's window.

There is no common code. OpenAI's `context_length_exceeded` is the nearest to one; many servers with OpenAI's API use their own
texts. Errors about rates sound similar ("tokens per minute"); they are checked first and are never an overflow, because a shorter conversation
does not help a caller who has used up a minute. A wording that is missing here is reported as a refused request.
"""

from __future__ import annotations

import re

_WORDINGS = (
    # OpenAI chat, vLLM, DeepSeek, OpenRouter: evalstate/fast-agent#621
    r"maximum context length is <limit> tokens.{0,40}?(?:requested|resulted in)(?: about)? <asked> tokens",
    # vLLM from 0.15, Bedrock Mantle: 0xku/kon#91
    r"maximum context length is <limit> tokens.*?prompt contains at least \d+ input tokens, for a total of at least <asked> tokens",
    # vLLM 0.16: harbor-framework/harbor#996; vLLM offline: vllm-project/vllm#12165
    r"passed <asked> input tokens.*?context length is only <limit> tokens",
    r"prompt \(total length <asked>\) is too long to fit into the model \(context length <limit>\)",
    # OpenAI without the second figure: The-Vibe-Company/quivr#505; LiteLLM: earendil-works/pi, packages/ai/test/overflow.test.ts
    r"maximum context length (?:is|of) <limit>",
    # OpenAI Responses: anomalyco/opencode#6071; GPT-5: cline/cline#5474
    r"exceeds (?:the|this|the model'?s|this model'?s) context window",
    r"input tokens exceed the configured limit of <limit> tokens.*?resulted in <asked>",
    # Cerebras: BerriAI/litellm, litellm_core_utils/exception_mapping_utils.py
    r"current length is <asked> while limit is <limit>",
    # Anthropic, Bedrock: anthropics/claude-code#11281; Fireworks: fw-ai/cookbook#134
    r"prompt is too long: <asked> tokens > <limit> maximum",
    r"prompt is too long: <asked>, model maximum context length: <limit>",
    # Anthropic with the answer's limit: docker/docker-agent#569
    r"input length and `?max_tokens`? exceed context limit: <asked> \+ \d+ > <limit>",
    # Anthropic by bytes: earendil-works/pi#2734; with status 413: anthropics/claude-code#6362; gateways: MoonshotAI/kimi-code#476
    r"request_too_large|request exceeds the maximum size|request size exceeds (?:the )?model context window",
    r"total message size <asked> exceeds limit|request entity too large",
    # Gemini: google-gemini/gemini-cli#6678
    r"input token count <asked>\)? exceeds the maximum number of tokens allowed <limit>",
    # Bedrock: tigy32/Tycode#15; by bytes: strands-agents/harness-sdk#3969; Mantle: earendil-works/pi, overflow.test.ts
    r"input is too long for requested model|too many total text bytes",
    r"prompt tokens <asked>\)? exceed model maximum <limit>",
    # xAI: cline/cline#3120
    r"maximum prompt length is <limit> but the request contains <asked>",
    # Together, Text Generation Inference: BerriAI/litellm#4934
    r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= <limit>\.? given: <asked>",
    # SGLang, Together: QwenLM/Qwen3#1321; SGLang by memory: sgl-project/sglang#4048
    r"input <asked> tokens\) is longer than the model\\?'?s context length <limit>",
    r"input length <asked>(?: tokens)?\)? exceeds (?:the |model'?s )?maximum (?:allowed (?:input )?length|context length)(?: of)? <limit>",
    # llama.cpp: ggml-org/llama.cpp#17284; llama-cpp-python: fedora-copr/logdetective#100
    r"request <asked> tokens\) exceeds the available context size <limit>",
    r"exceed_context_size_error|exceeds the available context size",
    r"requested tokens(?: <asked>\))? exceed context window of <limit>",
    # LM Studio: cline/cline#3664; newer: earendil-works/pi, packages/ai/src/utils/overflow.ts
    r"keep the first <asked> tokens when context the overflows.*?context length of only <limit>",
    r"initial prompt is greater than the context length",
    # Ollama: earendil-works/pi, overflow.test.ts; MLX servers: ddalcu/mlx-serve#66
    r"prompt too long; exceeded (?:max )?context length",
    r"prompt exceeds maximum context length|prompt is \d+ tokens but the model context window is",
    # Mistral: earendil-works/pi, overflow.ts
    r"prompt contains <asked> tokens.*?too large for model with <limit> maximum context length",
    # Cohere: cohere-ai/sandbox-topically#4; Cohere chat: docs.cohere.com/reference/errors
    r"too many tokens: total number of tokens .{0,40}?cannot exceed <limit> - received <asked>",
    r"too many tokens: size limit exceeded by \d+ tokens",
    # GitHub Copilot: microsoft/vscode-copilot-release#6700; Kimi: BigPizzaV3/CodexPlusPlus#1803; MiniMax: MiniMax-AI/MiniMax-M2#119
    r"prompt token count of <asked> exceeds the limit of <limit>",
    r"exceeded model token limit: <limit> \(requested: <asked>",
    r"context window exceeds limit",
    # DashScope: QwenLM/qwen-code#2068; Z.ai: anomalyco/opencode#35920
    r"range of input length should be \[1, <limit>\]",
    r"tokens in request more than max tokens allowed|model_context_window_exceeded",
    # Without figures. Anthropic: anomalyco/opencode#6068; Groq and others with OpenAI's code: OpenHands/OpenHands#1902
    r"prompt is too long|context_length_exceeded|contextwindowexceedederror|reduce the length of the messages",
)
"""Patterns in order: one with figures precedes a shorter one without. Tests have an example of each."""

_FIGURE = r"\(?\s*\d[\d,._]*"
_PATTERNS = tuple(
    re.compile(
        wording.replace(" ", r"\s*")
        .replace("<limit>", f"(?P<limit>{_FIGURE})")
        .replace("<asked>", f"(?P<asked>{_FIGURE})"),
        re.IGNORECASE | re.DOTALL,
    )
    for wording in _WORDINGS
)

_RATES = re.compile(
    r"\brate[ _-]?limit|too many requests|throttl|quota"
    r"|(?:tokens|requests) (?:processed )?(?:per|a|/) ?(?:second|sec|minute|min|hour|day)|\b[TR]P[SMHD]\b"
    r"|too many tokens(?:, please wait| processed| per )|per-model limit|please wait before trying again",
    re.IGNORECASE,
)
"""Wordings about rates. Bedrock, Cerebras: anomalyco/opencode#13015; Anthropic, OpenAI by the day: openclaw/openclaw#10003 and #13793;
Groq with status 413: continuedev/continue#10218."""


def about_rates(text: str) -> bool:
    """Return whether a message is about tokens or requests in a period, not about the length of one request."""
    return _RATES.search(text) is not None


def overflow_in(text: str) -> dict[str, int | None] | None:
    """Return the `limit` and `asked` tokens of a provider's message about an overflow, if it contains them, or None for any other message."""
    if about_rates(text):
        return None
    for pattern in _PATTERNS:
        found = pattern.search(text)
        if found is not None:
            return {name: _number(figure) for name, figure in found.groupdict().items()}
    return None


def _number(text: str | None) -> int | None:
    digits = re.sub(r"\D", "", text or "")
    return int(digits) if digits else None
