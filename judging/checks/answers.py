"""Checks on answers: what they rest on, what they claim to have checked, whether there is one at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tracejury.ingest.trace import Span
from tracejury.judging.checks.hits import Hit, cut, quote_answer
from tracejury.judging.checks.view import Thread, Turn, View, is_final_tool, is_plan

MADE_UP = re.compile(
    r"\bassum(?:e|ed|es|ing|ption|ptions)\b|\bsimulat\w+|\bfabricat\w+|\bhypothe\w+|\bplausibl\w+|\bplaceholder\b"
    r"|\bfor (?:the sake of )?(?:demonstration|illustration)\b|\bmade[- ]up\b|\bguess\w*",
    re.IGNORECASE,
)
FROM_MEMORY = re.compile(
    r"\bI (?:recall|know|remember|believe)\b|\b(?:general|common|internal|prior|background|my|own) knowledge\b"
    r"|\bmy (?:understanding|recollection|memory)\b|\baccording to\b|\b(?:likely|probabl[ey]|presumabl[ey])\b"
    r"|\b(?:well|widely|generally|commonly)[- ](?:known|established|understood|documented|accepted|recogni[sz]ed)\b"
    r"|\bestimat\w+|\btypical(?:ly)?\b|\breasonabl\w+|\b(?:appears?|seems?) (?:that|to)\b",
    re.IGNORECASE,
)
_DID = (
    r"(?:verified|confirmed|checked|double[- ]checked|cross[- ]?(?:checked|referenced|verified)|consulted|investigated"
    r"|searched|researched|looked up|queried|retrieved|obtained|reviewed|found|gathered)"
)
_DOING = (
    r"(?:verifying|confirming|checking|double[- ]checking|cross[- ]?(?:checking|referencing|verifying)|consulting"
    r"|investigating|searching|researching|querying|retrieving|reviewing)"
)
CHECKED = re.compile(
    rf"\b(?:I|we)(?:['’]ve| have| had)?(?: \w+ly| now| already| also)* {_DID}\b"
    rf"|\b(?:has|have|was|were) (?:been )?(?:\w+ly )?{_DID}\b|\b(?:after|upon|through|from) (?:\w+ly )?{_DOING}\b"
    r"|\bverified\b|\b(?:investigations?|research|search(?:es)?|verification|cross[‐ -]?(?:check|referenc)\w*)\b"
    r"[^.\n]{0,80}\b(?:reveal|indicate|show|confirm|return)\w*",
    re.IGNORECASE,
)
"""A check said to be done: by the agent ("I verified"), to something ("was confirmed"), or with what it showed."""
GIVES_UP = re.compile(
    r"\A\W*(?:[A-Za-z][\w ]{0,30}:\W*)?"
    r"(?:(?:I|we) (?:am |are |was |were )?(?:not able|unable|could ?n[o']t|cannot|can't|do not know|don't know)"
    r"|(?:unable|not able) to|cannot|can't|could not|unknown\b|none found|not found|no answer|n/a\b)",
    re.IGNORECASE,
)
"""An answer that begins, after a label or none, by saying that there is none."""
FAILED = re.compile(
    r"\b(?:unable|not able|could ?n[o']t|cannot|can't|did ?n[o']t|failed|failure|error)\b"
    r"|\b(?:unsuccessful|inaccessible|unavailable)\b"
    r"|\b(?:not|no|never) (?:\w+ )?(?:found|available|accessible|possible|located|results?|data|access)\b",
    re.IGNORECASE,
)
MAX_STEPS = re.compile(
    r"reached max(?:imum)?(?: number of)? (?:steps|iterations|turns)|MaxIterationsAgentError|AgentMaxStepsError"
    r"|max(?:imum)?(?: number of)? (?:steps|iterations|turns)[^.\n]{0,20} (?:reached|exceeded)",
    re.IGNORECASE,
)
HEAD = 2000
"""Characters of a message in which it says that the agent was stopped."""


def unsupported_answer(view: View) -> Iterator[Hit]:
    """An answer calls itself assumed, simulated or guessed, although the agent had tools to find out: no result in the
    trace supports it. Where no call of the agent returned a result, an answer that calls itself remembered, likely or
    estimated, or claims a source or a check, counts too. Cited at the answer handed in."""
    for thread, final in _answers(view):
        pattern = MADE_UP if thread.worked else _EITHER
        if pattern.search(final.thought):
            yield Hit(
                span=final.span,
                evidence=quote_answer(final, pattern),
                description="The answer rests on what the agent assumes or remembers, not on the result of a call",
            )


def claimed_check(view: View) -> Iterator[Hit]:
    """An answer claims a look-up, a confirmation or a verification although no call of this agent ever returned a
    result: it claims tool use that did not happen. Cited at the answer handed in."""
    for thread, final in _answers(view):
        if not thread.worked and CHECKED.search(final.thought):
            yield Hit(
                span=final.span,
                evidence=quote_answer(final, CHECKED),
                description="The answer claims a check that no call in this trace made",
            )


def answer_despite_failures(view: View) -> Iterator[Hit]:
    """All calls of an agent failed and it hands in an answer all the same: it treats failures as results. Cited at the
    answer handed in; not reported when what is handed in says that something failed."""
    for thread, final in _answers(view):
        if thread.tried and not thread.worked and not FAILED.search(final.handed_in):
            yield Hit(
                span=final.span,
                evidence=quote_answer(final),
                description="Every call of this agent failed, yet it hands in an answer all the same",
            )


def gives_up(view: View) -> Iterator[Hit]:
    """An answer that only says that none could be found leaves the user's goal unmet, whatever the reason. Only the
    last answer of the trace counts: it is what the user gets."""
    finals = [thread.final for thread in view.threads if thread.final is not None and not thread.in_tool]
    for turn in sorted(finals, key=lambda turn: turn.span.seq)[-1:]:
        if GIVES_UP.search(turn.handed_in):
            yield Hit(
                span=turn.span, evidence=quote_answer(turn), description="The answer only says that none could be found"
            )


def no_answer(view: View) -> Iterator[Hit]:
    """The trace ends in an error, in a call or because the agent was stopped, with no answer handed in and none
    recorded: the user got nothing. Cited at the last thing the agent did. Not reported where the answer may be missing
    from the record only: spans without their parents, answers kept out of the export."""
    stopped = next((span for span in _stops(view)), None)
    if stopped is not None:
        yield Hit(
            span=stopped,
            evidence=_stop_quote(stopped.tool_arguments or ""),
            description="The user is told only that the agent was stopped, without an answer",
        )
        return
    main = view.main
    in_pieces = any(warning.startswith("orphan") for warning in view.trace.all_warnings)
    if main is None or main.final is not None or in_pieces or (view.trace.final_answer or "").strip():
        return
    last = main.turns[-1]
    if not last.answers and not last.said and not last.errors:
        return
    yield Hit(span=last.span, evidence=quote_answer(last), description="The trace ends without an answer to the user")


def empty_model_answer(view: View) -> Iterator[Hit]:
    """A model that was asked and did not fail, but returned neither text nor a call, wasted the step. Cited at the
    call."""
    for _, turn in view.turns:
        nothing = not turn.said.strip() and not turn.calls and not turn.tools
        if nothing and turn.span.status != "ERROR" and not turn.errors and turn.span.output_messages:
            yield Hit(span=turn.span, evidence="", description="The model answers with nothing: no text and no call")


def out_of_steps(view: View) -> Iterator[Hit]:
    """An agent that was stopped because its steps ran out did not fit its work into them. Cited at the first span of a
    model or tool whose text says so, else at the last answer of an agent that used all its steps and handed in none."""
    for thread in view.threads:
        for turn in thread.turns:
            messages = [m for m in (*turn.heard, *turn.answers) if m.role != "system" and not is_plan(turn)]
            quote = next((quote for m in messages if (quote := _stop_quote((m.content or "")[:HEAD]))), "")
            if quote:
                yield Hit(span=turn.span, evidence=quote, description="The agent was stopped: its steps ran out")
                return
    for thread in view.threads:
        acting = sum(turn.acts and not is_plan(turn) for turn in thread.turns)
        in_time = thread.final is not None and thread.final.is_final
        if thread.most_steps is not None and acting >= thread.most_steps and not in_time:
            last = thread.turns[-1]
            description = f"All {thread.most_steps} steps are used up and no answer was handed in"
            yield Hit(span=last.span, evidence=quote_answer(last), description=description)
    for span in _stops(view):
        quote = _stop_quote(span.tool_arguments or "")
        yield Hit(span=span, evidence=quote, description="The agent was stopped: its steps ran out")


def _stops(view: View) -> Iterator[Span]:
    """The last message to the user, when it says that the steps ran out."""
    handed_in = [span for span in view.tool_spans if is_final_tool(span.tool_name, view.finals)]
    if handed_in and _stop_quote(handed_in[-1].tool_arguments or ""):
        yield handed_in[-1]


def _stop_quote(text: str) -> str:
    match = MAX_STEPS.search(text)
    return cut(text[match.start() :].splitlines()[0]) if match is not None else ""


_EITHER = re.compile(f"{MADE_UP.pattern}|{FROM_MEMORY.pattern}|{CHECKED.pattern}", re.IGNORECASE)


def _answers(view: View) -> Iterator[tuple[Thread, Turn]]:
    """Agents that had tools to find out with, and the turn that hands in their answer."""
    for thread in view.threads:
        if thread.work_tools and thread.final is not None and thread.final.is_final:
            yield thread, thread.final
