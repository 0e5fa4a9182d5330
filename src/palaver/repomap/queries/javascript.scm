(class_declaration name: (identifier) @name body: (_) @body) @type
(class_heritage [(identifier) @plain (member_expression property: (property_identifier) @reference)])
