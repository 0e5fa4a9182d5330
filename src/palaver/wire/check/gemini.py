"""What the Gemini API would refuse.

Sources: the API reference, the guides named in :mod:`palaver.wire.profiles`, and the API's own answers as quoted in the
threads beside the rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from palaver.wire.check import answers, calls, examine, media, tools, turns
from palaver.wire.check.calls import Round
from palaver.wire.check.examine import Subject
from palaver.wire.check.media import Attachment, AttachmentKind
from palaver.wire.check.shape import show
from palaver.wire.check.shapes.gemini import DATA_FIELDS, REQUEST
from palaver.wire.profiles import Profile
from palaver.wire.violations import Place, Rule, Violation

__all__ = ["RULES", "validate"]

_CALL, _RESPONSE = "functionCall", "functionResponse"


def validate(request: Mapping[str, object], profile: Profile, *, as_history: bool = False) -> tuple[Violation, ...]:
    """Give everything in a generateContent request that the API would refuse; nothing when it would take it."""
    return examine.run(request, profile, REQUEST, _CHECKS, as_history=as_history)


# --- where things stand ------------------------------------------------------------------------------------------------


def _having(content: Place, name: str) -> list[Place]:
    """Give what stands under this field in a content's parts."""
    return [part[name] for part in content["parts"] if part[name]]


def _everywhere(body: Place, name: str) -> Iterator[Place]:
    for content in body["contents"]:
        yield from _having(content, name)


def _role(content: Place) -> str:
    return content["role"].text or "user"


# --- turns and parts ---------------------------------------------------------------------------------------------------


def _order(subject: Subject) -> Iterator[Violation]:
    """Check who speaks first and last."""
    contents = list(subject.body["contents"])
    yield from turns.ordered(contents, subject.profile.turns)
    last = contents[-1] if contents else Place(None)
    if subject.as_history or subject.profile.turns.assistant_last or _having(last, _CALL):
        return
    if last["role"].text == "model":
        yield last["role"].breaks(Rule.ROLE_LAST, "a request may not end on the model's words")


def _parts(subject: Subject) -> Iterator[Violation]:
    """Check that every content has parts and every part one thing, in the role that may say it.

    «contents.parts must not be empty»: vercel/ai#3775. «Exactly one field within a Part should be set», API reference.
    Function responses come from the user: BerriAI/litellm#22046.
    """
    for content in subject.body["contents"]:
        if isinstance(content["parts"].value, list | tuple) and not len(content["parts"]):
            yield content["parts"].breaks(Rule.MESSAGE_EMPTY, "the content has no parts")
        for part in content["parts"]:
            held = [name for name in DATA_FIELDS if part[name]]
            if isinstance(part.value, Mapping) and len(held) != 1:
                yield part.breaks(Rule.BLOCK_KIND, f"a part holds one thing, this holds {', '.join(held) or 'none'}")
            for name, role in ((_CALL, "model"), (_RESPONSE, "user")):
                if part[name] and _role(content) != role:
                    yield part[name].breaks(Rule.BLOCK_PLACE, f"{name} is the {role}'s to say")


def _worded(subject: Subject) -> Iterator[Violation]:
    """Check texts; one that carries a signature may be empty (thought-signatures, «in an empty text part»)."""
    spoken = (part for content in subject.body["contents"] for part in content["parts"])
    texts = [part["text"] for part in spoken if not part["thoughtSignature"]]
    texts += [part["text"] for part in subject.body["systemInstruction"]["parts"]]
    yield from turns.worded(texts, subject.profile.turns)


# --- calls -------------------------------------------------------------------------------------------------------------


def _steps(body: Place) -> Iterator[tuple[list[Place], list[Place], Place]]:
    """Give each model content's calls, the responses in the content after it, and the content before it."""
    contents = list(body["contents"])
    before = [Place(None), *contents]
    after = [*contents[1:], Place(None)]
    for earlier, content, later in zip(before, contents, after, strict=False):
        made = _having(content, _CALL) if _role(content) == "model" else []
        yield made, _having(later, _RESPONSE), earlier


