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
