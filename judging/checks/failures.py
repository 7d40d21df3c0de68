"""Checks on what failed: calls and code that could not run, resources missing or refused, models that gave nothing.

One failure, one name: what a check for a cause reports (refused, not found, out of time ...) is no `failed_action`.
Each is cited at the earliest span in which it can be seen: what the tool's description rules out (a wrong argument, an
unknown tool) at the answer that wrote it, what shows when it runs at the answer whose messages tell of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tracejury.ingest.trace import Message, Span
from tracejury.judging.checks.hits import QUOTE_LENGTH, Hit, cut, line_at, quote_answer, quote_messages, short
from tracejury.judging.checks.view import Failed, Thread, Turn, View

ARGUMENTS = re.compile(
    r"unexpected keyword argument|missing \d+ required|multiple values for (?:keyword )?argument"
    r"|takes (?:from )?\d+ (?:to \d+ )?positional|takes no (?:keyword )?arguments|missing required (?:argument|field)"
    r"|Argument \S+ has type|invalid (?:tool )?arguments?|validation errors? for|JSONDecodeError"
    r"|arguments? (?:is|are) required",
    re.IGNORECASE,
)
UNPARSABLE = re.compile(
    r"Error in code parsing|parsing tool call|code snippet is invalid|AgentParsingError|ParsingAgentError"
    r"|InvalidActionAgentError|\bFormatError\b"
    r"|could not (?:be )?parsed?\b|failed to parse|no valid (?:action|tool call)|invalid action format",
    re.IGNORECASE,
)
UNKNOWN_TOOL = re.compile(
    r"unknown tool|unavailable tool|UnavailableToolAgentError|no such tool|tool \S+ (?:does not exist|is not available)"
    r"|not among the explicitly allowed tools",
    re.IGNORECASE,
)
MISSING_FILE = re.compile(r"FileNotFoundError|No such file or directory|\bENOENT\b")
TOOL_DEFECT = re.compile(r"UnboundLocalError|NotImplementedError|RecursionError|ModuleNotFoundError|ImportError")
REFUSED = re.compile(
    r"\b(?:Error|HTTP|HTTP Error|status(?: code)?):? *40[13]\b|\b40[13] (?:Forbidden|Unauthorized|Client Error)"
    r"|AuthenticationError|invalid api key|authentication (?:failed|required)|permission denied|access denied",
    re.IGNORECASE,
)
NOT_FOUND = re.compile(
    r"\b(?:Error|HTTP|HTTP Error|status(?: code)?):? *404\b|\b404 (?:Not Found|Client Error)", re.IGNORECASE
)
SERVICE = re.compile(
    r"\b(?:Error|HTTP|HTTP Error|status(?: code)?):? *50[0234]\b|\b50[0234] (?:Server Error|Bad Gateway)"
    r"|Internal Server ?Error|ServiceUnavailable|Bad Gateway|RemoteDisconnected|Connection (?:aborted|refused|reset)"
    r"|ConnectionError|overloaded_error|Max retries exceeded",
    re.IGNORECASE,
)
RATE = re.compile(
    r"RateLimit(?:Error)?|rate limit|too many requests|\b(?:Error|HTTP|status(?: code)?):? *429\b", re.IGNORECASE
)
TIMEOUT = re.compile(r"\bTimeout(?:Error|Exception)?\b|timed? out\b|DeadlineExceeded", re.IGNORECASE)
EXHAUSTED = re.compile(
    r"max(?:imum)? number of (?:operations|iterations)|MemoryError|out of memory|No space left"
    r"|context(?: window| length)? (?:exceeded|is too long)|ContextWindowExceeded|maximum context length|token limit",
    re.IGNORECASE,
)
_CAUSES = (ARGUMENTS, UNPARSABLE, UNKNOWN_TOOL, REFUSED, NOT_FOUND, SERVICE, RATE, TIMEOUT, EXHAUSTED)
MIN_LINE, MAX_LINES = 12, 40
"""A line of an error shorter than this tells nothing apart; longer errors are looked up by their first lines."""
HEAD = 400
"""Characters of a tool's output that say whether it is an error page: further down such words are content."""


