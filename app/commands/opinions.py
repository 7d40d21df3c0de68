"""The commands about opinions: labels and verdicts in and out, matches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import click
from sqlalchemy import Connection, Engine, select

from tracejury.app.commands.output import (
    STOPPED_BY_LIMIT,
    counted,
    name_rejected,
    opened,
    print_json,
    progress_bar,
    say,
)
from tracejury.ingest.labels import Annotation, FailedReply, JudgeReply, read_annotations, read_replies
from tracejury.ingest.opinion import FormName, Opinion
from tracejury.ingest.readers import open_inputs
from tracejury.ingest.score_files import RecordFile, read_records
from tracejury.ingest.store import load, read_transaction, schema, write_transaction
from tracejury.ingest.trace import IngestError, Rejected
from tracejury.judging.judges.trace_text import TraceText, render_trace
from tracejury.judging.labels import trail_answers as trail
from tracejury.judging.labels.comments import to_csv as comments_csv
from tracejury.judging.labels.exchange import Labels, is_own_form, read_tracejury, to_csv, to_tracejury, to_trail
from tracejury.judging.labels.label_store import reviews
from tracejury.judging.labels.put_labels import Put
from tracejury.judging.labels.put_labels import import_labels as store_labels
from tracejury.judging.labels.scales import ScaleError, read_scale
from tracejury.judging.labels.score_export import to_label_studio, to_langfuse
from tracejury.judging.labels.score_import import (
    Imported,
    ImportOptions,
    ScoreImportError,
    import_opinions,
    opinions_of,
    span_ids_of,
)
from tracejury.judging.labels.trace_index import trace_index
from tracejury.judging.matching.rule_matches import propose_matches
from tracejury.judging.records import Failure, Verdict
from tracejury.judging.runs.verdict_imports import import_outcomes
from tracejury.judging.store.judge_models import SCORES_ONLY
from tracejury.judging.store.locks import PEOPLE
from tracejury.judging.store.people import ensure_annotator

COMMAND = "command"


def import_labels(
    files: Sequence[Path],
    home: Path | None,
    *,
    form: str,
    as_json: bool,
    columns: Sequence[str] = (),
    scales: Sequence[str] = (),
    annotator: str | None = None,
    dimension: str | None = None,
    is_reviewed: bool = False,
) -> int:
    """Exit code 0, or 1 when something was rejected."""
    workspace = opened(home, create=True)
    options = _import_options(form, columns, scales, annotator, dimension, is_reviewed)
    imported = (
        Imported(labels=_trail_labels(files, options.annotator))
        if form == "trail"
        else _imported(workspace.engine, files, options, form)
    )
    labels = imported.labels
    with write_transaction(workspace.engine, PEOPLE) as connection:
        for name in sorted(labels.annotators):
            ensure_annotator(connection, name)
    new, unchanged = _stored(workspace.engine, labels)
    labels.warnings += unchanged
    with read_transaction(workspace.engine) as connection:
        present = set(connection.scalars(select(schema.trace.c.trace_id)))
        labels.warnings += _dead_locations(connection, labels, present)
        labels.warnings += _without_review(connection, labels)
    verdicts = _store_verdicts(workspace.engine, imported)
    traces = {verdict.trace_id for some in imported.verdicts.values() for verdict in some}
    traces |= {review.trace_id for review in labels.reviews} | {trace_id for _, trace_id in labels.places}
    waiting = traces - present
    name_rejected(labels.rejected)
    if as_json:
        print_json(
            {
                "errors": len(labels.errors),
                "scores": len(labels.scores),
                "reviews": len(labels.reviews),
                "new": new,
                "verdicts": verdicts,
                "own_dimensions": sorted(imported.own_dimensions),
                "scales": [scale.in_words for scale in options.scales],
                "annotators": labels.annotators,
                "waiting_traces": len(waiting),
                "warnings": labels.warnings,
                "rejected": [asdict(one) for one in labels.rejected],
            }
        )
    else:
        for warning in labels.warnings:
            say(f"warning {warning}")
        click.echo(
            f"{counted(len(labels.errors), 'error')}, {counted(len(labels.scores), 'score')} "
            f"on {counted(len(traces), 'trace')} ({sum(new.values()):,} new rows)"
        )
        for name, count in verdicts.items():
            click.echo(f"{counted(count, 'verdict')} of {name}, which is not a person")
        for scale in options.scales:
            click.echo(f"scale {scale.name or 'of every name'}: {scale.in_words}")
        if imported.own_dimensions:
            click.echo(f"own dimensions: {', '.join(sorted(imported.own_dimensions))}")
        if waiting:
            wait = "its labels wait and count once it is" if len(waiting) == 1 else "their labels wait until they are"
            say(f"{counted(len(waiting), 'trace')} not in the workspace yet: {wait}")
    return 1 if labels.rejected else 0


def _stored(engine: Engine, labels: Labels) -> Put:
    """Store the labels with a progress line; what is stored is said, too, where the import ends before its end."""
    show, close = progress_bar("storing labels", " traces")
    stored = total = 0

    def note(done: int, of: int) -> None:
        nonlocal stored, total
        stored, total = done, of
        show(done, of)

    try:
        return store_labels(
            engine, errors=labels.errors, scores=labels.scores, reviews=labels.reviews, author=COMMAND, progress=note
        )
    except BaseException:
        say(
            f"The import ended early: the labels of {stored:,} of {counted(total, 'trace')} are stored. Try: run "
            "the same command again; it stores the rest, and nothing twice"
        )
        raise
    finally:
        close()


def _import_options(
    form: str,
    columns: Sequence[str],
    scales: Sequence[str],
    annotator: str | None,
    dimension: str | None,
    is_reviewed: bool,
) -> ImportOptions:
    """The options of an import as they were given. Raises `click.UsageError` for one that cannot be read."""
    if form in {"trail", "tracejury"} and (columns or scales):
        raise click.UsageError(f"--as {form} already defines columns and a scale. Try: leave out --columns and --scale")
    pairs = [pair.partition("=") for option in columns for pair in option.split(",")]
    wrong = next((name for name, equals, column in pairs if not equals or not column.strip()), None)
    if wrong is not None:
        raise click.UsageError(f"--columns takes FIELD=COLUMN, not {wrong!r}. Try: --columns annotator=who,score=stars")
    try:
        read = tuple(read_scale(scale) for scale in scales)
    except ScaleError as error:
        raise click.UsageError(str(error)) from error
    return ImportOptions(
        form=None if form in {"auto", "tracejury", "trail"} else cast("FormName", "plain" if form == "csv" else form),
        columns={name.strip(): column.strip() for name, _, column in pairs},
        scales=read,
        annotator=annotator,
        dimension=dimension,
        is_reviewed=is_reviewed,
    )


def _imported(engine: Engine, files: Sequence[Path], options: ImportOptions, form: str) -> Imported:
    """Labels of files in our own JSON form, and of those of other tools."""
    own, read = Labels(), list[tuple[RecordFile, list[Opinion]]]()
    for name, data in _label_files(files, own.rejected):
        if form == "tracejury" or (form == "auto" and is_own_form(data)):
            if options.annotator is not None:
                raise click.UsageError(f"{name} names the author of each label. Try: leave out --annotator")
            own.extend(read_tracejury(data, name))
            continue
        try:
            file = read_records(data, name)
            read.append((file, opinions_of(file, options)))
        except IngestError as error:
            own.rejected.append(Rejected(file=name, place=error.place, reason=error.reason, remedy=error.remedy))
        except ScoreImportError as error:
            raise click.UsageError(str(error)) from error
    with read_transaction(engine) as connection:
        spans = span_ids_of(opinion for _, opinions in read for opinion in opinions)
        imported = import_opinions(read, options, trace_index(connection, spans))
    own.extend(imported.labels)
    imported.labels = own
    return imported


def _label_files(files: Sequence[Path], rejected: list[Rejected]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each file of labels; what cannot be opened is rejected."""
    for path in files:
        try:
            for name, data in open_inputs(path):
                if isinstance(data, IngestError):
                    rejected.append(Rejected(file=name, place=data.place, reason=data.reason, remedy=data.remedy))
                else:
                    yield name, data
        except IngestError as error:
            rejected.append(Rejected(file=str(path), place=error.place, reason=error.reason, remedy=error.remedy))


