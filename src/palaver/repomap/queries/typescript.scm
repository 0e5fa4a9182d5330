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