def bad_arguments(view: View) -> Iterator[Hit]:
    """A call with arguments that the tool does not take (unknown, missing, repeated or of the wrong form) is an error
    of whoever wrote the call, since the tool's description states them. Cited at the answer that wrote the call."""
    for _, turn, failed in _failed_actions(view):
        if ARGUMENTS.search(failed.text):
            yield _at_call(turn, failed, "calls {what} with arguments that it does not take")


def unparsable_action(view: View) -> Iterator[Hit]:
    """An answer from which the framework can read no action (no code block, no call, broken JSON) does nothing and
    costs a retry. Cited where the agent is told so, else at the answer itself."""
    for thread, turn, failed in _failed_actions(view):
        if UNPARSABLE.search(failed.text):
            yield _where_read(thread, turn, failed, "writes an action that cannot be parsed")
    for _, turn in view.turns:
        complaint = next(
            (m for m in turn.heard if _from_outside(m) and UNPARSABLE.search((m.content or "")[:HEAD])), None
        )
        # The first call of a thread may quote another agent's conversation as the user's words.
        if complaint is not None and (turn.number > 0 or complaint.role in {"tool", "tool-response"}):
            quote = quote_messages((complaint,), UNPARSABLE)
            yield Hit(span=turn.span, evidence=quote, description="The agent is told that its action cannot be parsed")


def failed_action(view: View) -> Iterator[Hit]:
    """An action that fails when executed (its code raises, its tool reports an error) was wrong as written: the agent
    has to notice and correct it. Causes outside the agent (refused, gone, down, out of time, a fault in the tool's own
    program) have checks of their own. Cited where the agent reads the failure, else at the action."""
    for thread, turn, failed in _failed_actions(view):
        if not _has_a_name(failed):
            yield _where_read(thread, turn, failed, "takes an action that fails")


def unknown_tool(view: View) -> Iterator[Hit]:
    """A call of a tool that the agent does not have is a hallucinated tool. Cited at the answer that wrote it."""
    for _, turn, failed in _failed_actions(view):
        if UNKNOWN_TOOL.search(failed.text):
            yield _at_call(turn, failed, "calls a tool that it does not have")


def missing_file(view: View) -> Iterator[Hit]:
    """A call names a file that is not there: the environment lacks what the task or the agent expects. A missing file
    is reported once, at the first answer that met this failure."""
    met: set[str] = set()
    for _, turn, failed in _failed_actions(view):
        if MISSING_FILE.search(failed.text) and failed.text not in met:
            met.add(failed.text)
            yield _at_call(turn, failed, "opens a file that is not there")


def tool_defect(view: View) -> Iterator[Hit]:
    """A tool that crashes because of a fault in its own program (an unbound variable, a missing import) is badly set
    up; other arguments would not have helped. Cited at the answer that called it."""
    for _, turn, failed in _failed_actions(view):
        if failed.tool is not None and TOOL_DEFECT.search(failed.text):
            yield _at_call(turn, failed, "calls {what}, which crashes because of a fault of its own")


def model_call_failed(view: View) -> Iterator[Hit]:
    """A model that was asked and gave no answer (overloaded, unreachable) costs the agent a step. Cited at the failed
    call; a refusal, a rate limit and a timeout are reported under their own names."""
    for _, turn in view.turns:
        for failed in turn.errors:
            if failed.of_model and not any(other.search(failed.text) for other in (REFUSED, RATE, TIMEOUT)):
                quote, reason = cut(turn.span.status_message or ""), short(failed.text) or "no reason is recorded"
                yield Hit(span=turn.span, evidence=quote, description=f"The model gave no answer: {reason}")


def reply_says(pattern: re.Pattern[str], what: str, rule: str) -> Callable[[View], Iterator[Hit]]:
    """A check that finds `pattern` in the error of a tool or model or in the head of a tool's output, once for each
    tool and agent."""

    def look(view: View) -> Iterator[Hit]:
        seen: set[tuple[str | None, str | None]] = set()
        for span in view.trace.spans:
            quote = _complaint(span, pattern)
            if quote and (span.agent, span.tool_name) not in seen:
                seen.add((span.agent, span.tool_name))
                named = span.tool_name or span.name or "the model"
                yield Hit(span=span, evidence=quote, description=f"{named} {what}: {short(quote)}")

    look.__doc__ = rule
    return look