def _store_verdicts(engine: Engine, imported: Imported) -> dict[str, int]:
    """Store what evaluators said; returns the number of verdicts by evaluator."""
    for name, verdicts in imported.verdicts.items():
        import_outcomes(engine, verdicts, model=name, author=COMMAND, mode=SCORES_ONLY)
    return {name: len(verdicts) for name, verdicts in imported.verdicts.items()}


def _without_review(connection: Connection, labels: Labels) -> list[str]:
    """A warning where scores or errors stand on traces that their author has not submitted: they do not count yet."""
    done = {(one.annotator, one.trace_id) for one in reviews(connection) if one.status == "submitted"}
    open_work = set(labels.places) - done
    if not open_work:
        return []
    people = sorted({annotator for annotator, _ in open_work})
    return [
        f"{counted(len(open_work), 'trace')} of {', '.join(people)} not submitted: these labels are stored but in "
        "no table yet. Try: --reviewed, if each person finished these traces"
    ]


def _dead_locations(connection: Connection, labels: Labels, present: set[str]) -> list[str]:
    """A warning for each label on a span that its trace, which is here, does not have."""
    span, trace = schema.span, schema.trace
    traces = {label.trace_id for label in labels.errors} & present
    warnings = []
    for trace_id in sorted(traces):
        query = select(span.c.span_id).join(trace, trace.c.trace_key == span.c.trace_key)
        there = set(connection.scalars(query.where(trace.c.trace_id == trace_id)))
        warnings += [
            f"{trace_id}: dead_location: label {label.label_id} names span {span_id}, which is not in this trace"
            for label in labels.errors
            if label.trace_id == trace_id
            for span_id in label.span_ids
            if span_id not in there
        ]
    return warnings


