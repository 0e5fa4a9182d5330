"""The Gemini API (POST /v1beta/models/MODEL:generateContent): its fields, and the rules by which it refuses a request.

After ai.google.dev/api/generate-content, the types of the ``google-genai`` package 3.6, in the camel case of JSON, and the API's own answers, quoted in the
threads that the rules name. The API reads the same names in snake case too; palaver writes camel case and reads nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from palaver.wire import rules
from palaver.wire.place import ANY, OPEN, Breach, Items, Kinds, Number, Shape, Spot, Violation, one, show
from palaver.wire.rules import Attachment, AttachmentKind, Round, Subject

_BLOB: Shape = {"mimeType": str, "data": str, "displayName?": str}
_FILE: Shape = {"fileUri": str, "mimeType?": str, "displayName?": str}
_DATA: Final[dict[str, Shape]] = {  # a part has exactly one of these
    "text": str,
    "inlineData": _BLOB,
    "fileData": _FILE,
    "functionCall": {"name": str, "id?": str, "args?": OPEN},
    "functionResponse": {
        "name": str, "response": OPEN, "id?": str, "parts?": [{"inlineData?": _BLOB, "fileData?": _FILE}],
        "willContinue?": bool, "scheduling?": str,
    },
    "executableCode": OPEN,
    "codeExecutionResult": OPEN,
    "toolCall": OPEN,
    "toolResponse": OPEN,
}  # fmt: skip
_OPTIONAL = {f"{name}?": shape for name, shape in _DATA.items()}
_PART: Shape = {
    **_OPTIONAL, "thought?": bool, "thoughtSignature?": str, "mediaProcessing?": ANY,
    **dict.fromkeys((
        "partMetadata?", "videoMetadata?", "mediaResolution?", "speechMetadata?", "documentMetadata?",
        "spreadsheetMetadata?", "audioMetadata?",
    ), OPEN),
}  # fmt: skip
_CONTENT = Kinds(
    # a part that nobody knows yet is one that the model's provider made
    {"user": {"parts": [_PART]}, "model": {"parts": [{**_PART, **OPEN}]}},
    key="role",
    default="user",
    rule=Breach.ROLE_UNKNOWN,
)
_DECLARATION: Shape = {
    "name": str, "description?": str, "parameters?": OPEN, "parametersJsonSchema?": OPEN, "response?": OPEN,
    "responseJsonSchema?": OPEN, "behavior?": one("UNSPECIFIED", "BLOCKING", "NON_BLOCKING"),
}  # fmt: skip
_TOOL: Shape = {"functionDeclarations?": [_DECLARATION], **OPEN}  # and the provider's own
_GENERATION: Shape = {
    "candidateCount?": Number(1, whole=True),
    "maxOutputTokens?": Number(1, whole=True),
    "responseJsonSchema?": OPEN,
    "responseMimeType?": str,
    "responseSchema?": OPEN,
    "stopSequences?": Items(str, 0, 5),
    "temperature?": Number(0, 2),
    "thinkingConfig?": {"thinkingBudget?": Number(-1, whole=True), "thinkingLevel?": str, **OPEN},
    "topK?": Number(),
    "topP?": Number(),
    **OPEN,
}
REQUEST: Final[Shape] = {
    "contents": Items(_CONTENT, 1),
    "cachedContent?": str,
    "generationConfig?": _GENERATION,
    "safetySettings?": [OPEN],
    "systemInstruction?": {"parts": Items(_PART, 1), "role?": str},
    "toolConfig?": {
        "functionCallingConfig?": {
            "mode?": one("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"),
            "allowedFunctionNames?": [str],
        },
        **OPEN,
    },
    "tools?": [_TOOL],
    **OPEN,
}
_CALL, _RESPONSE = "functionCall", "functionResponse"


# --- places ------------------------------------------------------------------------------------------------


def _having(content: Spot, name: str) -> list[Spot]:
    """Return the values of this field in a content's parts."""
    return [part[name] for part in content["parts"] if part[name]]


def _everywhere(body: Spot, name: str) -> Iterator[Spot]:
    for content in body["contents"]:
        yield from _having(content, name)


def _role(content: Spot) -> str:
    return content["role"].text or "user"


# --- turns and parts ---------------------------------------------------------------------------------------------------


def _order(subject: Subject) -> Iterator[Violation]:
    """Check who speaks first and last."""
    contents = list(subject.body["contents"])
    yield from rules.ordered(contents, subject.profile.turns)
    last = contents[-1] if contents else Spot(None)
    complete = subject.as_history or subject.profile.turns.assistant_last or _having(last, _CALL)
    if last["role"].text == "model" and not complete:
        yield last["role"].breaks(Breach.ROLE_LAST, "a request may not end on the model's words")