def _pairing(subject: Subject) -> Iterator[Violation]:
    """Check that calls are answered in the content after theirs, as many as there are, each by its name and id.

    «Please ensure that the number of function response parts is equal to the number of function call parts of the function
    call turn»: patterns-ai-core/langchainrb#993. «Please ensure that function response turn comes immediately after a
    function call turn»: langchain-ai/langchain#27799.
    """
    body, rules = subject.body, subject.profile.calls
    opening = _having(body["contents"][0], _RESPONSE)
    yield from calls.paired([Round((), tuple(each["name"] for each in opening))])
    for made, responses, _ in _steps(body):
        yield from calls.identified([Round(tuple(call["id"] for call in made))], rules)
        yield from _answered(made, responses)
    yield from calls.objects(call["args"] for call in _everywhere(body, _CALL))


def _answered(made: list[Place], responses: list[Place]) -> Iterator[Violation]:
    """Compare one turn's calls with the responses after it."""
    if not made or not responses:
        yield from (
            call.breaks(Rule.CALL_UNANSWERED, f"no response to {show(call['name'].value)} follows") for call in made
        )
        orphan = "no call in the content before that this could answer"
        yield from (response.breaks(Rule.RESULT_ORPHAN, orphan) for response in responses)
        return
    if len(made) != len(responses):
        message = f"{len(made)} calls have {len(responses)} responses"
        yield responses[-1].breaks(Rule.RESULT_COUNT, message)
        return
    ids = {call["id"].text for call in made}
    seen: set[str] = set()
    for response in responses:
        identity = response["id"].text
        if identity in seen:
            yield response["id"].breaks(Rule.RESULT_DUPLICATE, f"{show(identity)} has a response already")
        elif identity and identity not in ids:
            yield response["id"].breaks(Rule.RESULT_ORPHAN, f"no call {show(identity)} in the content before")
        seen |= {identity} - {""}
    names = Counter(call["name"].text for call in made)
    for response in responses:
        names[response["name"].text] -= 1
        if names[response["name"].text] < 0:
            message = f"no call to {show(response['name'].value)} is left to answer"
            yield response["name"].breaks(Rule.RESULT_NAME, message)


def _calling(subject: Subject) -> Iterator[Violation]:
    """Check where calls stand and that they carry their signatures.

    «Please ensure that function call turn comes immediately after a user turn or after a function response turn»:
    google-gemini/gemini-cli#26486.
    """
    for made, _, before in _steps(subject.body):
        if made and _role(before) != "user":
            yield made[0].breaks(Rule.CALL_PLACE, "a call must follow the user's words or a response")
    if subject.profile.reasoning.signed_calls:
        yield from _signed(list(subject.body["contents"]))


def _signed(contents: list[Place]) -> Iterator[Violation]:
    """Check that the first call of each step of the current turn has its signature (thought-signatures, «validation»).

    The current turn begins with the last thing the user said, which is not a response. Calls that came from elsewhere carry
    the placeholder that page names. «Function call is missing a thought_signature in functionCall parts»: goose#5792.
    """
    asked = [n for n, each in enumerate(contents) if _role(each) == "user" and not _having(each, _RESPONSE)]
    for content in contents[max(asked, default=-1) + 1 :]:
        first = next((part for part in content["parts"] if part[_CALL]), None)
        if _role(content) == "model" and first is not None and not first["thoughtSignature"].text:
            missing = "the first call of a step goes back with its signature only"
            yield first["thoughtSignature"].breaks(Rule.THINKING_SIGNATURE, missing)


def _signatures(subject: Subject) -> Iterator[Violation]:
    """Check that signatures are bytes in base64, as the field's type says."""
    for signature in _everywhere(subject.body, "thoughtSignature"):
        if isinstance(signature.value, str) and media.decode(signature.text) is None:
            yield signature.breaks(Rule.THINKING_SIGNATURE, "the signature is not base64")


# --- media, tools, parameters ------------------------------------------------------------------------------------------


def _attachments(subject: Subject) -> Iterator[Violation | Attachment]:
    body, limits = subject.body, subject.profile.media
    inside = [part for response in _everywhere(body, _RESPONSE) for part in response["parts"]]
    for blob in (*_everywhere(body, "inlineData"), *(part["inlineData"] for part in inside)):
        if blob:
            media_type = blob["mimeType"].text
            yield media.inline(_medium(media_type), blob["data"], media_type)
    for file in (*_everywhere(body, "fileData"), *(part["fileData"] for part in inside)):
        yield from media.linked(_medium(file["mimeType"].text), file["fileUri"], limits, data_urls=False)


def _medium(media_type: str) -> AttachmentKind:
    if media_type.startswith("image/"):
        return "image"
    return "audio" if media_type.startswith("audio/") else "document"


