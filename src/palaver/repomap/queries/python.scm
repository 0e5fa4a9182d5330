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
(import_from_statement name: [(dotted_name (identifier) @plain) (aliased_import name: (dotted_name (identifier) @plain))])
