"""How providers say that a request is longer than the model's window: a table of wordings, each with an example and where it was seen.

There is no common code. OpenAI's `context_length_exceeded` is the nearest to one, and many servers that speak OpenAI's API say
something of their own. Some wordings about rates sound alike, "tokens per minute" above all; they are looked for first and are never an
overflow: a smaller request does not help the one who has used up his minute, and a conversation is not to be shortened for it.

A wording that is missing here makes an overflow a refused request: it is reported, and nothing is shortened. Please add it, with the thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["RATES", "WORDINGS", "Overflow", "Wording", "about_rates", "overflow_in"]


@dataclass(frozen=True, slots=True)
class Wording:
    """How one provider says it.

    Attributes:
        by: Who.
        pattern: What is looked for, without regard to case; the groups `limit` and `asked` are figures in tokens.
        example: A message, as it was reported.
        seen: The thread where it was reported, or the page that documents it.
    """

    by: str
    pattern: re.Pattern[str]
    example: str
    seen: str


@dataclass(frozen=True, slots=True)
class Overflow:
    """What a message says about an overflow, in tokens; None where it does not say."""

    limit: int | None = None
    asked: int | None = None


_N = r"\(?\s*\d[\d,._]*"


def _row(by: str, pattern: str, example: str, seen: str) -> Wording:
    figures = pattern.replace("<limit>", rf"(?P<limit>{_N})").replace("<asked>", rf"(?P<asked>{_N})")
    return Wording(by, re.compile(figures, re.IGNORECASE | re.DOTALL), example, seen)


WORDINGS: tuple[Wording, ...] = (
    _row(
        "OpenAI chat, vLLM, DeepSeek, OpenRouter",
        r"maximum context length is <limit>\s*tokens.{0,40}?(?:requested|resulted in)(?: about)? <asked>\s*tokens",
        "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the messages, 8192 in "
        "the completion). Please reduce the length of the messages or completion.",
        "evalstate/fast-agent#621",
    ),
    _row(
        "vLLM from 0.15, Bedrock Mantle",
        r"maximum context length is <limit>\s*tokens.*?prompt contains at least \d+ input tokens, for a total of at least <asked>\s*tokens",
        "This model's maximum context length is 196608 tokens. However, you requested 16384 output tokens and your prompt contains at least "
        "180225 input tokens, for a total of at least 196609 tokens. Please reduce the length of the input prompt or the number of requested "
        "output tokens. (parameter=input_tokens, value=180225)",
        "0xku/kon#91",
    ),
    _row(
        "vLLM 0.16",
        r"passed <asked>\s*input tokens.*?context length is only <limit>\s*tokens",
        "You passed 1015 input tokens and requested 10 output tokens. However, the model's context length is only 1024 tokens, resulting in a "
        "maximum input length of 1014 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=1015)",
        "harbor-framework/harbor#996",
    ),
    _row(
        "vLLM offline",
        r"prompt \(total length <asked>\) is too long to fit into the model \(context length <limit>\)",
        "The prompt (total length 25938) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no "
        "smaller than the number of text tokens plus multimodal tokens.",
        "vllm-project/vllm#12165",
    ),
    _row(
        "OpenAI, any other figures",
        r"maximum context length is <limit>",
        "This model's maximum context length is 4097 tokens.",
        "The-Vibe-Company/quivr#505",
    ),
    _row(
        "OpenAI responses",
        r"exceeds (?:the|this|the model'?s|this model'?s) context window",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "anomalyco/opencode#6071",
    ),
    _row(
        "OpenAI GPT-5",
        r"input tokens exceed the configured limit of <limit>\s*tokens.*?resulted in <asked>",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please reduce the length of the "
        "messages.",
        "cline/cline#5474",
    ),
    _row(
        "Cerebras",
        r"current length is <asked>\s*while limit is <limit>",
        "Please reduce the length of the messages or completion. Current length is 8421 while limit is 8192",
        "BerriAI/litellm: litellm_core_utils/exception_mapping_utils.py",
    ),
    _row(
        "Groq, and others that say OpenAI's code",
        r"context_length_exceeded|reduce the length of the messages",
        "Please reduce the length of the messages or completion.",
        "OpenHands/OpenHands#1902",
    ),
    _row(
        "Anthropic, Bedrock",
        r"prompt is too long: <asked>\s*tokens > <limit>\s*maximum",
        "prompt is too long: 201130 tokens > 200000 maximum",
        "anthropics/claude-code#11281",
    ),
    _row(
        "Fireworks",
        r"prompt is too long: <asked>, model maximum context length: <limit>",
        "The prompt is too long: 40177, model maximum context length: 32767",
        "fw-ai/cookbook#134",
    ),
    _row("Anthropic, no figures", r"prompt is too long", "Prompt is too long", "anomalyco/opencode#6068"),
    _row(
        "Anthropic, with the answer's limit",
        r"input length and `?max_tokens`? exceed context limit: <asked> \+ \d+ > <limit>",
        "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or `max_tokens` and try again",
        "docker/docker-agent#569",
    ),
    _row(
        "Anthropic, bytes",
        r"request_too_large|request exceeds the maximum size",
        "Request exceeds the maximum size",
        "earendil-works/pi#2734",
    ),
    _row(
        "Anthropic, 413",
        r"request size exceeds (?:the )?model context window",
        "Request size exceeds model context window",
        "anthropics/claude-code#6362",
    ),
    _row(
        "Gateways, bytes",
        r"total message size <asked>\s*exceeds limit|request entity too large",
        "total message size 10176584 exceeds limit 2097152",
        "MoonshotAI/kimi-code#476",
    ),
    _row(
        "Gemini",
        r"input token count <asked>\)? exceeds the maximum number of tokens allowed <limit>",
        "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        "google-gemini/gemini-cli#6678",
    ),
    _row(
        "Bedrock",
        r"input is too long for requested model",
        "The model returned the following errors: Input is too long for requested model.",
        "tigy32/Tycode#15",
    ),
    _row(
        "Bedrock, bytes",
        r"too many total text bytes",
        "too many total text bytes: 26107200 > 25000000",
        "strands-agents/harness-sdk#3969",
    ),
    _row(
        "Bedrock Mantle, responses",
        r"prompt tokens <asked>\)? exceed model maximum <limit>",
        "invalid_prompt: prompt tokens (330095) exceed model maximum (278528) for base model abc",
        "earendil-works/pi: packages/ai/test/overflow.test.ts",
    ),
    _row(
        "xAI",
        r"maximum prompt length is <limit>\s*but the request contains <asked>",
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
        "cline/cline#3120",
    ),
    _row(
        "Together, Text Generation Inference",
        r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= <limit>\.? given: <asked>",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 80125 `inputs` tokens and 4096 `max_new_tokens`",
        "BerriAI/litellm#4934",
    ),
    _row(
        "SGLang, Together",
        r"input <asked>\s*tokens\) is longer than the model\\?'?s context length <limit>",
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
        "QwenLM/Qwen3#1321",
    ),
    _row(
        "SGLang, memory",
        r"input length <asked>(?:\s*tokens)?\)? exceeds (?:the |model'?s )?maximum (?:allowed (?:input )?length|context length)(?: of)? <limit>",
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
        "sgl-project/sglang#4048",
    ),
    _row(
        "llama.cpp",
        r"exceed_context_size_error|request(?: <asked>\s*tokens\))? exceeds the available context size(?: <limit>\s*tokens\))?",
        "the request exceeds the available context size, try increasing it",
        "ggml-org/llama.cpp#17284",
    ),
    _row(
        "llama-cpp-python",
        r"requested tokens(?: <asked>\))? exceed context window of <limit>",
        "Requested tokens (2285) exceed context window of 2048",
        "fedora-copr/logdetective#100",
    ),
    _row(
        "Ollama",
        r"prompt too long; exceeded (?:max )?context length",
        "prompt too long; exceeded max context length by 100918 tokens",
        "earendil-works/pi: packages/ai/test/overflow.test.ts",
    ),
    _row(
        "LM Studio",
        r"keep the first <asked>\s*tokens when context the overflows.*?context length of only <limit>",
        "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 "
        "tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input.",
        "cline/cline#3664",
    ),
    _row(
        "LM Studio, newer",
        r"initial prompt is greater than the context length",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "earendil-works/pi: packages/ai/src/utils/overflow.ts",
    ),
    _row(
        "MLX servers",
        r"prompt exceeds maximum context length|prompt is \d+ tokens but the model context window is",
        "Prompt exceeds maximum context length",
        "ddalcu/mlx-serve#66",
    ),
    _row(
        "Mistral",
        r"prompt contains <asked>\s*tokens.*?too large for model with <limit>\s*maximum context length",
        "Prompt contains 300000 tokens, too large for model with 131072 maximum context length",
        "earendil-works/pi: packages/ai/src/utils/overflow.ts",
    ),
    _row(
        "Cohere",
        r"too many tokens: total number of tokens .{0,40}?cannot exceed <limit> - received <asked>",
        "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354. Try using a shorter prompt or a "
        "smaller max_tokens value.",
        "cohere-ai/sandbox-topically#4",
    ),
    _row(
        "Cohere chat",
        r"too many tokens: size limit exceeded by \d+ tokens",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs, or setting prompt_truncation='AUTO'.",
        "docs.cohere.com/reference/errors",
    ),
    _row(
        "GitHub Copilot",
        r"prompt token count of <asked>\s*exceeds the limit of <limit>",
        "prompt token count of 65446 exceeds the limit of 64000",
        "microsoft/vscode-copilot-release#6700",
    ),
    _row(
        "Moonshot Kimi",
        r"exceeded model token limit: <limit>\s*\(requested: <asked>",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 287431)",
        "BigPizzaV3/CodexPlusPlus#1803",
    ),
    _row(
        "MiniMax",
        r"context window exceeds limit",
        "invalid params, context window exceeds limit (2013)",
        "MiniMax-AI/MiniMax-M2#119",
    ),
    _row(
        "Alibaba DashScope",
        r"range of input length should be \[1, <limit>\]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
        "QwenLM/qwen-code#2068",
    ),
    _row(
        "Z.ai",
        r"tokens in request more than max tokens allowed|model_context_window_exceeded",
        "tokens in request more than max tokens allowed",
        "anomalyco/opencode#35920",
    ),
    _row(
        "LiteLLM, and servers behind it",
        r"contextwindowexceedederror|exceeds the model'?s maximum context length of <limit>",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "earendil-works/pi: packages/ai/test/overflow.test.ts",
    ),
)
"""Every known wording. A figure is wanted more than a name: wordings with figures stand before those without."""


RATES = re.compile(
    r"\brate[ _-]?limit|too many requests|throttl|quota"
    r"|(?:tokens|requests) (?:processed )?(?:per|a|/) ?(?:second|sec|minute|min|hour|day)|\b[TR]P[SMHD]\b"
    r"|too many tokens(?:, please wait| processed| per )|per-model limit|please wait before trying again",
    re.IGNORECASE,
)
"""What a message about rates says: github.com/anomalyco/opencode/issues/13015 (Bedrock, Cerebras), openclaw/openclaw#10003 and #13793
(Anthropic, OpenAI by the day), continuedev/continue#10218 (Groq answers 413)."""


def about_rates(text: str) -> bool:
    """Tell whether a message speaks of how much may be asked in a while, and not of how long one request may be."""
    return RATES.search(text) is not None


def overflow_in(text: str) -> Overflow | None:
    """Find in a provider's message that the request is too long, with the figures it gives; None when it says no such thing."""
    if about_rates(text):
        return None
    for wording in WORDINGS:
        found = wording.pattern.search(text)
        if found is not None:
            figures = found.groupdict()
            return Overflow(_number(figures.get("limit")), _number(figures.get("asked")))
    return None


def _number(text: str | None) -> int | None:
    digits = re.sub(r"\D", "", text or "")
    return int(digits) if digits else None