def export_labels(home: Path | None, out: Path, *, form: str, annotators: Sequence[str]) -> int:
    with read_transaction(opened(home).engine) as connection:
        if form == "trail":
            names = annotators or (trail.ANNOTATOR,)
            if len(names) != 1:
                raise click.UsageError("--as trail writes one person's labels: give one --annotator")
            count = to_trail(connection, out, names[0])
            say(f"{counted(count, 'file')} written to {out}")
        elif form == "comments":
            out.write_text(comments_csv(connection, annotators), encoding="utf-8", newline="")
        elif form == "csv":
            out.write_text(to_csv(connection, annotators), encoding="utf-8", newline="")
        elif form == "label-studio":
            out.write_bytes(to_label_studio(connection, annotators))
        elif form == "langfuse":
            out.write_bytes(to_langfuse(connection, annotators))
        else:
            out.write_bytes(to_tracejury(connection, annotators))
    return 0


def import_verdicts(
    files: Sequence[Path], home: Path | None, *, form: str, judge_model: str, as_json: bool, repeat: int | None = None
) -> int:
    """Exit code 0, or 1 when a file could not be tied to a trace or holds no answer that can be read."""
    workspace = opened(home)
    rejected: list[Rejected] = []
    outcomes: list[Verdict | Failure] = []
    show, close = progress_bar("reading", " files")
    replies = list(_replies(files))
    for number, reply in enumerate(replies):
        if isinstance(reply, Rejected):
            rejected.append(reply)
        else:
            text = _reading(workspace.engine, reply.trace_id)
            outcomes.append(trail.to_outcome(reply, model=judge_model, reading=text))
        show(number + 1, len(replies))
    close()
    imported = import_outcomes(workspace.engine, outcomes, model=judge_model, author=COMMAND, repeat=repeat)
    name_rejected(rejected)
    failures = [one for one in outcomes if isinstance(one, Failure)]
    document = {
        "files": len(replies),
        **asdict(imported),
        "states": dict(Counter(outcome.state for outcome in outcomes)),
        "failures": [{"trace_id": one.trace_id, "state": one.state, "reason": one.reason} for one in failures],
        "rejected": [asdict(one) for one in rejected],
    }
    if as_json:
        print_json(document)
    else:
        for one in failures:
            say(f"{one.state.replace('_', ' ')}: the answer on trace {one.trace_id}: {one.reason}")
        summary = (
            f"{len(outcomes) - len(failures)} with {counted(imported.findings, 'finding')}, {len(failures)} failed"
        )
        unresolved = f"{imported.unresolved_citations:,} of {imported.citations:,} citations resolve to no span"
        click.echo(f"{counted(len(outcomes), 'answer')}: {summary}; {unresolved}")
    return 1 if rejected or failures else 0


def export_verdicts(home: Path | None, out: Path) -> int:
    from tracejury.judging.runs.verdict_imports import export_outcomes

    with read_transaction(opened(home).engine) as connection:
        out.write_bytes(export_outcomes(connection))
    return 0


