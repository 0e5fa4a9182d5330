"""The languages that a map knows: which wheel has the grammar, which files are theirs, and what defines and uses a name in them.

The patterns are tree-sitter queries (https://tree-sitter.github.io/tree-sitter/using-parsers/queries), written for the grammars that the extra
`repomap` installs. What they catch: `@type` and `@function` are definitions, `@constant` one that is shown in its first line; what others stand
in and nobody refers to is a `@scope`, or `@members` where they belong to a type; each with its `@name` and, where it has one, its `@body`. A name
in use is a `@reference`; `@plain` where it cannot be that of a member; and an `@import` where it is said which `@module` it is from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["LANGUAGES", "Language", "language_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One grammar and what is looked for with it.

    Attributes:
        name: Its name.
        family: Names are known to each other within a family: C and C++ are one.
        package: The module that brings the grammar.
        grammar: The function of that module which gives it.
        endings: The endings of its files.
        query: What is looked for.
    """

    name: str
    family: str
    package: str
    grammar: str = "language"
    endings: tuple[str, ...]
    query: str


_PYTHON = """
(class_definition name: (identifier) @name body: (_) @body) @type
(function_definition name: (identifier) @name body: (_) @body) @function
(module (expression_statement (assignment left: (identifier) @name)) @constant)
(type_alias_statement left: (type (identifier) @name)) @constant
(call function: [(identifier) @plain (attribute attribute: (identifier) @reference)])
(decorator [(identifier) @plain (attribute attribute: (identifier) @reference)])
(class_definition superclasses: (argument_list [(identifier) @plain (attribute attribute: (identifier) @reference)
  (subscript value: (identifier) @plain)]))
(type [(identifier) @plain (attribute attribute: (identifier) @reference) (generic_type (identifier) @plain)
  (subscript value: (identifier) @plain)])
(binary_operator left: (identifier) @plain operator: "|")
(binary_operator operator: "|" right: (identifier) @plain)
(except_clause value: [(identifier) @plain (tuple (identifier) @plain) (as_pattern (identifier) @plain)])
(raise_statement (identifier) @plain)
(import_from_statement module_name: (_) @module
  name: [(dotted_name (identifier) @import) (aliased_import name: (dotted_name (identifier) @import))])
"""

_SCRIPT = """
(function_declaration name: (identifier) @name body: (_) @body) @function
(generator_function_declaration name: (identifier) @name body: (_) @body) @function
(method_definition name: [(property_identifier) (private_property_identifier)] @name body: (_) @body) @function
(variable_declarator name: (identifier) @name value: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @function
(assignment_expression left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function body: (_) @body) (function_expression body: (_) @body)]) @function
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @constant)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name))) @constant)
(call_expression function: [(identifier) @plain (member_expression property: (property_identifier) @reference)])
(new_expression constructor: [(identifier) @plain (member_expression property: (property_identifier) @reference)])
(import_statement (import_clause [(identifier) @import (named_imports (import_specifier name: (identifier) @import))])
  source: (string (string_fragment) @module))
"""

_JAVASCRIPT = (
    _SCRIPT
    + """
(class_declaration name: (identifier) @name body: (_) @body) @type
(class_heritage [(identifier) @plain (member_expression property: (property_identifier) @reference)])
"""
)

_TYPESCRIPT = (
    _SCRIPT
    + """
(class_declaration name: (type_identifier) @name body: (_) @body) @type
(abstract_class_declaration name: (type_identifier) @name body: (_) @body) @type
(interface_declaration name: (type_identifier) @name body: (_) @body) @type
(enum_declaration name: (identifier) @name body: (_) @body) @type
(type_alias_declaration name: (type_identifier) @name) @constant
(internal_module name: (_) @name body: (_) @body) @scope
(function_signature name: (identifier) @name) @function
(method_signature name: (property_identifier) @name) @function
(abstract_method_signature name: (property_identifier) @name) @function
(extends_clause value: [(identifier) @plain (member_expression property: (property_identifier) @reference)])
(type_identifier) @plain
"""
)

_JSX = """
(jsx_opening_element name: [(identifier) @plain (member_expression property: (property_identifier) @reference)])
(jsx_self_closing_element name: [(identifier) @plain (member_expression property: (property_identifier) @reference)])
"""

_GO = """
(function_declaration name: (identifier) @name body: (_) @body) @function
(method_declaration name: (field_identifier) @name body: (_) @body) @function
(type_declaration (type_spec name: (type_identifier) @name type: [(struct_type (_) @body) (interface_type)])) @type
(type_declaration (type_spec name: (type_identifier) @name type: [(type_identifier) (qualified_type) (map_type) (slice_type)
  (array_type) (function_type) (pointer_type) (channel_type) (generic_type)])) @constant
(type_declaration (type_alias name: (type_identifier) @name)) @constant
(method_elem name: (field_identifier) @name) @function
(source_file (const_declaration (const_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @constant))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @constant)))
(call_expression function: [(identifier) @plain (selector_expression field: (field_identifier) @reference)])
(type_identifier) @plain
"""

