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