def _parts(subject: Subject) -> Iterator[Violation]:
    """Check that every content has parts and every part one thing, in the role that may say it; a signed text may be empty.

    «contents.parts must not be empty»: vercel/ai#3775. «Exactly one field within a Part should be set», API reference.
    Function responses come from the user: BerriAI/litellm#22046. Signatures «in an empty text part»: thought-signatures.
    """
    texts = [part["text"] for part in subject.body["systemInstruction"]["parts"]]
    for content in subject.body["contents"]:
        if isinstance(content["parts"].value, list | tuple) and not len(content["parts"]):
            yield content["parts"].breaks(Breach.MESSAGE_EMPTY, "the content has no parts")
        for part in content["parts"]:
            things = [name for name in _DATA if part[name]]
            if isinstance(part.value, Mapping) and len(things) != 1:
                yield part.breaks(
                    Breach.BLOCK_KIND, f"a part holds one thing, this holds {', '.join(things) or 'none'}"
                )
            for name, role in ((_CALL, "model"), (_RESPONSE, "user")):
                if part[name] and _role(content) != role:
                    yield part[name].breaks(Breach.BLOCK_PLACE, f"{name} is the {role}'s to say")
            texts += [] if part["thoughtSignature"] else [part["text"]]
    yield from rules.worded(texts, subject.profile.turns)


# --- calls -------------------------------------------------------------------------------------------------------------


def _pairing(subject: Subject) -> Iterator[Violation]:
    """Check that calls follow the user, and are answered in the content after theirs, as many as there are, by name and id.

    «Please ensure that function call turn comes immediately after a user turn or after a function response turn»:
    google-gemini/gemini-cli#26486. «Please ensure that the number of function response parts is equal to the number of function call parts of
    the function call turn»: patterns-ai-core/langchainrb#993. «Please ensure that function response turn comes immediately after a function
    call turn»: langchain-ai/langchain#27799.
    """
    contents = list(subject.body["contents"])
    opening = _having(contents[0], _RESPONSE) if contents else []
    yield from rules.paired([Round((), tuple(each["name"] for each in opening))])
    for before, content, after in zip([Spot(None), *contents], contents, [*contents[1:], Spot(None)], strict=False):
        made = _having(content, _CALL) if _role(content) == "model" else []
        if made and _role(before) != "user":
            yield made[0].breaks(Breach.CALL_PLACE, "a call must follow the user's words or a response")
        yield from rules.identified([Round(tuple(call["id"] for call in made))], subject.profile.calls)
        yield from _answered(made, _having(after, _RESPONSE))
    if subject.profile.reasoning.signed_calls:
        yield from _signed(contents)


def _answered(made: list[Spot], responses: list[Spot]) -> Iterator[Violation]:
    """Compare one turn's calls with the responses after it."""
    if not made or not responses:
        orphan = "no call in the content before that this could answer"
        yield from (
            place.breaks(Breach.CALL_UNANSWERED, f"no response to {show(place['name'].value)} follows")
            for place in made
        )
        yield from (place.breaks(Breach.RESULT_ORPHAN, orphan) for place in responses)
        return
    if len(made) != len(responses):
        yield responses[-1].breaks(Breach.RESULT_COUNT, f"{len(made)} calls have {len(responses)} responses")
        return
    ids = {call["id"].text for call in made}
    seen: set[str] = set()
    names = Counter(call["name"].text for call in made)
    for response in responses:
        identity, name = response["id"].text, response["name"]
        if identity in seen:
            yield response["id"].breaks(Breach.RESULT_DUPLICATE, f"{show(identity)} has a response already")
        elif identity and identity not in ids:
            yield response["id"].breaks(Breach.RESULT_ORPHAN, f"no call {show(identity)} in the content before")
        seen |= {identity} - {""}
        names[name.text] -= 1
        if names[name.text] < 0:
            yield name.breaks(Breach.RESULT_NAME, f"no call to {show(name.value)} is left to answer")


def _signed(contents: list[Spot]) -> Iterator[Violation]:
    """Check that the first call of each step of the current turn has its signature (thought-signatures, «validation»).

    The current turn begins with the last thing that the user said and that is not a response. Calls from elsewhere have the placeholder that page names.
    «Function call is missing a thought_signature in functionCall parts»: goose#5792.
    """
    asked = [n for n, each in enumerate(contents) if _role(each) == "user" and not _having(each, _RESPONSE)]
    for content in contents[max(asked, default=-1) + 1 :]:
        first = next((part for part in content["parts"] if part[_CALL]), None)
        if _role(content) == "model" and first is not None and not first["thoughtSignature"].text:
            missing = "the first call of a step goes back with its signature only"
            yield first["thoughtSignature"].breaks(Breach.THINKING_SIGNATURE, missing)


def _signatures(subject: Subject) -> Iterator[Violation]:
    """Check that signatures are bytes in base64, as the field's type says."""
    for signature in _everywhere(subject.body, "thoughtSignature"):
        if isinstance(signature.value, str) and rules.decode(signature.text) is None:
            yield signature.breaks(Breach.THINKING_SIGNATURE, "the signature is not base64")


