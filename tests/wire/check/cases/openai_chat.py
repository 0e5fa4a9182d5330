"""What OpenAI's Chat Completions API refuses: one case for each rejection that its validator names."""

from palaver.wire.violations import Rule
from tests.wire.check.pictures import data_url, gif, png
from tests.wire.check.samples import CHAT
from tests.wire.check.spoiling import Add, Case, Drop, Move, Put, maker

case = maker("openai-chat")

IMAGE = ("messages", 2, "content", 1, "image_url", "url")
CALLS = ("messages", 3, "tool_calls")
STRICT = ("tools", 0, "function", "parameters")
LOOSE = ("tools", 1, "function", "parameters")

FORMAT = ("response_format", "json_schema")
ANSWER = (*FORMAT, "schema")

CASES: tuple[Case, ...] = (
    # The body
    case("a set is no JSON", Rule.NOT_JSON, Put(("prediction",), {"content": {1}})),
    case("half a character", Rule.LONE_SURROGATE, Put(("messages", 7, "content"), "\ud83d")),
    case("NUL", Rule.NUL, Put(("messages", 4, "content"), "\x00")),
    case("a body too large", Rule.REQUEST_BYTES, **{"": {"request_bytes": 2000}}),
    # Fields
    case("no messages", Rule.FIELD_MISSING, Drop(("messages",))),
    case("a result that names no call", Rule.FIELD_MISSING, Add(("messages", 7), ({"role": "tool", "content": "x"},))),
    case("a field of another provider", Rule.FIELD_UNKNOWN, Put(("system",), "You are careful.")),
    case("reasoning in a message", Rule.FIELD_UNKNOWN, Put(("messages", 6, "reasoning_content"), "Hm.")),
    case("a user's content null", Rule.FIELD_TYPE, Put(("messages", 7, "content"), None)),
    case("a temperature too high", Rule.FIELD_VALUE, Put(("temperature",), 3)),
    case("an unknown detail", Rule.FIELD_VALUE, Put(("messages", 2, "content", 1, "image_url", "detail"), "tiny")),
    case("messages empty", Rule.LIST_LENGTH, Put(("messages",), []), Drop(("response_format",))),
    case("calls empty", Rule.LIST_LENGTH, Put(("messages", 6, "tool_calls"), [])),
    case("no parts", Rule.LIST_LENGTH, Put(("messages", 7, "content"), [])),
    case("five stop sequences", Rule.LIST_LENGTH, Put(("stop",), ["a", "b", "c", "d", "e"])),
    case("an unknown kind of part", Rule.BLOCK_KIND, Add(("messages", 2, "content", 0), ({"type": "video"},))),
    case(
        "an image in a result", Rule.BLOCK_PLACE, Put(("messages", 4, "content"), [CHAT["messages"][2]["content"][1]])
    ),
    case(
        "an image in the assistant's mouth",
        Rule.BLOCK_PLACE,
        Put(("messages", 6, "content"), [CHAT["messages"][2]["content"][1]]),
    ),
    case("both limits of tokens", Rule.PARAMETER_CONFLICT, Put(("max_tokens",), 100)),
    case("options of a stream without one", Rule.PARAMETER_CONFLICT, Put(("stream_options",), {"include_usage": True})),
    case("likely tokens without log probabilities", Rule.PARAMETER_CONFLICT, Put(("top_logprobs",), 3)),
    case(
        "any JSON, unsaid",
        Rule.JSON_WORD,
        Put(("response_format",), {"type": "json_object"}),
        Put(("messages", 2, "content", 0, "text"), "What does the logo show?"),
    ),
    # Turns
    case("a role of another provider", Rule.ROLE_UNKNOWN, Put(("messages", 7, "role"), "human")),
    case(
        "a host that wants the user first",
        Rule.ROLE_FIRST,
        Add(("messages", 2), ({"role": "assistant", "content": "Hi."},)),
        turns={"first": "user"},
    ),
    case(
        "a host that wants turns taken",
        Rule.ROLE_ALTERNATION,
        Add(("messages", 7), ({"role": "user", "content": "Hi."},)),
        turns={"alternate": True},
    ),
    case("an assistant without words or calls", Rule.MESSAGE_EMPTY, Put(("messages", 6, "content"), None)),
    case(
        "a host that wants text",
        Rule.TEXT_EMPTY,
        Put(("messages", 7, "content"), ""),
        Put(("messages", 5, "content"), "x"),
        turns={"text": "filled"},
    ),
    case("a text too long", Rule.TEXT_LENGTH, turns={"text_characters": 30}),
    case("a name with a space", Rule.PARTICIPANT_NAME, Put(("messages", 2, "name"), "Ada Lovelace")),
    # Calls
    case(
        "an id of 41 characters",
        Rule.CALL_ID,
        Put((*CALLS, 0, "id"), "c" * 41),
        Put(("messages", 5, "tool_call_id"), "c" * 41),
    ),
    case("two calls of one id", Rule.CALL_DUPLICATE, Put((*CALLS, 1, "id"), "call_1"), Drop(("messages", 4))),
    case("a call without a result", Rule.CALL_UNANSWERED, Drop(("messages", 4))),
    case("an open call at the end", Rule.CALL_UNANSWERED, Drop(("messages", 9))),
    case("arguments as an object", Rule.CALL_ARGUMENTS, Put((*CALLS, 0, "function", "arguments"), {"path": "a"})),
    case("more than 128 calls", Rule.CALL_COUNT, calls={"most": 1}),
    case(
        "a result without a call",
        Rule.RESULT_ORPHAN,
        Add(("messages", 3), ({"role": "tool", "tool_call_id": "call_9", "content": "x"},)),
    ),
    case(
        "two results of one call",
        Rule.RESULT_DUPLICATE,
        Add(("messages", 4), ({"role": "tool", "tool_call_id": "call_1", "content": "x"},)),
    ),
    case("words between a call and its result", Rule.RESULT_PLACE, Move(("messages", 6), ("messages", 5))),
    # Media
    case("a picture in SVG", Rule.MEDIA_KIND, Put(IMAGE, data_url(b"<svg/>", "image/svg+xml"))),
    case("sound in FLAC", Rule.MEDIA_KIND, Put(("messages", 2, "content", 3, "input_audio", "format"), "flac")),
    case("a data URL without base64", Rule.MEDIA_DATA, Put(IMAGE, "data:image/png,abc")),
    case("a data URL of nothing", Rule.MEDIA_DATA, Put(IMAGE, "data:image/png;base64,")),
    case("base64 in the other alphabet, cut short", Rule.MEDIA_DATA, Put(IMAGE, "data:image/png;base64,_-_")),
    case("GIF named PNG", Rule.MEDIA_MISMATCH, Put(IMAGE, data_url(gif()))),
    case("an image too large", Rule.MEDIA_BYTES, media={"image_bytes": 50}),
    case("a host that wants small pictures", Rule.MEDIA_SIDE, Put(IMAGE, data_url(png(9000))), media={"side": 8000}),
    case(
        "more than 500 images",
        Rule.MEDIA_COUNT,
        Add(("messages", 2, "content", 1), (CHAT["messages"][2]["content"][2],) * 500),
    ),
    case("a path for an address", Rule.MEDIA_URL, Put(IMAGE, "file:///etc/passwd")),
    case("base64 for an address", Rule.MEDIA_URL, Put(IMAGE, "iVBORw0KGgo=")),
    # Tools
    case("a name of 65 characters", Rule.TOOL_NAME, Put(("tools", 1, "function", "name"), "n" * 65)),
    case("a dot in the name of a call", Rule.TOOL_NAME, Put((*CALLS, 0, "function", "name"), "fs.read")),
    case("two tools of one name", Rule.TOOL_DUPLICATE, Put(("tools", 1, "function", "name"), "read_file")),
    case(
        "more than 128 tools",
        Rule.TOOL_COUNT,
        Add(("tools", 2), tuple({"type": "function", "function": {"name": f"t{n}"}} for n in range(127))),
    ),
    case("a list that does not say of what", Rule.TOOL_SCHEMA, Drop((*LOOSE, "properties", "lines", "items"))),
    case("enum at the top of a schema", Rule.TOOL_SCHEMA, Put((*LOOSE, "enum"), [1])),
    case("a strict tool that is open", Rule.TOOL_SCHEMA, Drop((*STRICT, "additionalProperties"))),
    case("a strict tool with a property at will", Rule.TOOL_SCHEMA, Put((*STRICT, "required"), [])),
    case("a choice of no tool", Rule.TOOL_CHOICE, Put(("tool_choice", "function", "name"), "gone")),
    case(
        "a choice without tools",
        Rule.TOOL_CHOICE,
        Drop(("tools",)),
        Drop(("parallel_tool_calls",)),
        Put(("tool_choice",), "auto"),
    ),
    case("calls in parallel without tools", Rule.TOOL_CHOICE, Drop(("tools",)), Drop(("tool_choice",))),
    case(
        "a choice among tools that are not there",
        Rule.TOOL_CHOICE,
        Put(
            ("tool_choice",),
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "gone"}}]},
            },
        ),
    ),
    # Answers
    case("an answer whose name has a space", Rule.ANSWER_NAME, Put((*FORMAT, "name"), "my answer")),
    case("an answer with a name of 65 characters", Rule.ANSWER_NAME, Put((*FORMAT, "name"), "n" * 65)),
    case(
        "an answer that is a list",
        Rule.ANSWER_SCHEMA,
        Put((*ANSWER, "type"), "array"),
        Put((*FORMAT, "strict"), value=False),
    ),
    case(
        "an answer of a type JSON does not have",
        Rule.ANSWER_SCHEMA,
        Put((*ANSWER, "properties", "bird", "type"), "str"),
    ),
    case("a strict answer that is open", Rule.ANSWER_SCHEMA, Drop((*ANSWER, "additionalProperties"))),
    case("a strict answer with a member at will", Rule.ANSWER_SCHEMA, Put((*ANSWER, "required"), ["bird"])),
    case(
        "a strict answer with a default", Rule.ANSWER_SCHEMA, Put((*ANSWER, "properties", "bird", "default"), "heron")
    ),
    case(
        "a strict answer of exactly one form",
        Rule.ANSWER_SCHEMA,
        Put((*ANSWER, "properties", "bird"), {"oneOf": [{"type": "string"}]}),
    ),
    case("a strict answer of some length", Rule.ANSWER_SCHEMA, Put((*ANSWER, "properties", "bird", "maxLength"), 9)),
)
