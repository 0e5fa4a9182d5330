"""What each provider refuses: a case for every rule of its validator, as edits of a rich request; and what it also accepts.

An edit names a place and its new value; `DROP` removes it, and a place that ends in `+` gets an element.
"""

from copy import deepcopy
from typing import Any, Final, NamedTuple

from palaver.log import ToolSpec
from palaver.messages import ImageContent, Media, TextContent, ThinkingContent, ToolResultContent, thaw
from palaver.prompts import Format
from palaver.wire import Breach
from tests.wire.histories import CLAUDE, CODEX
from tests.wire.histories import GEMINI as GOOGLE
from tests.wire.pictures import HEIC, PDF, data_url, gif, png
from tests.wire.scenes import BASH, Scene, call

DROP: Final = object()
LARGE, WIDE = data_url(png() + b"\0" * 20_000_000), data_url(png(9000, 2))
TEXT, SIGNED = {"type": "text", "text": "Hm."}, {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
OPEN_BIRD = {"type": "object", "properties": {"name": {"type": "string"}}}
TOO_MANY = [{"type": "object", "properties": {}}] * 2


SHOT = ToolSpec(name="shot", parameters={"type": "object", "properties": {}})
BIRD = Format({"title": "Bird", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
ITEM = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
THOUGHTS = {
    "anthropic": (ThinkingContent(content="Look.", signature="c2lnbmVk"), CLAUDE),
    "openai-responses": (ThinkingContent(artefact={**ITEM, "id": "rs_1"}), CODEX),
    "gemini": (ThinkingContent(content="Look.", artefact={"thoughtSignature": "AAAA"}), GOOGLE),
    "gemini-interactions": (
        ThinkingContent(content="Look.", artefact={"type": "thought", "signature": "AAAA"}),
        GOOGLE,
    ),
    "openai-chat": (ThinkingContent(content="Look."), CODEX),
}


def rich(name: str, model: str = "", *, prefill: bool = False, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """Compile a conversation with everything that a provider takes; it ends on the assistant's words with `prefill`."""
    image = ImageContent(images=(Media(data=png()), Media(url="https://example.org/a.png")))
    shot = ToolResultContent(id="c2", content=(TextContent("The screen."), ImageContent(images=(Media(data=png()),))))
    failed = ToolResultContent(id="c3", content="no such file", is_error=True)
    thought, by = THOUGHTS[name]
    scene = Scene(system=["Be careful.", "Files are in src."], tools=[BASH, SHOT]).user("What is it?", image)
    scene.model_says(thought, "I look.", call("c1", command="ls"), call("c2", "shot"), results=["a.py", shot], by=by)
    scene.model_says(call("c3", command="cat x"), results=[failed], by=by).model_says("A heron.", by=by)
    scene = scene if prefill else scene.user("Sure?")
    body: dict[str, Any] = thaw(scene.request(name, model=model, **({"format": BIRD} | fields)).body)
    return body


class Case(NamedTuple):
    """A request that its provider refuses by a rule, or accepts where there is none.

    Attributes:
        rule: The rule.
        edits: The edits of the rich request.
        model: The model, where another than the usual one.
        prefill: Whether the request ends on the assistant's words.
        call: Fields of the call.
        columns: What is known of the model better than in the table.
    """

    rule: Breach | None
    edits: dict[str, Any]
    model: str = ""
    prefill: bool = False
    call: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    columns: dict[str, Any] = {}  # noqa: RUF012 - the same


def edited(body: dict[str, Any], edits: dict[str, Any]) -> dict[str, Any]:
    """Return a request with edits."""
    out = deepcopy(body)
    for place, value in edits.items():
        *steps, last = [int(step) if step.isdecimal() else step for step in place.removesuffix("+").split("/")]
        holder: Any = out
        for step in steps:
            holder = holder[step]
        if value is DROP:
            del holder[last]
        elif place.endswith("+"):
            holder[last].append(value)
        else:
            holder[last] = value
    return out


def _block(kind: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"type": kind, **fields}


def _call(call_id: str, name: str = "bash", arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _use(call_id: str) -> dict[str, Any]:
    return _block("tool_use", id=call_id, name="bash", input={})


def _schema(place: str) -> list[Case]:
    """Cases of a tool's parameter schema at a place."""
    faults: list[Any] = [
        {"type": "string"},
        {"type": "object", "anyOf": TOO_MANY},
        {"type": "object", "properties": {"a": {"type": "nonsense"}}},
        {"type": "object", "required": "a", "properties": {}},
    ]
    return [Case(Breach.TOOL_SCHEMA, {place: fault}) for fault in faults]


R = Breach


def _texts(place: str, most: int, longest: int) -> list[Case]:
    """Cases of a text at a place."""
    faults = {R.NOT_JSON: float("nan"), R.LONE_SURROGATE: "\ud83d", R.NUL: "a\0"}
    long = {R.REQUEST_BYTES: "x" * most, R.TEXT_LENGTH: "x" * longest}
    return [Case(rule, {place: fault}) for rule, fault in {**faults, **long}.items()]


CALLS, FN = "messages/2/tool_calls", "messages/2/tool_calls/0/function"
IMAGE = "messages/1/content/1/image_url/url"
CHAT: Final = [
    *_texts("messages/9/content", 50_000_000, 10_500_000),
    Case(R.FIELD_MISSING, {"messages/9/content": DROP}),
    Case(R.FIELD_UNKNOWN, {"messages/9/metadata": {}}),
    Case(R.FIELD_TYPE, {"messages/9/content": None}),
    Case(R.FIELD_TYPE, {f"{FN}/arguments": None}),
    Case(R.FIELD_TYPE, {f"{FN}/arguments": {"command": "ls"}}),
    Case(R.FIELD_VALUE, {"temperature": 3}),
    Case(R.LIST_LENGTH, {CALLS: []}),
    Case(R.PARAMETER_CONFLICT, {"max_tokens": 5, "max_completion_tokens": 5}),
    Case(R.PARAMETER_CONFLICT, {"stream_options": {}}),
    Case(R.JSON_WORD, {"response_format": {"type": "json_object"}}),
    Case(R.ROLE_UNKNOWN, {"messages/9/role": "human"}),
    Case(R.BLOCK_KIND, {"messages/1/content/0/type": "video"}),
    Case(R.BLOCK_PLACE, {"messages/8/content": [{"type": "image_url", "image_url": {"url": "https://x.org/a"}}]}),
    Case(R.MESSAGE_EMPTY, {"messages/8/content": None}),
    Case(R.PARTICIPANT_NAME, {"messages/9/name": "Ann B."}),
    Case(R.CALL_ID, {f"{CALLS}/0/id": "c" * 41, "messages/3/tool_call_id": "c" * 41}),
    Case(R.CALL_DUPLICATE, {f"{CALLS}/1/id": "c1"}),
    Case(R.CALL_UNANSWERED, {"messages/3": {"role": "user", "content": "No."}}),
    Case(R.CALL_ARGUMENTS, {f"{FN}/arguments": '{"page": 1'}),
    Case(R.CALL_ARGUMENTS, {f"{FN}/arguments": ""}),
    Case(R.CALL_ARGUMENTS, {f"{FN}/arguments": '{"a": NaN}'}),
    Case(R.CALL_COUNT, {CALLS: [_call(f"n{number}") for number in range(129)]}),
    Case(R.RESULT_ORPHAN, {"messages/7/tool_call_id": "zz"}),
    Case(R.RESULT_DUPLICATE, {"messages/4/tool_call_id": "c1"}),
    Case(R.RESULT_PLACE, {"messages/9": {"role": "tool", "tool_call_id": "c3", "content": "x"}, "messages/7": DROP}),
    Case(R.MEDIA_KIND, {IMAGE: f"data:image/heic;base64,{HEIC}"}),
    Case(R.MEDIA_DATA, {IMAGE: "data:image/png;base64,!"}),
    Case(R.MEDIA_MISMATCH, {IMAGE: data_url(gif())}),
    Case(R.MEDIA_BYTES, {IMAGE: LARGE}),
    Case(R.MEDIA_COUNT, {"messages/1/content": [{"type": "image_url", "image_url": {"url": "https://x.org/a"}}] * 501}),
    Case(R.MEDIA_URL, {IMAGE: "ftp://example.org/a.png"}),
    Case(R.TOOL_NAME, {f"{FN}/name": "a b"}),
    Case(R.TOOL_DUPLICATE, {"tools/1/function/name": "bash"}),
    Case(R.TOOL_COUNT, {"tools": [{"type": "function", "function": {"name": f"t{n}"}} for n in range(129)]}),
    *_schema("tools/0/function/parameters"),
    Case(R.TOOL_SCHEMA, {"tools/0/function/parameters": {"type": "object", "properties": {"a": {"type": "array"}}}}),
    Case(R.TOOL_CHOICE, {"tool_choice": {"type": "function", "function": {"name": "gone"}}}),
    Case(R.TOOL_CHOICE, {"tools": DROP, "tool_choice": "required"}),
    Case(R.ANSWER_NAME, {"response_format/json_schema/name": "a b"}),
    Case(R.ANSWER_SCHEMA, {"response_format/json_schema/schema": OPEN_BIRD}),
    Case(None, {"messages/0/role": "developer", "messages/1/name": "ann", "stop": "END", "seed": 1, "store": None}),
    Case(None, {"messages/9/content": [{"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PDF}"}}]}),
    Case(None, {f"{CALLS}/0": {"id": "c1", "type": "custom", "custom": {"name": "bash", "input": "ls"}}}),
]

ITEMS, OUT = "input/3", "input/5"
PICTURE = "input/0/content/1/image_url"
RESPONSES: Final = [
    *_texts("input/9/content", 50_000_000, 10_500_000),
    Case(R.FIELD_MISSING, {f"{ITEMS}/arguments": DROP}),
    Case(R.FIELD_UNKNOWN, {f"{ITEMS}/metadata": {}}),
    Case(R.FIELD_TYPE, {f"{ITEMS}/arguments": None}),
    Case(R.FIELD_TYPE, {"input": None}),
    Case(R.FIELD_VALUE, {"max_output_tokens": 1}),
    Case(R.PARAMETER_CONFLICT, {"previous_response_id": "r", "conversation": "c"}),
    Case(R.JSON_WORD, {"text/format": {"type": "json_object"}}),
    Case(R.ROLE_UNKNOWN, {"input/10/role": "human"}),
    Case(R.BLOCK_KIND, {"input/9/type": ""}),
    Case(None, {"input/9/type": "thought"}),
    Case(R.BLOCK_PLACE, {"input/10/content/0": {"type": "output_text", "text": "x"}}),
    Case(R.CALL_ID, {f"{ITEMS}/call_id": "c" * 65, f"{OUT}/call_id": "c" * 65}),
    Case(R.CALL_DUPLICATE, {"input/7/call_id": "c1"}),
    Case(R.CALL_UNANSWERED, {OUT: DROP}),
    Case(R.CALL_ARGUMENTS, {f"{ITEMS}/arguments": '{"page": 1'}),
    Case(R.CALL_ARGUMENTS, {f"{ITEMS}/arguments": ""}),
    Case(R.RESULT_ORPHAN, {f"{OUT}/call_id": "zz"}),
    Case(R.RESULT_DUPLICATE, {"input/6/call_id": "c1"}),
    Case(R.RESULT_PLACE, {"input/0": {"type": "function_call_output", "call_id": "c1", "output": ""}, OUT: DROP}),
    Case(R.RESULT_ORPHAN, {f"{OUT}/type": "custom_tool_call_output"}),
    Case(R.REASONING_FOLLOW, {"input/2": {"type": "message", "role": "user", "content": "x"}}),
    Case(R.ITEM_ID, {f"{ITEMS}/id": "fc 1"}),
    Case(R.ITEM_DUPLICATE, {f"{ITEMS}/id": "fc_1", "input/4/id": "fc_1"}),
    Case(R.ITEM_UNSTORED, {"input/1/encrypted_content": DROP}),
    Case(R.MEDIA_KIND, {PICTURE: f"data:image/heic;base64,{HEIC}"}),
    Case(R.MEDIA_DATA, {PICTURE: "data:nothing"}),
    Case(R.MEDIA_MISMATCH, {PICTURE: data_url(gif())}),
    Case(R.MEDIA_BYTES, {PICTURE: LARGE}),
    Case(R.MEDIA_COUNT, {"input/0/content": [{"type": "input_image", "image_url": "https://x.org/a"}] * 501}),
    Case(R.MEDIA_URL, {PICTURE: "picture.png"}),
    Case(R.TOOL_NAME, {"tools/0/name": "a b"}),
    Case(R.TOOL_DUPLICATE, {"tools/1/name": "bash"}),
    Case(R.TOOL_COUNT, {"tools": [{"type": "function", "name": f"t{n}", "parameters": None} for n in range(129)]}),
    *_schema("tools/0/parameters"),
    Case(R.TOOL_CHOICE, {"tool_choice": {"type": "function", "name": "gone"}}),
    Case(R.ANSWER_NAME, {"text/format/name": ""}),
    Case(R.ANSWER_SCHEMA, {"text/format/schema": {"type": "array"}}),
    Case(None, {"input/10": {"role": "developer", "content": "x"}, "reasoning": {"effort": "high"}}),
    Case(None, {ITEMS: DROP, "previous_response_id": "r", "store": True}),
    Case(None, {"input": "hello", "instructions": None, "tools/1": {"type": "web_search_2099_01_01"}}),
]

SAID, RESULT = "messages/1/content", "messages/2/content"
SOURCE = "messages/0/content/1/source"
BUDGET = {"type": "enabled", "budget_tokens": 2048}
THINK = {"parameters": {"thinking": BUDGET}}
PAPER, LATE = _block("base64", media_type="application/pdf", data=PDF), _block("tool_result", tool_use_id="c3")
OLD, OLD_API = "claude-haiku-4-5", {"version": "2023-06-01"}
ANTHROPIC: Final = [
    *_texts("messages/6/content/0/text", 32_000_000, 32_000_001),
    Case(R.FIELD_MISSING, {f"{SAID}/2/input": DROP}),
    Case(R.FIELD_UNKNOWN, {"messages/0/timestamp": 1}),
    Case(R.FIELD_TYPE, {f"{SAID}/2/input": None}),
    Case(R.FIELD_TYPE, {f"{SAID}/2/input": "ls"}),
    Case(R.FIELD_VALUE, {"max_tokens": -1}),
    Case(R.LIST_LENGTH, {"messages": []}),
    Case(R.PARAMETER_CONFLICT, {"tool_choice": {"type": "any"}}, OLD, call=THINK),
    Case(R.PARAMETER_CONFLICT, {"temperature": 0.5}, OLD, call=THINK, columns=OLD_API),
    Case(R.PARAMETER_CONFLICT, {"thinking": {"type": "disabled"}, "output_config/effort": "max"}, "claude-opus-5"),
    Case(R.PARAMETER_REFUSED, {"tool_choice": {"type": "any"}}, "claude-sonnet-5-5"),
    Case(R.PARAMETER_REFUSED, {"temperature": 1}, "claude-opus-5-5", columns=OLD_API),
    Case(R.PARAMETER_REFUSED, {"temperature": 1}),
    Case(R.PARAMETER_REFUSED, {"thinking": {"type": "disabled"}}, "claude-opus-5-5"),
    Case(R.PARAMETER_REFUSED, {"thinking": {"type": "adaptive"}}, OLD),
    Case(R.PARAMETER_REFUSED, {"output_config/effort": "max"}, columns={"efforts": ["low", "high"]}),
    Case(R.PARAMETER_REFUSED, {"thinking": BUDGET}, "claude-opus-5-5"),
    Case(R.ROLE_UNKNOWN, {"messages/0/role": "human"}),
    Case(R.ROLE_FIRST, {"messages/0": DROP}),
    Case(R.ROLE_ALTERNATION, {"messages/5/role": "user"}),
    Case(R.ROLE_LAST, {"messages/6": DROP}),
    Case(R.SYSTEM_PLACE, {"messages+": {"role": "system", "content": "x"}}),
    Case(R.BLOCK_KIND, {"messages/6/content+": {"type": "video"}}),
    Case(R.BLOCK_PLACE, {"messages/6/content+": SIGNED}),
    Case(R.BLOCK_PLACE, {f"{RESULT}/1/is_error": True}),
    Case(R.MESSAGE_EMPTY, {"messages/5/content": []}),
    Case(R.MESSAGE_EMPTY, {"messages/4/content/0/content": ""}),
    Case(R.TEXT_EMPTY, {"messages/6/content/0/text": " \n"}),
    Case(R.TEXT_TRAILING, {"messages/5/content/0/text": "A heron. "}, OLD, prefill=True),
    Case(R.THINKING_LAST, {"messages/5/content+": SIGNED}, OLD, prefill=True),
    Case(R.THINKING_OFF, {"messages/5/content": [SIGNED, TEXT]}, OLD, prefill=True),
    Case(R.CALL_ID, {f"{SAID}/2/id": "c 1", f"{RESULT}/0/tool_use_id": "c 1"}),
    Case(R.CALL_DUPLICATE, {"messages/3/content/0/id": "c1", "messages/4/content/0/tool_use_id": "c1"}),
    Case(R.CALL_UNANSWERED, {"messages/3/content+": _use("c4")}),
    Case(R.RESULT_ORPHAN, {"messages/6/content+": _block("tool_result", tool_use_id="zz")}),
    Case(R.RESULT_DUPLICATE, {f"{RESULT}/1/tool_use_id": "c1"}),
    Case(R.RESULT_PLACE, {"messages/6/content+": LATE, "messages/4/content": [TEXT]}),
    Case(R.PROVIDER_CALL, {"messages/5/content+": _block("server_tool_use", id="s1", name="web_search", input={})}),
    Case(R.PROVIDER_CALL, {"messages/5/content+": _block("web_search_tool_result", tool_use_id="s1", content=[])}),
    Case(R.THINKING_SIGNATURE, {f"{SAID}/0/signature": ""}),
    Case(R.THINKING_FIRST, {"messages/6": DROP, "messages/5": DROP, f"{SAID}/0": DROP, "thinking": BUDGET}),
    Case(R.THINKING_BUDGET, {"thinking": {"type": "enabled", "budget_tokens": 1000}}),
    Case(R.MEDIA_KIND, {f"{SOURCE}/media_type": "image/heic"}),
    Case(R.MEDIA_DATA, {f"{SOURCE}/data": ""}),
    Case(R.MEDIA_MISMATCH, {f"{SOURCE}/media_type": "image/gif"}),
    Case(R.MEDIA_BYTES, {f"{SOURCE}/data": LARGE.partition(",")[2]}),
    Case(R.MEDIA_SIDE, {f"{SOURCE}/data": WIDE.partition(",")[2]}),
    Case(R.MEDIA_COUNT, {"messages/0/content": [_block("image", source=_block("url", url="https://x.org/a"))] * 101}),
    Case(R.MEDIA_URL, {SOURCE: _block("url", url="http://example.org/a.png")}),
    Case(R.TOOL_NAME, {"tools/0/name": "a b"}),
    Case(R.TOOL_DUPLICATE, {"tools/1/name": "bash"}),
    *_schema("tools/0/input_schema"),
    Case(R.TOOL_CHOICE, {"tool_choice": {"type": "tool", "name": "gone"}}),
    Case(R.TOOLS_MISSING, {"tools": DROP}),
    Case(R.ANSWER_SCHEMA, {"output_config/format/schema": {**OPEN_BIRD, "minProperties": 1}}),
    Case(R.CACHE_COUNT, {f"{SAID}/1/cache_control": {"type": "ephemeral"}}),
    Case(R.CACHE_PLACE, {f"{SAID}/0/cache_control": {"type": "ephemeral"}}, call={"cache": False}),
    Case(R.CACHE_ORDER, {"messages/6/content/0/cache_control": {"type": "ephemeral", "ttl": "1h"}}),
    Case(None, {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}),
    Case(None, {"messages/6/content/0": _block("document", source=PAPER)}),
    Case(None, {"messages/6/content": "Sure?", "system": "Be careful.", "metadata": {"user_id": None}}),
    Case(None, {"tools/1": {"type": "web_search_20990101", "name": "web_search"}, "a_new_field": {}}),
    Case(None, {}, OLD, call=THINK),
    Case(None, {"temperature": 0.5}, OLD, columns=OLD_API),
    *(
        Case(None, {"thinking": {"type": "adaptive"}, "tool_choice": {"type": "any"}}, model)
        for model in ("", "claude-opus-5", "claude-haiku-5-5")
    ),
    Case(None, {"thinking": {"type": "between_tools"}}, "claude-sonnet-5-5"),
]

PARTS, ANSWER = "contents/1/parts", "contents/2/parts"
BLOB, DECLARED = "contents/0/parts/1/inlineData", "tools/0/functionDeclarations"
CALLED = {"functionCall": {"name": "bash"}, "thoughtSignature": "AAAA"}
FILE = {"fileData": {"mimeType": "image/png", "fileUri": "https://x.org/a"}}
JSON_CONFIG = "generationConfig/responseJsonSchema"
GEMINI: Final = [
    *_texts("contents/6/parts/0/text", 100_000_000, 100_000_001),
    Case(R.FIELD_MISSING, {f"{PARTS}/2/functionCall/name": DROP}),
    Case(R.FIELD_UNKNOWN, {"contents/6/name": "ann"}),
    Case(R.FIELD_TYPE, {f"{PARTS}/2/functionCall/args": None}),
    Case(R.FIELD_VALUE, {"generationConfig/temperature": 3}),
    Case(R.LIST_LENGTH, {"contents": []}),
    Case(R.PARAMETER_CONFLICT, {"cachedContent": "c"}),
    Case(R.PARAMETER_CONFLICT, {"generationConfig/responseMimeType": DROP}),
    Case(R.PARAMETER_CONFLICT, {"tools+": {"googleSearch": {}}}, "gemini-2.5-flash"),
    Case(R.ROLE_UNKNOWN, {"contents/6/role": "human"}),
    Case(R.ROLE_FIRST, {"contents/0": DROP}),
    Case(R.ROLE_LAST, {"contents/6": DROP}),
    Case(R.BLOCK_KIND, {"contents/6/parts/0/inlineData": {"mimeType": "image/png", "data": PDF}}),
    Case(R.BLOCK_PLACE, {"contents/6/parts+": {"functionCall": {"name": "bash"}}}),
    Case(R.MESSAGE_EMPTY, {"contents/6/parts": []}),
    Case(R.TEXT_EMPTY, {"contents/6/parts/0/text": ""}),
    Case(R.CALL_ID, {f"{PARTS}/2/functionCall/id": "c" * 129, f"{ANSWER}/0/functionResponse/id": "c" * 129}),
    Case(R.CALL_DUPLICATE, {f"{PARTS}/3/functionCall/id": "c1"}),
    Case(R.CALL_UNANSWERED, {"contents/4/parts": [{"text": "No."}]}),
    Case(R.CALL_PLACE, {"contents/4": {"role": "model", "parts": [CALLED]}}),
    Case(R.RESULT_ORPHAN, {"contents/6/parts": [{"functionResponse": {"name": "bash", "response": {}}}]}),
    Case(R.RESULT_COUNT, {f"{ANSWER}/1": DROP}),
    Case(R.RESULT_DUPLICATE, {f"{ANSWER}/1/functionResponse/id": "c1"}),
    Case(R.RESULT_NAME, {f"{ANSWER}/1/functionResponse/name": "bash"}),
    Case(R.THINKING_SIGNATURE, {"contents/6": DROP, "contents/5": DROP, "contents/3/parts/0/thoughtSignature": DROP}),
    Case(R.THINKING_SIGNATURE, {f"{PARTS}/0/thoughtSignature": "!"}),
    Case(R.MEDIA_KIND, {f"{BLOB}/mimeType": "image/bmp"}),
    Case(R.MEDIA_DATA, {f"{BLOB}/data": "!"}),
    Case(R.MEDIA_MISMATCH, {f"{BLOB}/mimeType": "image/webp"}),
    Case(R.MEDIA_COUNT, {"contents/0/parts": [FILE] * 3601}),
    Case(R.MEDIA_URL, {"contents/0/parts/2/fileData/fileUri": "file:///etc/passwd"}),
    Case(R.TOOL_NAME, {f"{DECLARED}/0/name": "1st"}),
    Case(R.TOOL_DUPLICATE, {f"{DECLARED}/1/name": "bash"}),
    *_schema(f"{DECLARED}/0/parametersJsonSchema"),
    Case(R.TOOL_CHOICE, {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["gone"]}}}),
    Case(R.ANSWER_SCHEMA, {JSON_CONFIG: {"type": "array"}}),
    Case(None, {f"{DECLARED}/1/parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}),
    Case(None, {"contents/6/parts/0": {"text": "", "thoughtSignature": "AAAA"}, "safetySettings": [], "store": False}),
]

ASKED, DRAWN = "input/11/content/0", "input/0/content/1"
THOUGHT = {"type": "thought", "signature": "AAAA"}
STEPS: Final = [
    *_texts(f"{ASKED}/text", 100_000_000, 100_000_001),
    Case(R.FIELD_MISSING, {"input/9/name": DROP}),
    Case(R.FIELD_MISSING, {f"{DRAWN}/data": DROP}),
    Case(R.FIELD_UNKNOWN, {"input/11/role": "user"}),
    Case(R.FIELD_TYPE, {"input/3/arguments": "{}"}),
    Case(R.FIELD_VALUE, {"generation_config": {"temperature": 3}}),
    Case(R.LIST_LENGTH, {"input": []}),
    Case(R.PARAMETER_CONFLICT, {"cached_content": "c"}),
    Case(R.PARAMETER_CONFLICT, {"tools+": {"type": "google_search"}}, "gemini-2.5-flash"),
    Case(R.ROLE_FIRST, {"input/0": DROP}),
    Case(R.ROLE_LAST, {"input/11": DROP}),
    Case(R.BLOCK_KIND, {f"{ASKED}/type": "input_text"}),
    Case(R.TEXT_EMPTY, {f"{ASKED}/text": ""}),
    Case(R.CALL_ID, {"input/8/id": "c" * 129, "input/9/call_id": "c" * 129}),
    Case(R.CALL_DUPLICATE, {"input/8/id": "c1", "input/9/call_id": "c1"}),
    Case(R.CALL_UNANSWERED, {"input/9": DROP}),
    Case(R.RESULT_ORPHAN, {"input/11": {"type": "function_result", "call_id": "zz", "name": "bash", "result": ""}}),
    Case(R.RESULT_DUPLICATE, {"input/6/call_id": "c1"}),
    Case(R.RESULT_PLACE, {"input/10": {"type": "function_result", "call_id": "c4", "name": "bash", "result": ""},
                          "input/11": {"type": "function_call", "id": "c4", "name": "bash", "arguments": {}}}),
    Case(R.RESULT_NAME, {"input/9/name": "shot"}),
    Case(R.THINKING_SIGNATURE, {"input/1/signature": ""}),
    Case(R.THINKING_SIGNATURE, {"input/1": DROP}),
    Case(R.MEDIA_KIND, {f"{DRAWN}/mime_type": "image/bmp"}),
    Case(R.MEDIA_DATA, {f"{DRAWN}/data": "!"}),
    Case(R.MEDIA_MISMATCH, {f"{DRAWN}/mime_type": "image/webp"}),
    Case(R.MEDIA_COUNT, {"input/11/content": [_block("image", uri="https://x.org/a")] * 3601}),
    Case(R.MEDIA_URL, {"input/0/content/2/uri": "file:///etc/passwd"}),
    Case(R.TOOL_NAME, {"tools/0/name": "1st"}),
    Case(R.TOOL_DUPLICATE, {"tools/1/name": "bash"}),
    *_schema("tools/0/parameters"),
    Case(R.TOOL_CHOICE, {"generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["gone"]}}}}),
    Case(R.ANSWER_SCHEMA, {"response_format/schema": {"type": "array"}}),
    Case(None, {"input/1": DROP}, "gemini-2.5-flash"),
    Case(None, {"input/10": {"type": "novelty", "x": [1]}, "input/5/result": {"output": "a.py"}, "a_new_field": {}}),
]  # fmt: skip

CASES: Final = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "gemini-interactions": STEPS,
}
UNTESTED: Final = {  # no figure of the profile is low enough to break the rule with a request of its size
    "openai-chat": {R.ROLE_FIRST, R.ROLE_ALTERNATION, R.TEXT_EMPTY, R.MEDIA_SIDE},
    "openai-responses": {R.TEXT_EMPTY, R.MEDIA_SIDE, R.CALL_COUNT},
    "anthropic": {R.TOOL_COUNT, R.CALL_COUNT},
    "gemini": {R.MEDIA_BYTES, R.MEDIA_SIDE, R.TOOL_COUNT, R.CALL_COUNT, R.ROLE_ALTERNATION},
    "gemini-interactions": {R.MEDIA_BYTES, R.MEDIA_SIDE, R.TOOL_COUNT, R.CALL_COUNT},
}