def match_by_model(
    home: Path | None, *, model: str, judge_model: str | None, as_json: bool, withdraw: bool, **options: Any
) -> int:
    """Exit code 0; 1 when a question failed or was not asked; 3 when the budget stopped it."""
    from tracejury.judging.judges.judge import ModelCapabilities
    from tracejury.judging.judges.model import LitellmModel, first_forms, known_prices, read_prices
    from tracejury.judging.matching.llm_matches import propose_with_model, withdraw_proposals
    from tracejury.judging.matching.llm_matching import LlmMatcher

    engine = opened(home).engine
    if withdraw:
        count = withdraw_proposals(engine, model)
        if as_json:
            print_json({"withdrawn": count})
        else:
            click.echo(f"{counted(count, 'proposal')} of {model} withdrawn")
        return 0
    try:
        prices = None if options["price"] is None else read_prices(options["price"])
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if options["budget"] is not None and prices is None and known_prices(model) is None:
        raise click.UsageError(
            f"a budget needs prices, and none are known for {model}: give --price IN,OUT or no budget"
        )
    matcher = LlmMatcher(
        model=model,
        call=LitellmModel(name=model, api_base=options["api_base"], prices=prices),
        capabilities=ModelCapabilities(forms=list(first_forms(model))),
    )
    show, close = progress_bar("asking", " questions")
    proposals = propose_with_model(
        engine,
        matcher,
        judge_model=judge_model,
        concurrency=options["concurrency"],
        budget_usd=options["budget"],
        progress=show,
    )
    close()
    document = {
        **{key: value for key, value in vars(proposals).items() if key != "failures"},
        "failures": [
            {"trace_id": one.trace_id, "rubric": one.rubric, "state": one.state, "reason": one.reason}
            for one in proposals.failures
        ],
    }
    if as_json:
        print_json(document)
    else:
        for failure in proposals.failures:
            say(f"{failure.trace_id} {failure.rubric}: {failure.state}: {failure.reason}")
        if proposals.stopped:
            say(f"stopped: {proposals.stopped}")
        cost = f"${proposals.cost_usd:.4f}" + (
            f" and {proposals.unknown_cost} at unknown prices" if proposals.unknown_cost else ""
        )
        click.echo(
            f"{counted(proposals.matches, 'match')} proposed by {proposals.author} in "
            f"{counted(proposals.answered, 'answer')} ({proposals.new:,} new, {proposals.withdrawn:,} withdrawn); "
            f"{proposals.asked_before:,} asked before, {len(proposals.failures):,} failed; {cost}"
        )
    if proposals.is_out_of_budget:
        return STOPPED_BY_LIMIT
    return 1 if proposals.failures or proposals.stopped else 0


def match(home: Path | None, *, judge_model: str | None, as_json: bool) -> int:
    counts = match_by_rule(opened(home).engine, judge_model=judge_model)
    if as_json:
        print_json(counts)
    else:
        click.echo(match_words(counts))
    return 0


def match_by_rule(engine: Engine, *, judge_model: str | None = None) -> dict[str, int]:
    """`propose_matches` with a progress line."""
    show, close = progress_bar("matching", " traces")
    counts = propose_matches(engine, judge_model=judge_model, progress=show)
    close()
    return counts


def match_words(counts: Mapping[str, int]) -> str:
    """What the rule proposed, in words."""
    return (
        f"{counted(counts['matches'], 'match')} proposed on {counted(counts['traces'], 'trace')} "
        f"({counts['new']:,} new, {counts['withdrawn']:,} withdrawn)"
    )


def _trail_labels(files: Sequence[Path], annotator: str | None) -> Labels:
    annotations: list[Annotation] = []
    rejected: list[Rejected] = []
    for path in files:
        try:
            for item in read_annotations(path):
                if isinstance(item, Rejected):
                    rejected.append(item)
                else:
                    annotations.append(item)
        except IngestError as error:
            rejected.append(Rejected(file=str(path), place=error.place, reason=error.reason, remedy=error.remedy))
    labels = trail.to_labels(annotations, annotator or trail.ANNOTATOR)
    labels.rejected += rejected
    return labels


def _replies(files: Sequence[Path]) -> Iterator[JudgeReply | FailedReply | Rejected]:
    for path in files:
        try:
            yield from read_replies(path)
        except IngestError as error:
            yield Rejected(file=str(path), place=error.place, reason=error.reason, remedy=error.remedy)


def _reading(engine: Engine, trace_id: str) -> TraceText | None:
    with read_transaction(engine) as connection:
        try:
            return render_trace(load(connection, trace_id, with_logs=False))
        except KeyError:
            return None