def _payloads(subject: Subject) -> Iterator[Violation]:
    yield from media.attached(_attachments(subject), subject.profile.media)


def _toolset(subject: Subject) -> Iterator[Violation]:
    """Check declarations, calls in the history and the choice between functions."""
    body, rules = subject.body, subject.profile.tools
    declared = [each for tool in body["tools"] for each in tool["functionDeclarations"]]
    names = [each["name"] for each in declared]
    yield from tools.defined(names, rules)
    yield from tools.called((call["name"] for call in _everywhere(body, _CALL)), rules)
    for each in declared:
        yield from tools.parameters(each["parameters"], rules)
        yield from tools.parameters(each["parametersJsonSchema"], replace(rules, schema="draft-2020-12"))
        yield from examine.conflicting(each, ("parameters", "parametersJsonSchema"), ("response", "responseJsonSchema"))
    config = body["toolConfig"]["functionCallingConfig"]
    yield from tools.chosen(config["allowedFunctionNames"], names)
    if config["allowedFunctionNames"] and config["mode"].text not in ("ANY", "VALIDATED"):
        # «allowed_function_names: only set when the mode is ANY», API reference
        yield config["allowedFunctionNames"].breaks(Rule.PARAMETER_CONFLICT, "taken only with mode ANY or VALIDATED")


def _mixed(subject: Subject) -> Iterator[Violation]:
    """Check what may stand beside what: functions, the provider's own tools, and answers that must be JSON."""
    body, profile = subject.body, subject.profile
    functions = [tool for tool in body["tools"] if tool["functionDeclarations"]]
    built_in = [tool for tool in body["tools"] if any(name != "functionDeclarations" for name, _ in tool.members())]
    if functions and built_in and not profile.tools.mixed:
        # «Tool use with function calling is unsupported»: symfony/ai#803
        yield built_in[0].breaks(Rule.PARAMETER_CONFLICT, "this model takes tools of its own only without functions")
    elif functions and built_in and body["toolConfig"]["includeServerSideToolInvocations"].value is not True:
        # «Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling»: lobehub#13465
        missing = body["toolConfig"]["includeServerSideToolInvocations"]
        yield missing.breaks(Rule.PARAMETER_CONFLICT, "must be true where tools of the provider stand beside functions")
    wanted = body["generationConfig"]["responseMimeType"]
    if wanted.text == "application/json" and len(body["tools"]) and not profile.answers.beside_tools:
        # «Function calling with a response mime type: 'application/json' is unsupported»: googleapis/python-genai#867
        yield wanted.breaks(Rule.PARAMETER_CONFLICT, "this model answers in JSON only without tools")
    yield from answers.held(body["generationConfig"]["responseJsonSchema"], profile.answers)


def _parameters(subject: Subject) -> Iterator[Violation]:
    """Check parameters that need or exclude each other."""
    body, config = subject.body, subject.body["generationConfig"]
    # «Tool config, tools and system instruction should not be set in the request when using cached content»:
    # googleapis/python-genai#348
    yield from examine.conflicting(
        body, *((name, "cachedContent") for name in ("systemInstruction", "tools", "toolConfig"))
    )
    # «You can only set only one of thinking budget and thinking level»; the others: API reference, GenerationConfig
    yield from examine.conflicting(config["thinkingConfig"], ("thinkingBudget", "thinkingLevel"))
    yield from examine.conflicting(config, ("responseSchema", "responseJsonSchema"))
    for name in ("responseSchema", "responseJsonSchema"):
        if config[name] and not config["responseMimeType"]:
            yield config[name].breaks(Rule.PARAMETER_CONFLICT, f"{name} is taken only with responseMimeType")


_CHECKS = (_order, _parts, _worded, _pairing, _calling, _signatures, _payloads, _toolset, _mixed, _parameters)

RULES = (
    examine.RULES
    | turns.RULES
    | (calls.RULES - {Rule.RESULT_PLACE})  # responses elsewhere are orphans: without ids nobody can tell whose they are
    | media.RULES
    | tools.RULES
    | answers.RULES
    | {
        Rule.ROLE_LAST,
        Rule.MESSAGE_EMPTY,
        Rule.CALL_PLACE,
        Rule.RESULT_COUNT,
        Rule.RESULT_NAME,
        Rule.THINKING_SIGNATURE,
    }
)
