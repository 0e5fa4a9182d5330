"""What OpenAI's Responses API refuses: one case for each rejection that its validator names."""

from palaver.wire.violations import Rule
from tests.wire.check.pictures import data_url, gif, png
from tests.wire.check.samples import RESPONSES
from tests.wire.check.spoiling import Add, Case, Drop, Move, Put, maker

case = maker("openai-responses")

IMAGE = ("input", 1, "content", 1)
CALL = ("input", 4)
PARAMETERS = ("tools", 0, "parameters")

FORMAT = ("text", "format")
ANSWER = (*FORMAT, "schema")

CASES: tuple[Case, ...] = (
    # The body
    case("JSON has no NaN", Rule.NOT_JSON, Put(("metadata",), {"score": float("nan")})),
    case("half a character", Rule.LONE_SURROGATE, Put((*CALL, "arguments"), '"\udfff"')),
    case("NUL", Rule.NUL, Put(("input", 10, "output"), "\x00")),
    case("a body too large", Rule.REQUEST_BYTES, **{"": {"request_bytes": 2000}}),
    # Fields
    case(
        "a call without an id of its own",
        Rule.FIELD_MISSING,
        Add(
            ("input", 0),
            (
                {"type": "custom_tool_call", "name": "run", "input": "", "call_id": "x"},
                {"type": "custom_tool_call_output", "call_id": "x"},
            ),
        ),
    ),
    case("reasoning without its id", Rule.FIELD_MISSING, Drop(("input", 2, "id"))),
    case("reasoning without its summary", Rule.FIELD_MISSING, Drop(("input", 2, "summary"))),
    case("an image from nowhere", Rule.FIELD_MISSING, Drop((*IMAGE, "image_url"))),
    case("a field of the older API", Rule.FIELD_UNKNOWN, Put(("messages",), [])),
    case("a result with the fields of the older API", Rule.FIELD_UNKNOWN, Put(("input", 10, "tool_call_id"), "x")),
    case("input as an object", Rule.FIELD_TYPE, Put(("input", 10, "output"), {"ok": True})),
    case("an id that is a number", Rule.FIELD_TYPE, Put(("input", 3, "id"), 1)),
    case("too few tokens", Rule.FIELD_VALUE, Put(("max_output_tokens",), 8)),
    case("an unknown status", Rule.FIELD_VALUE, Put((*CALL, "status"), "done")),
    case("no way to manage the context", Rule.LIST_LENGTH, Put(("context_management",), [])),
    case("an unknown kind of item", Rule.BLOCK_KIND, Put(("input", 12, "type"), "speech")),
    case("an unknown kind of part", Rule.BLOCK_KIND, Put((*IMAGE, "type"), "image_url")),
    case(
        "input in the assistant's mouth",
        Rule.BLOCK_PLACE,
        Put(("input", 3, "content", 0), {"type": "input_text", "text": "x"}),
    ),
    case(
        "output in the user's mouth",
        Rule.BLOCK_PLACE,
        Put(("input", 1, "content", 0), {"type": "output_text", "text": "JSON"}),
    ),
    case("a role that items do not have", Rule.ROLE_UNKNOWN, Put(("input", 12, "role"), "tool")),
    case(
        "two memories",
        Rule.PARAMETER_CONFLICT,
        Put(("previous_response_id",), "resp_1"),
        Put(("conversation",), "conv_1"),
    ),
    case("options of a stream without one", Rule.PARAMETER_CONFLICT, Put(("stream_options",), {})),
    case(
        "any JSON, unsaid",
        Rule.JSON_WORD,
        Put(("text", "format"), {"type": "json_object"}),
        Put(("input", 1, "content", 0, "text"), "What?"),
    ),
    # Items
    case("an id that begins like another kind's", Rule.ITEM_ID, Put((*CALL, "id"), "call_1")),
    case("an id of ours", Rule.ITEM_ID, Put(("input", 3, "id"), "019f629b-43ee-7a82")),
    case("an empty id", Rule.ITEM_ID, Put((*CALL, "id"), "")),
    case("two items of one id", Rule.ITEM_DUPLICATE, Put(("input", 8, "id"), "rs_1")),
    case("reasoning that led to nothing", Rule.REASONING_FOLLOW, Move(("input", 8), ("input", 11))),
    case("reasoning at the end", Rule.REASONING_FOLLOW, Move(("input", 8), ("input", 12))),
    case("reasoning after reasoning", Rule.REASONING_FOLLOW, Move(("input", 8), ("input", 2))),
    case("reasoning that nobody kept", Rule.ITEM_UNSTORED, Drop(("input", 8, "encrypted_content"))),
    case(
        "a reference to what nobody kept",
        Rule.ITEM_UNSTORED,
        Add(("input", 0), ({"type": "item_reference", "id": "msg_9"},)),
    ),
    # Texts
    case(
        "a host that wants text",
        Rule.TEXT_EMPTY,
        Put(("input", 12, "content"), ""),
        Put(("input", 7, "output"), "x"),
        turns={"text": "filled"},
    ),
    case("a text too long", Rule.TEXT_LENGTH, turns={"text_characters": 30}),
    # Calls
    case(
        "an id of 65 characters",
        Rule.CALL_ID,
        Put((*CALL, "call_id"), "c" * 65),
        Put(("input", 6, "call_id"), "c" * 65),
    ),
    case(
        "an id that a later turn repeats",
        Rule.CALL_DUPLICATE,
        Put(("input", 9, "call_id"), "call_1"),
        Drop(("input", 10)),
    ),
    case("a call without an output", Rule.CALL_UNANSWERED, Drop(("input", 6))),
    case(
        "an open call at the end", Rule.CALL_UNANSWERED, Drop(("input", 12)), Drop(("input", 11)), Drop(("input", 10))
    ),
    case("arguments as an object", Rule.CALL_ARGUMENTS, Put((*CALL, "arguments"), {"path": "a"})),
    case("a host that wants few calls", Rule.CALL_COUNT, calls={"most": 2}),
    case("an output without a call", Rule.RESULT_ORPHAN, Drop((*CALL,)), Drop(("input", 3))),
    case("two outputs of one call", Rule.RESULT_DUPLICATE, Add(("input", 8), (RESPONSES["input"][7],))),
    case("an output before its call", Rule.RESULT_PLACE, Move(("input", 6), ("input", 2))),
    # Media
    case("a picture in HEIC", Rule.MEDIA_KIND, Put((*IMAGE, "image_url"), data_url(b"heic", "image/heic"))),
    case("a data URL without base64", Rule.MEDIA_DATA, Put((*IMAGE, "image_url"), "data:image/png,abc")),
    case("GIF named PNG", Rule.MEDIA_MISMATCH, Put((*IMAGE, "image_url"), data_url(gif()))),
    case("an image too large", Rule.MEDIA_BYTES, media={"image_bytes": 50}),
    case(
        "a host that wants small pictures",
        Rule.MEDIA_SIDE,
        Put((*IMAGE, "image_url"), data_url(png(9000))),
        media={"side": 8000},
    ),
    case("too many images", Rule.MEDIA_COUNT, media={"count": 2}),
    case("an address nobody fetches", Rule.MEDIA_URL, Put((*IMAGE, "image_url"), "ftp://example.org/a.png")),
    # Tools
    case("a dot in a tool's name", Rule.TOOL_NAME, Put(("tools", 1, "name"), "sh.run")),
    case("a dot in the name of a call", Rule.TOOL_NAME, Put((*CALL, "name"), "fs.read")),
    case("two tools of one name", Rule.TOOL_DUPLICATE, Put(("tools", 1, "name"), "read_file")),
    case("too many tools", Rule.TOOL_COUNT, tools={"most": 1}),
    case("a strict tool that is open", Rule.TOOL_SCHEMA, Put((*PARAMETERS, "additionalProperties"), value=True)),
    case("a schema that is no object", Rule.TOOL_SCHEMA, Put(PARAMETERS, {"type": "string"})),
    case("a choice of no tool", Rule.TOOL_CHOICE, Put(("tool_choice",), {"type": "function", "name": "gone"})),
    case("a choice among tools that are not there", Rule.TOOL_CHOICE, Put(("tool_choice", "tools", 0, "name"), "gone")),
    case("a tool required, and none there", Rule.TOOL_CHOICE, Put(("tool_choice",), "required"), Drop(("tools",))),
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
