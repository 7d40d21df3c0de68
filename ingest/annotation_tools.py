"""Forms of the tools in which people review traces or texts: Opik, Weave, Braintrust, Humanloop, Labelbox, Prodigy,
doccano, Arize, LangWatch.

Each function gives the opinions of one record; forms as the tools' sources and documentation give them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tracejury.ingest.opinion import (
    Form,
    Opinion,
    as_words,
    first_choice,
    ids_of,
    object_of,
    objects_of,
    trace_and_spans,
    value_of,
)
from tracejury.ingest.score_files import Record
from tracejury.ingest.trace import Json

Values = Mapping[str, Json]

# Opik -----------------------------------------------------------------------------------------------------------


def _knows_opik(values: Values) -> bool:
    own = object_of(values.get("trace")) or values
    return "feedback_scores" in own or any(key.startswith("feedback_scores.") for key in values)


def _opik(record: Record) -> Iterator[Opinion]:
    """The scores of a trace or span, or of a trace with its spans as `opik export` writes them."""
    inner = object_of(record.values.get("trace"))
    holders = [inner, *objects_of(record.values.get("spans"))] if inner else [record.values]
    for holder in holders:
        own, trace = as_words(holder.get("id")), as_words(holder.get("trace_id"))
        about = Opinion(place=record.place, trace_id=trace or own or None, span_ids=(own,) if trace and own else ())
        scores = objects_of(holder.get("feedback_scores")) or list(_opik_columns(holder))
        for number, score in enumerate(scores):
            for one in _by_author(score):
                yield _opik_score(replace(about, place=f"{record.place} feedback_scores[{number}]"), one)


def _opik_columns(values: Values) -> Iterator[Values]:
    """The scores of a row of a table: `feedback_scores.NAME` beside `feedback_scores.NAME_reason`."""
    for key, value in values.items():
        name = key.removeprefix("feedback_scores.")
        if name != key and as_words(value) and not name.endswith("_reason"):
            yield {"name": name, "value": value, "reason": values.get(f"{key}_reason"), "source": "ui"}


def _by_author(score: Values) -> list[Values]:
    """A score as each of its authors gave it: of several Opik's own value is their mean, which nobody gave."""
    authors = object_of(score.get("value_by_author"))
    return [
        {**score, **object_of(one), "created_by": author.removesuffix(f"_{object_of(one).get('span_id')}")}
        for author, one in authors.items()
    ] or [score]


def _opik_score(about: Opinion, score: Values) -> Opinion:
    source, who = as_words(score.get("source")).lower(), as_words(score.get("created_by"))
    category = as_words(score.get("category_name"))
    is_machine = source not in {"", "ui"}
    return replace(
        about,
        author=f"opik {source}" if is_machine else who or "opik",
        is_machine=is_machine,
        name=as_words(score.get("name")) or None,
        value=None if category else value_of(score.get("value")),
        label=category or None,
        comment=as_words(score.get("reason")),
    )


# Weave ----------------------------------------------------------------------------------------------------------

_WEAVE_HUMAN = "wandb.annotation."
_WEAVE_SCORER = ("wandb.runnable.", "wandb.score.")


def _knows_weave(values: Values) -> bool:
    return {"feedback_type", "payload"} <= values.keys() or bool(_call_feedback(values))


def _call_feedback(values: Values) -> list[Values]:
    summary = object_of(object_of(values.get("summary")).get("weave"))
    return objects_of(summary.get("feedback")) if "op_name" in values else []


def _weave(record: Record) -> Iterator[Opinion]:
    """One feedback, or those of a call (`include_feedback`); the call that its reference names is a span."""
    nested = _call_feedback(record.values)
    for number, one in enumerate(nested):
        yield from _feedback(one, f"{record.place} feedback[{number}]", as_words(record.values.get("id")))
    if not nested:
        yield from _feedback(record.values, record.place, "")


