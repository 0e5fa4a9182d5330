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
