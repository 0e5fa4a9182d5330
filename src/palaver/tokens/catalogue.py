"""The model catalogue: from a name, however it is spelt, to window, longest answer and tokenizer. Offline."""

from __future__ import annotations

from dataclasses import dataclass

from palaver.errors import NotFound
from palaver.tokens import genai
from palaver.tokens.families import family_of
from palaver.tokens.limits import limits_of
from palaver.tokens.names import read_name

__all__ = ["ModelInfo", "model_info"]

_LONG_WINDOW = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of one model. Figures are tokens.

    Make one yourself for a model of your own: ``ModelInfo("my-llama", context_window=32_768)``.

    Attributes:
        name: The name as it was asked for.
        context_window: What one request and its answer may occupy together.
        max_input: What one request may occupy at most; never the longest answer.
        max_output: The longest answer, reasoning included, or None where nobody says.
        provider: Who serves it, in the words of genai-prices; empty if nobody does.
        family: Which models it counts like (``palaver.tokens.FAMILIES``).
        known: Whether the window is known. If not, ``context_window`` is a default and ``warning`` says so.
        warning: A sentence for the user when ``known`` is false, else empty.
    """

    name: str
    context_window: int
    max_input: int = 0
    max_output: int | None = None
    provider: str = ""
    family: str = "other"
    known: bool = True
    warning: str = ""

    def __post_init__(self) -> None:
        """Take the whole window as input where nothing narrower was given."""
        if not self.max_input:
            object.__setattr__(self, "max_input", self.context_window)


def model_info(name: str, *, strict: bool = False) -> ModelInfo:
    """Look a model up.

    Understood are bare and dated names and those with prefixes of a host or maker, as LiteLLM, OpenRouter, Bedrock and
    Vertex spell them.

    Args:
        name: The model.
        strict: Refuse a model whose window is not known. Otherwise it gets the default window of the family its name
            suggests, ``known`` is false, and ``warning`` says what was assumed.

    Raises:
        NotFound: ``strict``, and the window is not known; the error names close matches.
    """
    asked = read_name(name)
    family = family_of(asked.bare)
    limits = limits_of(asked.bare)
    found = genai.find(asked)
    listed = found.context_window if found else None
    long_window = asked.long_window and found is not None
    window = _LONG_WINDOW if long_window else limits.window or listed
    if window is None and strict:
        raise NotFound(
            name,
            what="model",
            close=genai.close_names(asked),
            hint="Give the window yourself: ModelInfo(name, window).",
        )
    known = window is not None
    window = window or family.default_window
    return ModelInfo(
        name=name,
        context_window=window,
        max_input=window - (limits.max_output or 0) if limits.apart and known else window,
        max_output=limits.max_output if known else None,
        provider=found.provider.id if found else "",
        family=family.name,
        known=known,
        warning="" if known else _warning(name, window, genai.close_names(asked)),
    )


def _warning(name: str, window: int, close: tuple[str, ...]) -> str:
    """Return the warning for an unknown model."""
    near = f" Close: {', '.join(close)}." if close else ""
    return f"The window of {name!r} is not known; {window:,} tokens are assumed.{near}"