def _feedback(values: Values, place: str, call: str) -> Iterator[Opinion]:
    kind, payload = as_words(values.get("feedback_type")), object_of(values.get("payload"))
    _, is_call, named = as_words(values.get("weave_ref")).rpartition("/call/")
    who = next((name for key in ("creator", "wb_username", "wb_user_id") if (name := as_words(values.get(key)))), "")
    base = Opinion(place=place, span_ids=ids_of(named if is_call else call), author=who or "weave")
    if not base.span_ids:
        yield replace(base, fault="the feedback names no call")
    elif kind.startswith(_WEAVE_HUMAN):
        yield _weave_value(base, kind.removeprefix(_WEAVE_HUMAN), payload.get("value"))
    elif kind.startswith(_WEAVE_SCORER) or kind == "ActionScore":
        yield from _weave_output(replace(base, is_machine=True, author="weave"), kind, payload)
    elif kind.startswith("wandb.reaction"):
        emoji = as_words(payload.get("emoji")) or as_words(payload.get("alias"))
        yield replace(base, name="reaction", label=emoji or None)
    elif kind.startswith("wandb.note"):
        yield replace(base, set_aside="a note without a score")
    else:
        yield from _weave_output(base, kind, {"output": dict(payload)})


def _weave_output(base: Opinion, kind: str, payload: Values) -> Iterator[Opinion]:
    """What a scorer gave: one value, or an object of values by name."""
    name = next((kind.removeprefix(start) for start in _WEAVE_SCORER[:1] if kind.startswith(start)), None)
    name = name or as_words(payload.get("name")) or kind
    output = next((payload[key] for key in ("output", "results", "value") if payload.get(key) is not None), None)
    inner = object_of(output)
    reason = as_words(inner.get("reason", inner.get("explanation")))
    values = {key: one for key, one in inner.items() if isinstance(one, bool | int | float)}
    for key, one in values.items():
        own = name if len(values) == 1 else f"{name}.{key}"
        yield replace(_weave_value(base, own, one), comment=reason)
    if not values:
        yield _weave_value(base, name, output)


def _weave_value(base: Opinion, name: str, value: Json) -> Opinion:
    is_label = isinstance(value, str | list | dict)
    return replace(
        base, name=name, value=None if is_label else value_of(value), label=first_choice(value) if is_label else None
    )


# Braintrust, Humanloop, Labelbox --------------------------------------------------------------------------------


def _knows_braintrust(values: Values) -> bool:
    return "root_span_id" in values and "span_id" in values and "scores" in values


def _braintrust(record: Record) -> Iterator[Opinion]:
    """The scores of a span; who gave one only its audit trail tells."""
    values = record.values
    span, trace = as_words(values.get("span_id")), as_words(values.get("root_span_id"))
    for name, value in object_of(values.get("scores")).items():
        if value is None:
            continue
        yield Opinion(
            place=record.place,
            trace_id=trace or None,
            span_ids=(span,) if span and span != trace else (),
            author=_reviewer(values, name),
            name=name,
            value=value_of(value),
        )


def _reviewer(values: Values, name: str) -> str | None:
    """The e-mail address of who set a score in the interface last; None where the record does not say."""
    for entry in reversed(objects_of(values.get("audit_data"))):
        path = object_of(entry.get("audit_data")).get("path")
        email = as_words(object_of(entry.get("metadata")).get("email"))
        if path == ["scores", name] and email:
            return email
    return None


def _knows_humanloop(values: Values) -> bool:
    return isinstance(values.get("evaluator_logs"), list) or ("judgment" in values and "evaluator" in values)


def _humanloop(record: Record) -> Iterator[Opinion]:
    """The judgments of a log, or one by itself."""
    values = record.values
    nested = objects_of(values.get("evaluator_logs"))
    trace = as_words(values.get("trace_id")) or as_words(values.get("id"))
    for number, one in enumerate(nested):
        yield _judgment({"trace_id": trace, **one}, f"{record.place} evaluator_logs[{number}]")
    if "judgment" in values:
        yield _judgment(values, record.place)


def _judgment(values: Values, place: str) -> Opinion:
    evaluator = object_of(values.get("evaluator"))
    kind = as_words(object_of(evaluator.get("spec")).get("evaluator_type"))
    judgment = values.get("judgment")
    is_label = isinstance(judgment, str | list | dict)
    who = as_words(values.get("user")) or person_in(values.get("created_by"))
    return Opinion(
        place=place,
        trace_id=as_words(values.get("trace_id")) or as_words(values.get("parent_id")) or None,
        author=who or "humanloop" if kind == "human" else f"humanloop {kind}".strip(),
        is_machine=kind != "human",
        name=as_words(evaluator.get("name")) or as_words(evaluator.get("path")).rpartition("/")[2] or None,
        value=None if is_label else value_of(judgment),
        label=first_choice(judgment) if is_label else None,
        comment=as_words(values.get("output_message", values.get("note"))),
        fault=f"the evaluator failed: {error}" if (error := as_words(values.get("error"))) else None,
    )


