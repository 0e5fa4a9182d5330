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
(import_clause [(identifier) @plain (named_imports (import_specifier name: (identifier) @plain))])
