"""Dialects: the lists of messages that APIs, frameworks and pages exchange, read into messages and written back.

The items of the APIs' own lists are read and written by the rooms of `palaver.providers`; those of frameworks and pages have a module each here. Packages add
further ones under the entry point `palaver.dialects`: an object with the attributes and methods of `MessageDialect`.
"""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.dialects.dialect import MessageDialect
    from palaver.dialects.fitted import ReadList, read_list
    from palaver.dialects.lists import (
        SdkObject,
        dialect_of,
        is_one,
        item_reader,
        items_of,
        messages_of,
        names,
        read_messages,
    )
    from palaver.dialects.tools import tool_specs
    from palaver.dialects.writing import WrittenList, WrittenView, write_messages, write_view

__all__ = [
    "MessageDialect",
    "ReadList",
    "SdkObject",
    "WrittenList",
    "WrittenView",
    "dialect_of",
    "is_one",
    "item_reader",
    "items_of",
    "messages_of",
    "names",
    "read_list",
    "read_messages",
    "tool_specs",
    "write_messages",
    "write_view",
]

open_door(
    __name__,
    {
        ".dialect": "MessageDialect",
        ".fitted": "ReadList read_list",
        ".lists": "SdkObject dialect_of is_one item_reader items_of messages_of names read_messages",
        ".tools": "tool_specs",
        ".writing": "WrittenList WrittenView write_messages write_view",
    },
)