def person_in(value: Json) -> str:
    """The e-mail address or name in an object of a person, or the text itself."""
    person = object_of(value)
    return (
        as_words(person.get("email_address") or person.get("email") or person.get("name"))
        if person
        else (as_words(value))
    )


def _knows_labelbox(values: Values) -> bool:
    return isinstance(values.get("data_row"), dict) and isinstance(values.get("projects"), dict)


def _labelbox(record: Record) -> Iterator[Opinion]:
    """The classifications of all labels of a data row; its global key or external id is the trace's."""
    row = object_of(record.values.get("data_row"))
    trace = as_words(row.get("global_key")) or as_words(row.get("external_id"))
    for project in object_of(record.values.get("projects")).values():
        for number, label in enumerate(objects_of(object_of(project).get("labels"))):
            base = Opinion(
                place=f"{record.place} labels[{number}]",
                trace_id=trace or None,
                author=as_words(object_of(label.get("label_details")).get("created_by")) or "labelbox",
            )
            annotations = object_of(label.get("annotations"))
            yield from (_classified(base, one) for one in objects_of(annotations.get("classifications")))
            yield from (
                replace(
                    base, kind="error", category=as_words(one.get("name")), label_id=as_words(one.get("feature_id"))
                )
                for one in objects_of(annotations.get("objects"))
            )


def _classified(base: Opinion, values: Values) -> Opinion:
    radio = object_of(values.get("radio_answer"))
    several = [as_words(one.get("name")) for one in objects_of(values.get("checklist_answers"))]
    words = as_words(radio.get("name")) or ", ".join(several)
    text = object_of(values.get("text_answer")).get("content", values.get("number_answer"))
    return replace(
        base,
        name=as_words(values.get("name")) or None,
        value=None if words else value_of(text),
        label=words or None,
    )


# Prodigy, doccano -----------------------------------------------------------------------------------------------


def _knows_prodigy(values: Values) -> bool:
    return "answer" in values and bool({"_annotator_id", "_session_id", "_view_id", "_task_hash"} & values.keys())


def _prodigy(record: Record) -> Iterator[Opinion]:
    """An answer: the choice of options, the word on one label, or marked stretches of the text."""
    values = record.values
    base = replace(
        trace_and_spans({**object_of(values.get("meta")), **values}, by_id=False),
        place=record.place,
        author=as_words(values.get("_annotator_id")) or as_words(values.get("_session_id")) or "prodigy",
        comment=as_words(values.get("comment", values.get("notes"))),
    )
    answer, label, chosen = as_words(values.get("answer")), as_words(values.get("label")), values.get("accept")
    name = as_words(object_of(values.get("meta")).get("dimension", values.get("dimension")))
    if answer == "ignore":
        yield replace(base, set_aside="ignored")
    elif answer == "reject" and not label:
        yield replace(base, set_aside="rejected")
    elif isinstance(chosen, list):
        words = first_choice([as_words(one) for one in chosen])
        yield replace(base, name=name or None, label=words, value=None, fault=None if words else "no option is chosen")
    elif label:
        yield replace(base, name=label, value=answer == "accept")
    else:
        yield from _stretches(base, values, objects_of(values.get("spans")), ("start", "end"))


def _knows_doccano(values: Values) -> bool:
    listed = isinstance(values.get("label"), list) or isinstance(values.get("labels"), list)
    is_span = any({"start_offset", "end_offset", "label"} <= one.keys() for one in objects_of(values.get("entities")))
    is_text = isinstance(values.get("text", values.get("data")), str)
    return is_text and (listed or is_span or isinstance(values.get("entities"), list))


def _doccano(record: Record) -> Iterator[Opinion]:
    """An example: its categories, or its marked stretches; the file is one annotator's, which it does not name."""
    values = record.values
    about = {key: item for key, item in values.items() if key not in {"label", "labels", "text", "data", "id"}}
    base = replace(
        trace_and_spans({**object_of(values.get("meta")), **about}, by_id=False),
        place=record.place,
        author=next((who for key in ("annotator", "username", "user") if (who := as_words(values.get(key)))), None),
        comment="\n".join(filter(None, map(_doccano_comment, _listed(values.get("Comments", values.get("comments")))))),
    )
    labels = _listed(values.get("label", values.get("labels")))
    marks = [_triple(one) for one in labels if isinstance(one, list) and len(one) == 3]
    marks += objects_of(values.get("entities"))
    if marks:
        yield from _stretches(base, values, marks, ("start_offset", "end_offset"))
    elif labels:
        yield replace(base, name=as_words(values.get("dimension")) or None, label=first_choice(labels))
    else:
        yield replace(base, set_aside="without a label")


