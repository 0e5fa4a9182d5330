"""One tool call as a loop handles it: what was asked and, once it ran, what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaver.messages.blocks import ToolCallContent
from palaver.messages.frozen import EMPTY

__all__ = ["FunctionCall"]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A view of a tool-call block, with the outcome if it is known.

    Attributes:
        id: Pairs the call with its result.
        name: The tool's name.
        arguments: The arguments; empty if the model's text could not be read.
        result: What the tool returned.
        result_str: The result as the model sees it.
        error_message: Why it failed, or None.
    """

    id: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    result: Any = None
    result_str: str | None = None
    error_message: str | None = None

    @property
    def success(self) -> bool:
        """Whether it ran and did not fail."""
        return self.error_message is None and (self.result is not None or self.result_str is not None)

    def equals(self, other: FunctionCall) -> bool:
        """Return whether both ask the same tool for the same thing, whatever their ids."""
        return self.name == other.name and self.arguments == other.arguments

    def is_repeated(self, earlier: Iterable[FunctionCall]) -> bool:
        """Return whether an earlier call asked for the same."""
        return any(self.equals(call) for call in earlier)

    @classmethod
    def of(cls, block: ToolCallContent) -> FunctionCall:
        """Return the view of a block."""
        extra = block.model_extra
        return cls(
            id=block.id,
            name=block.name,
            arguments=block.args,
            result=extra.get("result"),
            result_str=extra.get("result_str"),
            error_message=extra.get("error_message") or block.error,
        )

    def to_block(self) -> ToolCallContent:
        """Return the block; the outcome goes into extra fields of the same names."""
        outcome = {"result": self.result, "result_str": self.result_str, "error_message": self.error_message}
        known = {name: value for name, value in outcome.items() if value is not None}
        return ToolCallContent.from_dict({"id": self.id, "name": self.name, "args": self.arguments, **known})
