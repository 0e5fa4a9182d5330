"""Context: which part of a conversation the model sees. Policies, the operators they are made of, and `compose`, which applies them."""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.context.compose import Composed, Policy, compose
    from palaver.context.layout import Layout
    from palaver.context.manager import ContextManager, WorkingDialog
    from palaver.context.meter import Meter, Size
    from palaver.context.policy import DEFAULT_POLICY, POLICIES, policy, require_policy
    from palaver.context.recall import RECALL_TOOLS, Said, arguments_of, recalled, searched
    from palaver.context.record import record
    from palaver.context.summary import HEADINGS, Summarizer, summarize
    from palaver.context.tool_effects import effect

__all__ = [
    "DEFAULT_POLICY",
    "HEADINGS",
    "POLICIES",
    "RECALL_TOOLS",
    "Composed",
    "ContextManager",
    "Layout",
    "Meter",
    "Policy",
    "Said",
    "Size",
    "Summarizer",
    "WorkingDialog",
    "arguments_of",
    "compose",
    "effect",
    "policy",
    "recalled",
    "record",
    "require_policy",
    "searched",
    "summarize",
]

open_door(
    __name__,
    {
        ".compose": "Composed Policy compose",
        ".layout": "Layout",
        ".manager": "ContextManager WorkingDialog",
        ".meter": "Meter Size",
        ".policy": "DEFAULT_POLICY POLICIES policy require_policy",
        ".recall": "RECALL_TOOLS Said arguments_of recalled searched",
        ".record": "record",
        ".summary": "HEADINGS Summarizer summarize",
        ".tool_effects": "effect",
    },
)
