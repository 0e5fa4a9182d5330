"""What the Gemini API refuses: one case for each rejection that its validator names."""

from palaver.wire.violations import Rule
from tests.wire.check.pictures import base64_of, gif, png
from tests.wire.check.spoiling import Add, Case, Drop, Move, Put, maker

case = maker("gemini")

IMAGE = ("contents", 0, "parts", 1, "inlineData")
CALL = ("contents", 1, "parts", 1, "functionCall")
RESPONSES = ("contents", 2, "parts")
SCHEMA = ("tools", 0, "functionDeclarations", 0, "parameters")
DECLARATIONS = ("tools", 0, "functionDeclarations")

ANSWER = ("generationConfig", "responseJsonSchema")

CASES: tuple[Case, ...] = (
    # The body
    case("bytes are no JSON", Rule.NOT_JSON, Put((*CALL, "args", "data"), b"x")),
    case("half a character", Rule.LONE_SURROGATE, Put((*CALL, "args", "path"), "\ud800")),
    case("NUL", Rule.NUL, Put((*RESPONSES, 0, "functionResponse", "response", "output"), "\x00")),
    case("a body too large", Rule.REQUEST_BYTES, **{"": {"request_bytes": 1000}}),
    # Fields
    case(
        "a response without a name",
        Rule.FIELD_MISSING,
        Add(("contents", 0, "parts", 0), ({"fileData": {"mimeType": "image/png"}},)),
    ),
    case("a field of another provider", Rule.FIELD_UNKNOWN, Put(("messages",), [])),
    case("a field of the other platform", Rule.FIELD_UNKNOWN, Put((*CALL, "partialArgs"), [])),
    case("content as a string", Rule.FIELD_TYPE, Put(("contents", 4, "parts"), "Sure?")),
    case("an unknown mode", Rule.FIELD_VALUE, Put(("toolConfig", "functionCallingConfig"), {"mode": "SOME"})),
    case("no contents", Rule.LIST_LENGTH, Put(("contents",), [])),
    case("two things in one part", Rule.BLOCK_KIND, Put(("contents", 0, "parts", 0, "executableCode"), {})),
    case("nothing in a part", Rule.BLOCK_KIND, Add(("contents", 0, "parts", 0), ({},))),
    case(
        "a call in the user's mouth",
        Rule.BLOCK_PLACE,
        Add(("contents", 4, "parts", 0), ({"functionCall": {"name": "read_file"}},)),
    ),
    case("a response in the model's mouth", Rule.BLOCK_PLACE, Put(("contents", 2, "role"), "model")),
    case("no parts", Rule.MESSAGE_EMPTY, Put(("contents", 3, "parts"), [])),
    case(
        "a cache and instructions",
        Rule.PARAMETER_CONFLICT,
        Put(("cachedContent",), "cachedContents/1"),
        Drop(("tools",)),
        Drop(("toolConfig",)),
    ),
    case(
        "a budget and a level",
        Rule.PARAMETER_CONFLICT,
        Put(("generationConfig", "thinkingConfig", "thinkingBudget"), 100),
    ),
    case(
        "two schemas of the answer",
        Rule.PARAMETER_CONFLICT,
        Put(("generationConfig", "responseSchema"), {"type": "OBJECT"}),
    ),
    case("a schema of an answer that is text", Rule.PARAMETER_CONFLICT, Drop(("generationConfig", "responseMimeType"))),
    case(
        "two schemas of a function",
        Rule.PARAMETER_CONFLICT,
        Put((*DECLARATIONS, 0, "parametersJsonSchema"), {"type": "object"}),
    ),
    case(
        "functions named for any mode",
        Rule.PARAMETER_CONFLICT,
        Put(("toolConfig", "functionCallingConfig", "mode"), "AUTO"),
    ),
    # Turns
    case("a role of another provider", Rule.ROLE_UNKNOWN, Put(("contents", 3, "role"), "assistant")),
    case("the model first", Rule.ROLE_FIRST, Add(("contents", 0), ({"role": "model", "parts": [{"text": "Hi."}]},))),
    case(
        "a host that wants turns taken",
        Rule.ROLE_ALTERNATION,
        Add(("contents", 4), ({"role": "user", "parts": [{"text": "Hi."}]},)),
        turns={"alternate": True},
    ),
    case(
        "the model's words last",
        Rule.ROLE_LAST,
        Add(("contents", 7), ({"role": "model", "parts": [{"text": "A heron."}]},)),
    ),
    case("an empty text", Rule.TEXT_EMPTY, Put(("contents", 4, "parts", 0, "text"), "")),
    case("an empty instruction", Rule.TEXT_EMPTY, Put(("systemInstruction", "parts", 0, "text"), "")),
    case("a text too long", Rule.TEXT_LENGTH, turns={"text_characters": 20}),
    # Calls
    case("an empty id", Rule.CALL_ID, Put((*CALL, "id"), ""), Drop((*RESPONSES, 0, "functionResponse", "id"))),
    case(
        "two calls of one id",
        Rule.CALL_DUPLICATE,
        Put((*CALL, "id"), "c2"),
        Drop((*RESPONSES, 0, "functionResponse", "id")),
    ),
    case("a call without a response", Rule.CALL_UNANSWERED, Put(("contents", 2, "parts"), [{"text": "Never mind."}])),
    case("an open call at the end", Rule.CALL_UNANSWERED, Drop(("contents", 6))),
    case("a call after the model's words", Rule.CALL_PLACE, Move(("contents", 4), ("contents", 3))),
    case("arguments as text", Rule.CALL_ARGUMENTS, Put((*CALL, "args"), "{}")),
    case("a host that wants few calls", Rule.CALL_COUNT, calls={"most": 1}),
    case("a response without a call", Rule.RESULT_ORPHAN, Put(("contents", 1, "parts"), [{"text": "Well."}])),
    case(
        "a response first of all",
        Rule.RESULT_ORPHAN,
        Add(("contents", 0, "parts", 0), ({"functionResponse": {"name": "x", "response": {}}},)),
    ),
    case("a response to another call", Rule.RESULT_ORPHAN, Put((*RESPONSES, 0, "functionResponse", "id"), "c9")),
    case("two responses to one call", Rule.RESULT_DUPLICATE, Put((*RESPONSES, 1, "functionResponse", "id"), "c1")),
    case("fewer responses than calls", Rule.RESULT_COUNT, Drop((*RESPONSES, 1))),
    case(
        "more responses than calls",
        Rule.RESULT_COUNT,
        Add(("contents", 6, "parts", 0), ({"functionResponse": {"name": "read_file", "response": {}}},)),
    ),
    case(
        "a response of another function",
        Rule.RESULT_NAME,
        Put(("contents", 6, "parts", 0, "functionResponse", "name"), "screenshot"),
    ),
    # Signatures
    case(
        "a call without its signature", Rule.THINKING_SIGNATURE, Drop(("contents", 5, "parts", 0, "thoughtSignature"))
    ),
    case(
        "a signature that is no base64",
        Rule.THINKING_SIGNATURE,
        Put(("contents", 1, "parts", 1, "thoughtSignature"), "…"),
    ),
    # Media
    case("a picture in GIF", Rule.MEDIA_KIND, Put(IMAGE, {"mimeType": "image/gif", "data": base64_of(gif())})),
    case("a type as old clients write it", Rule.MEDIA_KIND, Put((*IMAGE, "mimeType"), "image/jpg")),
    case("no base64", Rule.MEDIA_DATA, Put((*IMAGE, "data"), "***")),
    case("GIF named PNG", Rule.MEDIA_MISMATCH, Put((*IMAGE, "data"), base64_of(gif()))),
    case("an image too large", Rule.MEDIA_BYTES, media={"image_bytes": 50}),
    case(
        "a host that wants small pictures",
        Rule.MEDIA_SIDE,
        Put((*IMAGE, "data"), base64_of(png(9000))),
        media={"side": 8000},
    ),
    case("too many images", Rule.MEDIA_COUNT, media={"count": 2}),
    case(
        "an address nobody fetches",
        Rule.MEDIA_URL,
        Put(("contents", 0, "parts", 4, "fileData", "fileUri"), "http://example.org/a.png"),
    ),
    # Tools
    case("a name that begins with a digit", Rule.TOOL_NAME, Put((*DECLARATIONS, 1, "name"), "2d")),
    case(
        "a space in the name of a call",
        Rule.TOOL_NAME,
        Put((*CALL, "name"), "read file"),
        Put((*RESPONSES, 0, "functionResponse", "name"), "read file"),
    ),
    case("two functions of one name", Rule.TOOL_DUPLICATE, Put((*DECLARATIONS, 1, "name"), "read_file")),
    case("a host that wants few functions", Rule.TOOL_COUNT, tools={"most": 1}),
    case("a keyword OpenAPI does not have", Rule.TOOL_SCHEMA, Put((*SCHEMA, "$schema"), "x")),
    case(
        "numbers in an enumeration",
        Rule.TOOL_SCHEMA,
        Put((*SCHEMA, "properties", "mode"), {"type": "string", "enum": [1]}),
    ),
    case(
        "an enumeration of numbers",
        Rule.TOOL_SCHEMA,
        Put((*SCHEMA, "properties", "mode"), {"type": "integer", "enum": ["1"]}),
    ),
    case("a list that does not say of what", Rule.TOOL_SCHEMA, Drop((*SCHEMA, "properties", "lines", "items"))),
    case("several types at once", Rule.TOOL_SCHEMA, Put((*SCHEMA, "properties", "path", "type"), ["string", "null"])),
    case("a required property that is none", Rule.TOOL_SCHEMA, Put((*SCHEMA, "required"), ["gone"])),
    case(
        "a choice of no function",
        Rule.TOOL_CHOICE,
        Put(("toolConfig", "functionCallingConfig", "allowedFunctionNames"), ["gone"]),
    ),
    # Answers, and tools of the provider's own
    case("an answer that is a list", Rule.ANSWER_SCHEMA, Put((*ANSWER, "type"), "array")),
    case("required as a text", Rule.ANSWER_SCHEMA, Put((*ANSWER, "required"), "bird")),
    case("JSON beside functions, for a model of old", Rule.PARAMETER_CONFLICT, answers={"beside_tools": False}),
    case("search beside functions, unsaid", Rule.PARAMETER_CONFLICT, Add(("tools", 1), ({"googleSearch": {}},))),
    case(
        "search beside functions, for a model of old",
        Rule.PARAMETER_CONFLICT,
        Add(("tools", 1), ({"googleSearch": {}},)),
        Put(("toolConfig", "includeServerSideToolInvocations"), value=True),
        tools={"mixed": False},
    ),
)
