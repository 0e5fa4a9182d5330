"""What Anthropic's Messages API refuses: one case for each rejection that its validator names."""

from palaver.wire.violations import Rule
from tests.wire.check.pictures import PNG, base64_of, data_url, png
from tests.wire.check.samples import ANSWER_SCHEMA, ANTHROPIC, SIGNATURE
from tests.wire.check.spoiling import Add, Case, Drop, Move, Put, maker

case = maker("anthropic")
prefill = maker("anthropic, prefill")
budget = maker("anthropic, budget")
inside = maker("anthropic, system inside")

IMAGE = ("messages", 0, "content", 1, "source")
CALL = ("messages", 1, "content", 3)
RESULT = ("messages", 2, "content", 0)
SCHEMA = ("tools", 0, "input_schema")
TEXT = {"type": "text", "text": "Well."}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE}
MARK = {"type": "ephemeral"}


def call(identity: str) -> dict[str, object]:
    """Write a call."""
    return {"type": "tool_use", "id": identity, "name": "screenshot", "input": {}}


def result(identity: str) -> dict[str, object]:
    """Write a result."""
    return {"type": "tool_result", "tool_use_id": identity}


ANSWER = ("output_config", "format", "schema")

CASES: tuple[Case, ...] = (
    # The body
    case("bytes are no JSON", Rule.NOT_JSON, Put((*CALL, "input", "path"), b"logo")),
    case("JSON has no infinity", Rule.NOT_JSON, Put((*CALL, "input", "size"), float("inf"))),
    case("JSON keys are strings", Rule.NOT_JSON, Put((*CALL, "input", 7), "seven")),
    case("half a character in arguments", Rule.LONE_SURROGATE, Put((*CALL, "input", "path"), "현\ud99c")),
    case("half a character in a key", Rule.LONE_SURROGATE, Put((*CALL, "input", "\udc00"), "x")),
    case("NUL in a tool's output", Rule.NUL, Put((*RESULT, "content"), "ELF\x00")),
    case("a body too large", Rule.REQUEST_BYTES, **{"": {"request_bytes": 2000}}),
    # Fields
    case("no max_tokens", Rule.FIELD_MISSING, Drop(("max_tokens",))),
    case("no model", Rule.FIELD_MISSING, Drop(("model",))),
    case("metadata of ours", Rule.FIELD_UNKNOWN, Put(("messages", 0, "timestamp"), 1)),
    case("a field of another provider", Rule.FIELD_UNKNOWN, Put(("max_completion_tokens",), 1)),
    case("tokens as a string", Rule.FIELD_TYPE, Put(("max_tokens",), "4096")),
    case("content null", Rule.FIELD_TYPE, Put(("messages", 5, "content"), None)),
    case("a model that is a number", Rule.FIELD_TYPE, Put(("model",), 7)),
    case("an object that is a string", Rule.FIELD_TYPE, Put(("metadata",), "u-1")),
    case("a block that is a string", Rule.FIELD_TYPE, Put(("messages", 6, "content", 2), "And these?")),
    case("a block without a kind", Rule.FIELD_MISSING, Drop(("messages", 6, "content", 2, "type"))),
    case("tokens below zero", Rule.FIELD_VALUE, Put(("max_tokens",), -1)),
    case("an unknown service tier", Rule.FIELD_VALUE, Put(("service_tier",), "gold")),
    case("a cache mark of another kind", Rule.FIELD_VALUE, Put(("system", 1, "cache_control", "type"), "lasting")),
    case("no messages", Rule.LIST_LENGTH, Put(("messages",), [])),
    case("an unknown kind of block", Rule.BLOCK_KIND, Add(("messages", 0, "content", 0), ({"type": "video"},))),
    case("an unknown tool of the provider", Rule.BLOCK_KIND, Put(("tools", 2, "type"), "web_search_1999")),
    case("thinking in the user's mouth", Rule.BLOCK_PLACE, Add(("messages", 0, "content", 0), (THINKING,))),
    case(
        "an image in the assistant's mouth",
        Rule.BLOCK_PLACE,
        Add(("messages", 1, "content", 3), (ANTHROPIC["messages"][0]["content"][1],)),
    ),
    case(
        "an image in the result of a failed call",
        Rule.BLOCK_PLACE,
        Put(("messages", 2, "content", 1, "is_error"), value=True),
    ),
    case(
        "a forced tool while thinking",
        Rule.PARAMETER_CONFLICT,
        Put(("tool_choice",), {"type": "any"}),
    ),
    budget("a temperature while thinking", Rule.PARAMETER_CONFLICT, Put(("temperature",), 0.5)),
    budget("top_k while thinking", Rule.PARAMETER_CONFLICT, Put(("top_k",), 5)),
    budget("a low top_p while thinking", Rule.PARAMETER_CONFLICT, Put(("top_p",), 0.5)),
    case("a temperature", Rule.PARAMETER_REFUSED, Put(("temperature",), 0.5)),
    case(
        "thinking with a budget",
        Rule.PARAMETER_REFUSED,
        Put(("thinking",), {"type": "enabled", "budget_tokens": 2048}),
        Drop(("messages", 6)),
        Drop(("messages", 5)),
    ),
    # Turns
    case("a role of another provider", Rule.ROLE_UNKNOWN, Put(("messages", 5, "role"), "model")),
    case("the assistant first", Rule.ROLE_FIRST, Add(("messages", 0), ({"role": "assistant", "content": "Hello."},))),
    case("one side twice", Rule.ROLE_ALTERNATION, Add(("messages", 0), ({"role": "user", "content": "Hello."},))),
    case("a prefill", Rule.ROLE_LAST, Add(("messages", 7), ({"role": "assistant", "content": "They show"},))),
    case(
        "instructions among the turns",
        Rule.SYSTEM_PLACE,
        Add(("messages", 1), ({"role": "system", "content": "Be brief."},)),
    ),
    inside("instructions first", Rule.SYSTEM_PLACE, Move(("messages", 1), ("messages", 0))),
    inside("instructions after the assistant", Rule.SYSTEM_PLACE, Move(("messages", 1), ("messages", 2))),
    inside(
        "instructions before the user",
        Rule.SYSTEM_PLACE,
        Drop(("messages", 2)),
        Put(("messages", 2), {"role": "user", "content": "And?"}),
        turns={"alternate": False},
    ),
    # Content
    case("a message without content", Rule.MESSAGE_EMPTY, Put(("messages", 5, "content"), [])),
    case("a failed call that says nothing", Rule.MESSAGE_EMPTY, Put(("messages", 4, "content", 0, "content"), "")),
    case("a failed call without content", Rule.MESSAGE_EMPTY, Drop(("messages", 4, "content", 0, "content"))),
    case("an empty text beside a call", Rule.TEXT_EMPTY, Put(("messages", 1, "content", 2, "text"), "")),
    case("white space for a text", Rule.TEXT_EMPTY, Put(("messages", 5, "content"), "\n\n")),
    case("an empty text in a result", Rule.TEXT_EMPTY, Put(("messages", 2, "content", 1, "content", 0, "text"), " ")),
    case("an empty system text", Rule.TEXT_EMPTY, Put(("system", 0, "text"), "")),
    case("an empty stop sequence", Rule.TEXT_EMPTY, Put(("stop_sequences",), ["\n"])),
    case("a text too long", Rule.TEXT_LENGTH, turns={"text_characters": 20}),
    prefill("white space after a prefill", Rule.TEXT_TRAILING, Put(("messages", 1, "content"), "The bird is ")),
    # Calls
    case(
        "an id of another provider",
        Rule.CALL_ID,
        Put((*CALL, "id"), "call_1|fc_1"),
        Put((*RESULT, "tool_use_id"), "call_1|fc_1"),
    ),
    case("an id of white space", Rule.CALL_ID, Put((*CALL, "id"), "shell:0"), Put((*RESULT, "tool_use_id"), "shell:0")),
    case("an empty id", Rule.CALL_ID, Put((*CALL, "id"), ""), Put((*RESULT, "tool_use_id"), "")),
    case(
        "an id that a later turn repeats",
        Rule.CALL_DUPLICATE,
        Put(("messages", 3, "content", 0, "id"), "toolu_1"),
        Put(("messages", 4, "content", 0, "tool_use_id"), "toolu_1"),
    ),
    case("a call without a result", Rule.CALL_UNANSWERED, Drop(RESULT)),
    case(
        "an open call at the end",
        Rule.CALL_UNANSWERED,
        Put(("messages", 6, "content"), "Never mind."),
        Put(("messages", 5, "content"), [call("toolu_4")]),
    ),
    case("arguments as text", Rule.CALL_ARGUMENTS, Put((*CALL, "input"), '{"path": "logo.svg"}')),
    case("arguments as a list", Rule.CALL_ARGUMENTS, Put((*CALL, "input"), ["logo.svg"])),
    case("too many calls in a turn", Rule.CALL_COUNT, calls={"most": 1}),
    case("a result without a call", Rule.RESULT_ORPHAN, Add(RESULT, (result("toolu_9"),))),
    case("a result first of all", Rule.RESULT_ORPHAN, Add(("messages", 0, "content", 0), (result("toolu_9"),))),
    case("two results of one call", Rule.RESULT_DUPLICATE, Add(RESULT, (result("toolu_1"),))),
    case("words before the results", Rule.RESULT_PLACE, Add(RESULT, (TEXT,))),
    case(
        "words between a call and its result",
        Rule.RESULT_PLACE,
        Add(("messages", 4), ({"role": "user", "content": "Wait."}, {"role": "assistant", "content": "I do."})),
    ),
    # Thinking
    case("thinking without its signature", Rule.THINKING_SIGNATURE, Drop(("messages", 1, "content", 0, "signature"))),
    case(
        "thinking with an empty signature", Rule.THINKING_SIGNATURE, Put(("messages", 1, "content", 0, "signature"), "")
    ),
    case("redacted thinking without its data", Rule.THINKING_SIGNATURE, Put(("messages", 1, "content", 1, "data"), "")),
    case(
        "thinking after a call", Rule.THINKING_ORDER, Move(("messages", 1, "content", 0), ("messages", 1, "content", 3))
    ),
    budget("a turn that does not begin with thinking", Rule.THINKING_FIRST, Drop(("messages", 1, "content", 0))),
    prefill(
        "a prefill that ends in thinking",
        Rule.THINKING_LAST,
        Put(("messages", 1, "content"), [THINKING]),
        Put(("thinking",), {"type": "adaptive"}),
        Drop(("temperature",)),
        Drop(("top_k",)),
    ),
    prefill(
        "thinking in a prefill while it is off", Rule.THINKING_OFF, Put(("messages", 1, "content"), [THINKING, TEXT])
    ),
    budget("a budget too small", Rule.THINKING_BUDGET, Put(("thinking", "budget_tokens"), 1000)),
    budget("a budget of all tokens", Rule.THINKING_BUDGET, Put(("thinking", "budget_tokens"), 4096)),
    # Media
    case("a picture in BMP", Rule.MEDIA_KIND, Put((*IMAGE, "media_type"), "image/bmp")),
    case(
        "a document in Word",
        Rule.MEDIA_KIND,
        Put(("messages", 6, "content", 1, "source", "media_type"), "application/msword"),
    ),
    case("a data URL for data", Rule.MEDIA_DATA, Put((*IMAGE, "data"), data_url(png()))),
    case("no bytes", Rule.MEDIA_DATA, Put((*IMAGE, "data"), "")),
    case("base64 without its end", Rule.MEDIA_DATA, Put((*IMAGE, "data"), PNG[:-1])),
    case("base64 with line breaks", Rule.MEDIA_DATA, Put((*IMAGE, "data"), f"{PNG[:4]}\n{PNG[4:]}")),
    case("JPEG named PNG", Rule.MEDIA_MISMATCH, Put((*IMAGE, "media_type"), "image/jpeg")),
    case("text named PNG", Rule.MEDIA_MISMATCH, Put((*IMAGE, "data"), base64_of(b"no picture"))),
    case(
        "an image of more than 5 MiB in base64",
        Rule.MEDIA_BYTES,
        Put((*IMAGE, "data"), base64_of(png() + bytes(3_932_160))),
    ),
    case("an image of more than 8000 pixels", Rule.MEDIA_SIDE, Put((*IMAGE, "data"), base64_of(png(8001, 2)))),
    case(
        "more than 2000 pixels among more than 20 images",
        Rule.MEDIA_SIDE,
        Put((*IMAGE, "data"), base64_of(png(2, 2001))),
        Add(("messages", 0, "content", 2), (ANTHROPIC["messages"][0]["content"][1],) * 20),
    ),
    case(
        "more than 100 images",
        Rule.MEDIA_COUNT,
        Add(("messages", 0, "content", 2), (ANTHROPIC["messages"][0]["content"][1],) * 100),
    ),
    case(
        "an address nobody fetches",
        Rule.MEDIA_URL,
        Put(("messages", 6, "content", 0, "source", "url"), "http://example.org/a.png"),
    ),
    case(
        "a data URL for an address",
        Rule.MEDIA_URL,
        Put(("messages", 6, "content", 0, "source", "url"), data_url(png())),
    ),
    # Tools
    case("a dot in a tool's name", Rule.TOOL_NAME, Put(("tools", 1, "name"), "caldav.list")),
    case("a dot in the name of a call", Rule.TOOL_NAME, Put((*CALL, "name"), "caldav.list")),
    case("two tools of one name", Rule.TOOL_DUPLICATE, Put(("tools", 1, "name"), "read_file")),
    case("too many tools", Rule.TOOL_COUNT, tools={"most": 2}),
    case("a schema without a type", Rule.TOOL_SCHEMA, Drop((*SCHEMA, "type"))),
    case("alternatives at the top of a schema", Rule.TOOL_SCHEMA, Put((*SCHEMA, "anyOf"), [{"required": ["path"]}])),
    case("a type JSON does not have", Rule.TOOL_SCHEMA, Put((*SCHEMA, "properties", "path", "type"), "str")),
    case("required as a truth value", Rule.TOOL_SCHEMA, Put((*SCHEMA, "required"), value=True)),
    case("a property that is no schema", Rule.TOOL_SCHEMA, Put((*SCHEMA, "properties", "path"), "string")),
    case("properties as a list", Rule.TOOL_SCHEMA, Put((*SCHEMA, "properties"), ["path"])),
    case("no alternatives", Rule.TOOL_SCHEMA, Put((*SCHEMA, "properties", "path", "oneOf"), [])),
    case("a number that is required", Rule.TOOL_SCHEMA, Put((*SCHEMA, "required"), [1])),
    case(
        "a choice of no tool",
        Rule.TOOL_CHOICE,
        Put(("tool_choice",), {"type": "tool", "name": "gone"}),
        Drop(("thinking",)),
    ),
    prefill("a choice without tools", Rule.TOOL_CHOICE, Put(("tool_choice",), {"type": "auto"})),
    case("calls in the history without tools", Rule.TOOLS_MISSING, Drop(("tools",)), Drop(("tool_choice",))),
    # Cache marks
    case(
        "five cache marks",
        Rule.CACHE_COUNT,
        Put(("cache_control",), MARK),
        Put(("messages", 6, "content", 0, "cache_control"), MARK),
    ),
    case("a mark on thinking", Rule.CACHE_PLACE, Put(("messages", 1, "content", 0, "cache_control"), MARK)),
    case("an hour after five minutes", Rule.CACHE_ORDER, Put(("tools", 0, "cache_control"), MARK)),
    # Answers
    case("an answer that is open", Rule.ANSWER_SCHEMA, Drop((*ANSWER, "additionalProperties"))),
    case(
        "an answer with a bound",
        Rule.ANSWER_SCHEMA,
        Put((*ANSWER, "properties", "bird"), {"type": "integer", "minimum": 1}),
    ),
    case("an answer with two of a list", Rule.ANSWER_SCHEMA, Put((*ANSWER, "properties", "places", "minItems"), 2)),
    case("an answer that is a text", Rule.ANSWER_SCHEMA, Put((*ANSWER, "type"), "string")),
    case("a schema for a model of old", Rule.PARAMETER_REFUSED, answers={"native": False}),
    case(
        "a schema beside citations",
        Rule.PARAMETER_CONFLICT,
        Put(("messages", 6, "content", 1, "citations"), {"enabled": True}),
    ),
    prefill(
        "a schema for words that have begun",
        Rule.PARAMETER_CONFLICT,
        Put(("output_config",), {"format": {"type": "json_schema", "schema": ANSWER_SCHEMA}}),
    ),
)
