"""Dialects: the lists of messages that APIs, frameworks and pages exchange, read into messages and written back.

The APIs' own lists are read and written by the rooms of `palaver.providers`; those of frameworks and pages have a module each here. Packages add
further ones under the entry point `palaver.dialects`: an object with the attributes and methods of `MessageDialect`.
"""

from typing import TYPE_CHECKING

from palaver.doors import open_door

if TYPE_CHECKING:
    from palaver.dialects.dialect import MessageDialect
    from palaver.dialects.lists import ReadList, dialect_of, item_reader, messages_of, names, read_list, read_messages
    from palaver.dialects.writing import WrittenList, WrittenView, write_messages, write_view

__all__ = [
    "MessageDialect",
    "ReadList",
    "WrittenList",
    "WrittenView",
    "dialect_of",
    "item_reader",
    "messages_of",
    "names",
    "read_list",
    "read_messages",
    "write_messages",
    "write_view",
]

open_door(
    __name__,
    {
        ".dialect": "MessageDialect",
        ".lists": "ReadList dialect_of item_reader messages_of names read_list read_messages",
        ".writing": "WrittenList WrittenView write_messages write_view",
    },
)