# --- media, tools, parameters ------------------------------------------------------------------------------------------


def _attachments(subject: Subject) -> Iterator[Violation | Attachment]:
    body, limits = subject.body, subject.profile.media
    inside = [part for response in _everywhere(body, _RESPONSE) for part in response["parts"]]
    for blob in (*_everywhere(body, "inlineData"), *(part["inlineData"] for part in inside)):
        if blob:
            media_type = blob["mimeType"].text
            yield rules.inline(_medium(media_type), blob["data"], media_type)
    for file in (*_everywhere(body, "fileData"), *(part["fileData"] for part in inside)):
        yield from rules.linked(_medium(file["mimeType"].text), file["fileUri"], limits, data_urls=False)


def _medium(media_type: str) -> AttachmentKind:
    return "image" if media_type.startswith("image/") else "audio" if media_type.startswith("audio/") else "document"


def _payloads(subject: Subject) -> Iterator[Violation]:
    yield from rules.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: Subject) -> Iterator[Violation]:
    """Check declarations, calls in the history and the choice between functions."""
    body, limits = subject.body, subject.profile.tools
    declared = [declaration for tool in body["tools"] for declaration in tool["functionDeclarations"]]
    names = [declaration["name"] for declaration in declared]
    yield from rules.defined(names, limits)
    yield from rules.called((call["name"] for call in _everywhere(body, _CALL)), limits)
    for declaration in declared:
        for field in ("parameters", "parametersJsonSchema"):
            yield from rules.parameters(declaration[field], "gemini")
        yield from rules.conflicting(
            declaration, ("parameters", "parametersJsonSchema"), ("response", "responseJsonSchema")
        )
    config = body["toolConfig"]["functionCallingConfig"]
    yield from rules.chosen(config["allowedFunctionNames"], names)
    if config["allowedFunctionNames"] and config["mode"].text not in ("ANY", "VALIDATED"):
        # «allowed_function_names: only set when the mode is ANY», API reference
        yield config["allowedFunctionNames"].breaks(Breach.PARAMETER_CONFLICT, "taken only with mode ANY or VALIDATED")


def _mixed(subject: Subject) -> Iterator[Violation]:
    """Check functions together with the provider's own tools, and JSON answers together with either."""
    body, profile = subject.body, subject.profile
    functions = [tool for tool in body["tools"] if tool["functionDeclarations"]]
    built_in = [tool for tool in body["tools"] if any(name != "functionDeclarations" for name, _ in tool.members())]
    told = body["toolConfig"]["includeServerSideToolInvocations"]
    if functions and built_in and not profile.tools.mixed:
        # «Tool use with function calling is unsupported»: symfony/ai#803
        yield built_in[0].breaks(Breach.PARAMETER_CONFLICT, "this model takes tools of its own only without functions")
    elif functions and built_in and told.value is not True:
        # «Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling»: lobehub#13465
        yield told.breaks(Breach.PARAMETER_CONFLICT, "must be true where tools of the provider stand beside functions")
    wanted = body["generationConfig"]["responseMimeType"]
    if wanted.text == "application/json" and len(body["tools"]) and not profile.answers.beside_tools:
        # «Function calling with a response mime type: 'application/json' is unsupported»: googleapis/python-genai#867
        yield wanted.breaks(Breach.PARAMETER_CONFLICT, "this model answers in JSON only without tools")
    yield from rules.held(body["generationConfig"]["responseJsonSchema"], "gemini")


def _parameters(subject: Subject) -> Iterator[Violation]:
    """Check parameters that need or exclude each other."""
    body, config = subject.body, subject.body["generationConfig"]
    # «Tool config, tools and system instruction should not be set in the request when using cached content»:
    # googleapis/python-genai#348
    yield from rules.conflicting(
        body, *((name, "cachedContent") for name in ("systemInstruction", "tools", "toolConfig"))
    )
    # «You can only set only one of thinking budget and thinking level»; the others: API reference, GenerationConfig
    yield from rules.conflicting(config["thinkingConfig"], ("thinkingBudget", "thinkingLevel"))
    yield from rules.conflicting(config, ("responseSchema", "responseJsonSchema"))
    yield from rules.efforts(config["thinkingConfig"]["thinkingLevel"], subject.profile.reasoning.efforts)
    yield from rules.unsampled(config, ("temperature", "topP", "topK"), subject.profile)
    for name in ("responseSchema", "responseJsonSchema"):
        if config[name] and not config["responseMimeType"]:
            yield config[name].breaks(Breach.PARAMETER_CONFLICT, f"{name} is taken only with responseMimeType")


CHECKS: Final = (_order, _parts, _pairing, _signatures, _payloads, _toolset, _mixed, _parameters)
