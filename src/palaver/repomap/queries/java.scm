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
