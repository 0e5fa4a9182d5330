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