_RUST = """
(struct_item name: (type_identifier) @name body: (_)? @body) @type
(enum_item name: (type_identifier) @name body: (_) @body) @type
(union_item name: (type_identifier) @name body: (_) @body) @type
(trait_item name: (type_identifier) @name body: (_) @body) @type
(type_item name: (type_identifier) @name) @constant
(impl_item type: (_) @name body: (_) @body) @members
(mod_item name: (identifier) @name body: (_) @body) @scope
(function_item name: (identifier) @name body: (_) @body) @function
(function_signature_item name: (identifier) @name) @function
(macro_definition name: (identifier) @name) @constant
(const_item name: (identifier) @name) @constant
(static_item name: (identifier) @name) @constant
(call_expression function: [(identifier) @plain (field_expression field: (field_identifier) @reference)
  (scoped_identifier name: (identifier) @reference) (generic_function function: (identifier) @reference)])
(macro_invocation macro: [(identifier) @plain (scoped_identifier name: (identifier) @reference)])
(use_declaration argument: (scoped_identifier name: (identifier) @reference))
(use_list [(identifier) @reference (scoped_identifier name: (identifier) @reference)])
(type_identifier) @plain
"""

_JAVA = """
(class_declaration name: (identifier) @name body: (_) @body) @type
(interface_declaration name: (identifier) @name body: (_) @body) @type
(enum_declaration name: (identifier) @name body: (_) @body) @type
(record_declaration name: (identifier) @name body: (_) @body) @type
(annotation_type_declaration name: (identifier) @name body: (_) @body) @type
(method_declaration name: (identifier) @name body: (_)? @body) @function
(constructor_declaration name: (identifier) @name body: (_) @body) @function
(field_declaration (modifiers "static" "final") declarator: (variable_declarator name: (identifier) @name)) @constant
(method_invocation name: (identifier) @reference)
(marker_annotation name: (identifier) @reference)
(annotation name: (identifier) @reference)
(import_declaration (scoped_identifier name: (identifier) @reference))
(type_identifier) @reference
"""

_C = """
(function_definition declarator: (function_declarator declarator: (identifier) @name) body: (_) @body) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)) body: (_) @body) @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @function
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @function
(struct_specifier name: (type_identifier) @name body: (_) @body) @type
(union_specifier name: (type_identifier) @name body: (_) @body) @type
(enum_specifier name: (type_identifier) @name body: (_) @body) @type
(type_definition declarator: (type_identifier) @name) @constant
(preproc_def name: (identifier) @name value: (_)) @constant
(preproc_function_def name: (identifier) @name) @constant
(call_expression function: [(identifier) @reference (field_expression field: (field_identifier) @reference)])
(type_identifier) @reference
"""

_CPP = (
    _C
    + """
(class_specifier name: (type_identifier) @name body: (_) @body) @type
(namespace_definition name: (_) @name body: (_) @body) @scope
(function_definition declarator: (function_declarator declarator: (field_identifier) @name) body: (_)? @body) @function
(function_definition declarator: (function_declarator declarator: (qualified_identifier name: (identifier) @name)) body: (_) @body) @function
(function_definition declarator: (reference_declarator (function_declarator
  declarator: [(identifier) (field_identifier)] @name)) body: (_) @body) @function
(function_definition declarator: (reference_declarator (function_declarator
  declarator: (qualified_identifier name: (identifier) @name))) body: (_) @body) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator
  declarator: (field_identifier) @name)) body: (_) @body) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator
  declarator: (qualified_identifier name: (identifier) @name))) body: (_) @body) @function
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @function
(field_declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))) @function
(field_declaration declarator: (reference_declarator (function_declarator declarator: (field_identifier) @name))) @function
(alias_declaration name: (type_identifier) @name) @constant
(call_expression function: [(qualified_identifier name: (identifier) @reference)
  (qualified_identifier name: (template_function name: (identifier) @reference)) (template_function name: (identifier) @reference)])
"""
)

LANGUAGES: tuple[Language, ...] = (
    Language(
        name="python", family="python", package="tree_sitter_python", endings=(".py", ".pyi", ".pyw"), query=_PYTHON
    ),
    Language(
        name="javascript",
        family="script",
        package="tree_sitter_javascript",
        endings=(".js", ".jsx", ".mjs", ".cjs"),
        query=_JAVASCRIPT + _JSX,
    ),
    Language(
        name="typescript",
        family="script",
        package="tree_sitter_typescript",
        grammar="language_typescript",
        endings=(".ts", ".mts", ".cts"),
        query=_TYPESCRIPT,
    ),
    Language(
        name="tsx",
        family="script",
        package="tree_sitter_typescript",
        grammar="language_tsx",
        endings=(".tsx",),
        query=_TYPESCRIPT + _JSX,
    ),
    Language(name="go", family="go", package="tree_sitter_go", endings=(".go",), query=_GO),
    Language(name="rust", family="rust", package="tree_sitter_rust", endings=(".rs",), query=_RUST),
    Language(name="java", family="java", package="tree_sitter_java", endings=(".java",), query=_JAVA),
    Language(name="c", family="c", package="tree_sitter_c", endings=(".c",), query=_C),
    Language(
        name="cpp",
        family="c",
        package="tree_sitter_cpp",
        endings=(
            ".h",
            ".cc",
            ".cpp",
            ".cxx",
            ".c++",
            ".hh",
            ".hpp",
            ".hxx",
            ".h++",
        ),  # a header of C is C++ nearly always
        query=_CPP,
    ),
)
"""All of them; which of two grammars reads a file is decided by its ending alone."""

_BY_ENDING: Mapping[str, Language] = MappingProxyType({ending: each for each in LANGUAGES for ending in each.endings})


def language_of(path: str) -> Language | None:
    """Give the language of a file by the ending of its name, or None."""
    name = path.rsplit("/", 1)[-1]
    return _BY_ENDING.get(name[name.rfind(".") :].lower()) if "." in name else None