def _doccano_comment(value: Json) -> str:
    return as_words(object_of(value).get("text")) if isinstance(value, dict) else as_words(value)


def _triple(value: list[Json]) -> Values:
    start, end, label = value
    return {"start_offset": start, "end_offset": end, "label": label}


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _stretches(base: Opinion, values: Values, marks: list[Values], ends: tuple[str, str]) -> Iterator[Opinion]:
    """An error for each marked stretch of the text, with its words as evidence."""
    for number, mark in enumerate(marks):
        yield replace(
            base,
            place=f"{base.place} {number}",
            kind="error",
            category=as_words(mark.get("label")) or None,
            evidence=_stretch(values.get("text", values.get("data")), mark.get(ends[0]), mark.get(ends[1])),
        )
    if not marks:
        yield replace(base, set_aside="without a label")


def _stretch(text: Json, start: Json, end: Json) -> str:
    """The words between two places of a text; none where one of the three is not given."""
    return text[start:end] if isinstance(text, str) and isinstance(start, int) and isinstance(end, int) else ""


# Arize, LangWatch -----------------------------------------------------------------------------------------------

_ARIZE = re.compile(r"(annotation|eval)\.(.+)\.(label|score)")


def _knows_arize(values: Values) -> bool:
    return any(_ARIZE.fullmatch(key) for key in values)


def _arize(record: Record) -> Iterator[Opinion]:
    """The annotations of a row of spans, and what models say of it: columns `annotation.NAME.score` and the like."""
    values = record.values
    names = dict.fromkeys(match.group(1, 2) for key in values if (match := _ARIZE.fullmatch(key)))
    base = replace(trace_and_spans(values, by_id=False), place=record.place)
    for kind, name in names:
        own = f"{kind}.{name}"
        score, label = values.get(f"{own}.score"), as_words(values.get(f"{own}.label"))
        if not label and not as_words(score):
            continue
        is_machine, who = kind == "eval", as_words(values.get(f"{own}.updated_by"))
        notes = values.get(f"{own}.explanation", values.get(f"{own}.text", values.get("annotation.notes")))
        yield replace(
            base, author="arize" if is_machine else who or "arize", is_machine=is_machine, name=name,
            value=value_of(score), label=label or None, comment=as_words(notes),
        )  # fmt: skip


def _knows_langwatch(values: Values) -> bool:
    return "traceId" in values and not {"isThumbsUp", "scoreOptions"}.isdisjoint(values)


def _langwatch(record: Record) -> Iterator[Opinion]:
    """An annotation of a trace: its scores by name, and a thumb up or down."""
    values = record.values
    people = (object_of(values.get("user")), values)
    names = (as_words(one.get(key)) for one in people for key in ("name", "email", "userId"))
    who = next(filter(None, names), "")
    base = Opinion(
        place=record.place, trace_id=as_words(values.get("traceId")) or None, author=who or "langwatch",
        comment=as_words(values.get("comment")),
    )  # fmt: skip
    scores = object_of(values.get("scoreOptions"))
    for name, one in scores.items():
        given = object_of(one).get("value", one)
        value = value_of(given)
        is_label = not isinstance(value, (bool, int, float))
        reason = as_words(object_of(one).get("reason")) or base.comment
        yield replace(
            base, name=name, value=None if is_label else value, label=first_choice(given) if is_label else None,
            comment=reason,
        )  # fmt: skip
    if values.get("isThumbsUp") is not None:
        yield replace(base, name="thumbs up", value=value_of(values["isThumbsUp"]))
    elif not scores:
        yield replace(base, set_aside="a comment without a score")


ANNOTATION_FORMS: tuple[Form, ...] = (
    Form("opik", _knows_opik, _opik),
    Form("weave", _knows_weave, _weave),
    Form("braintrust", _knows_braintrust, _braintrust),
    Form("humanloop", _knows_humanloop, _humanloop),
    Form("labelbox", _knows_labelbox, _labelbox),
    Form("prodigy", _knows_prodigy, _prodigy),
    Form("doccano", _knows_doccano, _doccano),
    Form("arize", _knows_arize, _arize),
    Form("langwatch", _knows_langwatch, _langwatch),
)
"""Tools for people's reviews, the more telling keys first."""