access_refused = reply_says(
    REFUSED,
    "is refused access",
    "A tool that was refused access (401, 403, a bad key) did not reach its source, so what follows lacks support.",
)
not_found = reply_says(
    NOT_FOUND, "finds nothing at the address", "A tool that calls an address where nothing is (404) returns no result."
)
service_failed = reply_says(
    SERVICE,
    "calls a service that fails",
    "A service that breaks off or answers 5xx gave no result; the agent should retry.",
)
rate_limited = reply_says(
    RATE, "is rate limited", "A call refused because of too many calls (429) shows that the agent called too fast."
)
timed_out = reply_says(TIMEOUT, "runs out of time", "A call that ran out of time gave no result.")


def resource_exhausted(view: View) -> Iterator[Hit]:
    """An action that exhausted its operations, memory or context was too large for its environment and gave no result.
    Cited where the agent reads it, else at the action."""
    for thread, turn in view.turns:
        for failed in turn.errors:
            if EXHAUSTED.search(failed.text):
                yield _where_read(thread, turn, failed, "takes an action that exhausts its resources")


def _has_a_name(failed: Failed) -> bool:
    """Whether a check of its own names the cause of this failure."""
    if failed.tool is not None and TOOL_DEFECT.search(failed.text):
        return True
    return any(cause.search(failed.text) for cause in _CAUSES)


def _failed_actions(view: View) -> Iterator[tuple[Thread, Turn, Failed]]:
    for thread, turn in view.turns:
        for failed in turn.errors:
            if not failed.of_model:
                yield thread, turn, failed


def _at_call(turn: Turn, failed: Failed, what: str) -> Hit:
    only = turn.calls[0].name if len(turn.calls) == 1 else None
    named = (failed.tool.tool_name if failed.tool is not None else only) or "a function"
    call = next((c for c in turn.calls if c.name == named and c.arguments), None)
    if call is not None and call.arguments is not None:
        evidence = cut(call.arguments)
    else:
        evidence = quote_answer(turn, re.compile(rf"\b{re.escape(named)}\s*\("))
    return Hit(
        span=turn.span,
        evidence=evidence,
        description=f"The agent {what.format(what=named)}: {short(failed.text)}",
    )


def _where_read(thread: Thread, turn: Turn, failed: Failed, what: str) -> Hit:
    """The next answer of the agent, whose messages hold the failure; without one, the action."""
    reader = thread.after(turn)
    description = f"The agent {what}: {short(failed.text)}"
    quote = _as_told(reader, failed.text) if reader is not None else ""
    if reader is not None and quote:
        return Hit(span=reader.span, evidence=quote, description=description)
    return Hit(span=turn.span, evidence=quote_answer(turn), description=description)


_ERROR_LINE = re.compile(r"(?:Error|Exception)\b|\bfailed\b")


def _as_told(reader: Turn, error: str) -> str:
    """The line that told the agent of an error: one of the error's own lines, else the first that speaks of one."""
    messages = tuple(message for message in reader.heard if _from_outside(message))
    lines = [line.strip() for line in error.splitlines() if len(line.strip()) >= MIN_LINE]
    for line in lines[:MAX_LINES]:
        for text in (line, line.partition(": ")[2]):
            if len(text) >= MIN_LINE:
                quote = quote_messages(messages, re.compile(re.escape(text[:QUOTE_LENGTH])))
                if quote:
                    return quote
    return quote_messages(messages, _ERROR_LINE)


def _from_outside(message: Message) -> bool:
    """Said to the agent, not by it, and no standing instruction."""
    return message.role not in {"assistant", "tool-call", "system"}


def _complaint(span: Span, pattern: re.Pattern[str]) -> str:
    if span.kind not in {"TOOL", "RETRIEVER", "LLM"}:
        return ""
    if span.status == "ERROR" and span.status_message:
        text = span.status_message
    else:
        text = "" if span.kind == "LLM" else (span.output or "")[:HEAD]
    match = pattern.search(text)
    return line_at(text, match.start()) if match is not None else ""
