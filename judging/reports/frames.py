"""From the store to the frames of agreement: which reference, which judges, which matches count."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass, fields, replace
from functools import cached_property

import pandas as pd
from sqlalchemy import Connection, select

from tracejury.ingest.store import schema
from tracejury.ingest.store.one_of import is_one_of
from tracejury.judging.adjudication.majority_labels import majority_labels, majority_matches
from tracejury.judging.agreement.costs import COSTS
from tracejury.judging.agreement.frames import Missing, among
from tracejury.judging.agreement.majority import MAJORITY, VOTES
from tracejury.judging.labels.submissions import submissions
from tracejury.judging.matching.tolerance import localized_within
from tracejury.judging.records import ANSWERED_STATES, CELL_STATES, DIMENSIONS, SLICED_BY
from tracejury.judging.reports import arm_frames
from tracejury.judging.reports.columns import Columns, MadeOf, load_columns, newest_in_place
from tracejury.judging.reports.filter_options import most_first, reference_annotators
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.same_traces import Overlap, compared, overlap_of, shared_cells
from tracejury.judging.reports.trace_slices import error_slices_of, guideline_slices
from tracejury.judging.store.judge_models import VERSION_MARK, VERSION_SHOWN
from tracejury.judging.store.people import gold_names
from tracejury.judging.store.revisions import Revision
from tracejury.judging.store.revisions import revision as revision

FINAL = CELL_STATES
PEOPLE = "people"


@dataclass(frozen=True, kw_only=True)
class Frames:
    """The inputs of `judging.agreement`, and who was compared. Columns as its `frames` module says.

    `votes` are those that a majority was found by; empty where one person's labels or the adjudicated gold count.
    """

    reference: str | None
    error_pairs: pd.DataFrame
    score_pairs: pd.DataFrame
    ratings: pd.DataFrame
    matched: pd.DataFrame
    """trace_id, error_id, finding_id, judge_model, dimension, split of each caught error and its finding."""
    findings: pd.DataFrame
    rationales: pd.DataFrame
    judged: pd.DataFrame
    """trace_id, dimension, judge_model, split of every cell that was answered, findings or not."""
    repeats: pd.DataFrame
    unit_labels: pd.DataFrame
    periods: pd.DataFrame
    """trace_id, by (guideline, week), period: under which version and in which ISO week its labels were submitted."""
    slices: pd.DataFrame
    """trace_id, by, slice, error_id: to which slices traces and errors belong, of the kinds that the filters name."""
    costs: pd.DataFrame
    """trace_id, judge_model, split, cost_usd, tokens: what all judges of a judge model took on a compared trace."""
    rule_rates: pd.DataFrame
    """`match_rates.RULE_RATES`: of the workspace's own labelled pairs, no row where none were scored."""
    trail_reference: pd.DataFrame
    trail_predictions: pd.DataFrame
    trail_traces: pd.DataFrame
    trail_scores: pd.DataFrame
    votes: pd.DataFrame
    jury_votes: pd.DataFrame
    incomplete: pd.DataFrame
    """trace_id, error_id, annotator, lacks: errors that can neither be caught nor missed, and are in no estimate."""
    own_error_pairs: pd.DataFrame
    """`error_pairs` of each judge on its own traces; another frame only where `overlap` is applied."""
    overlap: Overlap
    made_of: MadeOf


def load_frames(connection: Connection, filters: Filters) -> Frames:
    """All frames of a filters; empty ones keep their columns."""
    return frames_of(connection, load_columns(connection), filters)


def frames_of(connection: Connection, columns: Columns, filters: Filters) -> Frames:
    """All frames of a filters, from columns that were read at the revision this connection sees."""
    late = LazyFrames(connection, columns, filters)
    every = {name: getattr(late, name) for name in FRAME_NAMES}
    about = {name: getattr(late, name) for name in _ABOUT}
    return Frames(**about, **every)


_ABOUT = ("reference", "incomplete", "matched", "made_of", "overlap", "own_error_pairs")
"""What is no input of a table."""
FRAME_NAMES = tuple(each.name for each in fields(Frames) if each.name not in _ABOUT)


class LazyFrames:
    """`Frames` of which each is made when it is first asked for: few estimates need them all.

    Everything comes from the columns; what only the database holds is read at once, at their revision.
    """

    def __init__(self, connection: Connection, columns: Columns, filters: Filters) -> None:
        self.columns, self.filters = columns, filters
        labels = _reference_labels(connection, columns, filters, self._done, self._scores)
        decided = localized_within(connection, labels.decided, labels.labelled, filters.tolerance)
        self._reference_labels = replace(labels, decided=decided)
        self.reference, self.votes = self._reference_labels.reference, self._reference_labels.votes
        self.jury_votes = arm_frames.jury_votes(connection, self._now)
        self.made_of, self.rule_rates = columns.made_of, columns.rule_rates
        self.trail_scores = arm_frames.trail_scores(connection, self._seen, self._reference_labels.people)

    @property
    def reviewed(self) -> Set[str]:
        """Return the traces that the reference reviewed: on them no label is no error."""
        return self._reference_labels.reviewed

    @property
    def labelled_errors(self) -> pd.DataFrame:
        """Return the errors of the reference, incomplete ones too: trace_id, dimensions (perhaps empty) and more."""
        return self._reference_labels.labelled

    @cached_property
    def _cells(self) -> pd.DataFrame:
        return _cells(self.columns, self.filters)

    @cached_property
    def _now(self) -> pd.DataFrame:
        return self._cells[self._cells["repeat"] == self.filters.repeat]

    @cached_property
    def _done(self) -> pd.DataFrame:
        return _done(self.columns, self.filters)

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return _scores(self.columns, self.filters, self._done)

    @staticmethod
    def _reporting(cells: pd.DataFrame) -> pd.DataFrame:
        """Cells of judges that were asked for errors: an evaluator that only scores misses none."""
        return cells[cells["reports_errors"].astype(bool)]

    @cached_property
    def _seen(self) -> pd.DataFrame:
        return self._now[among(self._now["trace_id"], self._reference_labels.reviewed)]

    @cached_property
    def overlap(self) -> Overlap:
        """How far judges answered the same traces."""
        cells, filters = self._reporting(self._seen), self.filters
        return overlap_of(cells, _scoring(self._seen), filters.missing, is_wanted=filters.same_traces)

    @cached_property
    def _compared(self) -> pd.DataFrame:
        """Cells of reviewed traces, of judges that report errors those on shared traces, where that is wanted."""
        return self._on_shared(self.overlap, self.filters.missing)

    def _on_shared(self, overlap: Overlap, missing: Missing) -> pd.DataFrame:
        if not overlap.is_applied:
            return self._seen
        return _those(self._seen, shared_cells(self._reporting(self._seen), missing, all_models=True))

    def _same_scored(self, cells: pd.DataFrame, missing: Missing) -> pd.DataFrame:
        """Cells of which those of judges that score are on the traces that all judges of the dimension scored."""
        is_wanted = self.filters.same_traces
        return _those(cells, shared_cells(_scoring(cells), missing, all_models=False)) if is_wanted else cells

    @cached_property
    def own_error_pairs(self) -> pd.DataFrame:
        """`error_pairs` of each judge on its own traces: of these, two sides share more than all judges do."""
        return self._pairs_of(self._reporting(self._seen))

    @cached_property
    def error_pairs(self) -> pd.DataFrame:
        if not self.overlap.is_applied:
            return self.own_error_pairs
        return self._pairs_of(self._reporting(self._compared))

    def _pairs_of(self, cells: pd.DataFrame) -> pd.DataFrame:
        own = self._reference_labels
        return _error_pairs(cells, own.errors, own.decided, self.columns.matched, self.filters)

    @cached_property
    def score_pairs(self) -> pd.DataFrame:
        return _score_pairs(
            self._same_scored(self._seen, self.filters.missing), self._reference_labels.scores, self.filters
        )

    @cached_property
    def ratings(self) -> pd.DataFrame:
        cells = self._same_scored(self._cells, "drop")
        return _ratings(cells, self._scores, self.filters, self.columns.golds)

    @cached_property
    def matched(self) -> pd.DataFrame:
        return _matched(self._reporting(self._compared), self._reference_labels.decided, self.filters)

    @cached_property
    def findings(self) -> pd.DataFrame:
        pairs = self.error_pairs
        waiting = pairs.loc[pairs["state"] == "not_matched", ["trace_id", "dimension", "judge_model"]]
        return _findings(self.columns.findings, self._compared, self._reference_labels.decided, waiting, self.filters)

    @cached_property
    def rationales(self) -> pd.DataFrame:
        return _rationales(self._same_scored(self._cells, "drop"), self.columns.rationales)

    @cached_property
    def judged(self) -> pd.DataFrame:
        return _judged(self._reporting(self._compared), self.filters)

    @cached_property
    def repeats(self) -> pd.DataFrame:
        rows = self.columns.repeats
        return rows[_may_count(rows["unit"], self.columns, self.filters)].reset_index(drop=True)

    @cached_property
    def unit_labels(self) -> pd.DataFrame:
        own, cells = self._reference_labels, self._reporting(self._now)
        labels = arm_frames.unit_labels(cells, self.columns.findings, own.errors, own.reviewed)
        chances = self.columns.chances
        return labels if chances is None else labels.assign(inclusion=labels["unit"].map(chances).astype("float64"))

    @cached_property
    def periods(self) -> pd.DataFrame:
        return _periods(self._reference_labels.people.merge(self.columns.submitted, on=["annotator", "trace_id"]))

    @cached_property
    def slices(self) -> pd.DataFrame:
        parts = [
            self.columns.trace_slices,
            error_slices_of(self._reference_labels.errors, self.columns.error_spans),
            guideline_slices(self.periods),
        ]
        table = pd.concat(parts, ignore_index=True)
        return table[table["by"].isin(self.filters.slices or SLICED_BY)].reset_index(drop=True)

    @cached_property
    def costs(self) -> pd.DataFrame:
        cells = self._reporting(self._compared)
        rows = _spent(compared(cells.assign(state=_states(cells)), self.overlap))
        return rows.assign(split=_splits(rows["trace_id"], self.filters))[[*COSTS, "tokens", "split"]]

    @property
    def costs_of_repeats(self) -> pd.DataFrame:
        """Return trace_id, judge_model, repeat, cost_usd, tokens of every repeat, of all judges and traces."""
        return _spent(self._cells)

    @cached_property
    def incomplete(self) -> pd.DataFrame:
        return _incomplete(self._reference_labels.labelled)

    @cached_property
    def trail_reference(self) -> pd.DataFrame:
        return arm_frames.trail_reference(self._reference_labels.labelled)

    @cached_property
    def _asked(self) -> pd.DataFrame:
        """Cells likewise, of TRAIL's measures: a failure is an empty answer there."""
        cells = self._reporting(self._seen)
        overlap = overlap_of(cells, cells.head(0), "disagree", is_wanted=self.filters.same_traces)
        return self._on_shared(overlap, "disagree")

    @cached_property
    def trail_predictions(self) -> pd.DataFrame:
        return arm_frames.trail_predictions(self.columns.predictions, self._asked)

    @cached_property
    def trail_traces(self) -> pd.DataFrame:
        return arm_frames.trail_traces(self._asked)


@dataclass(frozen=True, kw_only=True)
class _ReferenceLabels:
    """What judges are compared with; `people` (annotator, trace_id) gave it, on these traces."""

    reference: str | None
    reviewed: Set[str]
    labelled: pd.DataFrame
    scores: pd.DataFrame
    decided: pd.DataFrame
    people: pd.DataFrame
    votes: pd.DataFrame

    @property
    def errors(self) -> pd.DataFrame:
        """Those that can be caught or missed."""
        return self.labelled[_is_complete(self.labelled)]


def _reference_labels(
    connection: Connection, columns: Columns, filters: Filters, done: pd.DataFrame, scores: pd.DataFrame
) -> _ReferenceLabels:
    if filters.reference == MAJORITY:
        return _majority(connection, columns, filters, done, scores)
    people = most_first(columns.submitted, set(columns.present))
    reference = chosen_reference(people, columns.golds, filters.reference)
    own = done[done["annotator"] == reference]
    reviewed = set(own["trace_id"])
    labelled = _labelled(columns, filters, reference, reviewed)
    decided = _counted(columns.decisions, filters)
    return _ReferenceLabels(
        reference=reference,
        reviewed=reviewed,
        labelled=labelled,
        scores=scores[scores["annotator"] == reference],
        decided=decided[among(decided["label_id"], labelled.loc[_is_complete(labelled), "label_id"])],
        people=own,
        votes=pd.DataFrame(columns=list(VOTES)),
    )


def _majority(
    connection: Connection, columns: Columns, filters: Filters, done: pd.DataFrame, scores: pd.DataFrame
) -> _ReferenceLabels:
    """Most people's word on the traces that two or more submitted."""
    people = done[~done["annotator"].isin(list(columns.golds))]
    people = people[_may_count(people["trace_id"], columns, filters)]
    people = people[people.groupby("trace_id")["annotator"].transform("nunique") > 1]
    rows = _everyones(columns, filters)
    rows = rows.merge(people, on=["annotator", "trace_id"])
    majority = majority_labels(connection, done=people, rows=rows, scores=scores, blind_only=filters.blind_only)
    decided = columns.decisions
    is_confirmed_only = filters.matches == "confirmed"
    matches = majority_matches(connection, decided, majority.seen, confirmed_only=is_confirmed_only)
    complete = majority.errors.loc[_is_complete(majority.errors), "label_id"]
    return _ReferenceLabels(
        reference=MAJORITY,
        reviewed=set(people["trace_id"]),
        labelled=majority.errors,
        scores=majority.scores,
        decided=matches[among(matches["label_id"], complete)],
        people=people,
        votes=majority.votes,
    )


def default_reference(connection: Connection) -> str | None:
    """The adjudicated gold where there is any, else the person who reviewed most traces."""
    return _usual(reference_annotators(connection), gold_names(connection))


def with_person(connection: Connection, filters: Filters) -> Filters:
    """The filters with the person or gold named that it means; that of a majority stays as it is.

    Raises `ValueError` where nothing was adjudicated, or nobody submitted anything.
    """
    if filters.reference == MAJORITY:
        return filters
    reference = chosen_reference(reference_annotators(connection), gold_names(connection), filters.reference)
    if reference is None:
        raise ValueError("no submitted review is in this workspace: there is nobody to compare a side with")
    return replace(filters, reference=reference)


def chosen_reference(people: pd.DataFrame, golds: Collection[str], reference: str | None) -> str | None:
    """Name the annotator (or the gold) that `reference` means among `reference_annotators`.

    Raises `ValueError` where the adjudicated gold is asked for and nothing was adjudicated.
    """
    is_gold = people["annotator"].isin(list(golds))
    match reference:
        case None:
            return _usual(people, golds)
        case "single":
            return _usual(people[~is_gold], golds)
        case "adjudicated":
            if not is_gold.any():
                raise ValueError("nothing is adjudicated in this workspace. Try: close a trace on the Adjudicate page")
            return _usual(people[is_gold], golds)
        case name:
            return name


def _usual(people: pd.DataFrame, golds: Collection[str]) -> str | None:
    gold = next((str(name) for name in people["annotator"] if name in golds), None)
    if gold is not None:
        return gold
    return None if people.empty else str(people["annotator"].iloc[0])


def weight(now: Revision) -> int:
    """How much a revision holds: error labels and scores (every revision of them) and finished judgements."""
    _, labels, scores, *_, judgements, _ = now
    return labels + scores + judgements


def submitted(
    connection: Connection, guideline: str | None = None, *, blind_only: bool = False
) -> set[tuple[str, str]]:
    """(annotator, trace) of the newest reviews that are submitted, of all or of one guideline version."""
    reviews = submissions(connection)
    reviews = reviews[reviews["blind"]] if blind_only else reviews
    of_guideline = reviews if guideline is None else reviews[reviews["guideline_version"] == guideline]
    return set(of_guideline[["annotator", "trace_id"]].itertuples(index=False, name=None))


def chosen_traces(connection: Connection, filters: Filters) -> set[str]:
    """The traces of the workspace that may count: of the formats and the split."""
    trace = schema.trace.c
    conditions = [is_one_of(trace.format, filters.trace_formats)] if filters.trace_formats else []
    every = set(connection.scalars(select(trace.trace_id).where(*conditions)))
    return every if filters.split is None else every & set(filters.split.by_trace)


def split_of(trace_id: str, filters: Filters) -> str:
    """The part of the split that the trace is in, `all` without a split."""
    return "all" if filters.split is None else filters.split.by_trace.get(trace_id, "all")


def _done(columns: Columns, filters: Filters) -> pd.DataFrame:
    """annotator, trace_id of the reviews that count."""
    reviews = columns.submitted
    of_guideline = reviews if filters.guideline is None else reviews[reviews["guideline_version"] == filters.guideline]
    of_guideline = of_guideline[of_guideline["blind"]] if filters.blind_only else of_guideline
    return of_guideline[["annotator", "trace_id"]]


def _may_count(trace_ids: pd.Series, columns: Columns, filters: Filters) -> pd.Series:
    """Whether the trace is of a chosen format and of the split."""
    in_split = _in_split(trace_ids, filters)
    if not filters.trace_formats:
        return in_split
    return in_split & among(trace_ids, {t for t, form in columns.present.items() if form in filters.trace_formats})


def _labelled(columns: Columns, filters: Filters, reference: str | None, reviewed: Set[str]) -> pd.DataFrame:
    """The person's errors on traces they submitted: the newest revision, at the place of the first."""
    rows = columns.errors
    rows = rows[(rows["annotator"] == reference) & among(rows["trace_id"], reviewed)]
    return _current(rows, columns, filters)


def _everyones(columns: Columns, filters: Filters) -> pd.DataFrame:
    """Everybody's errors likewise."""
    return _current(columns.errors, columns, filters)


def _current(rows: pd.DataFrame, columns: Columns, filters: Filters) -> pd.DataFrame:
    if filters.blind_only:
        rows = rows[rows["phase"] == "blind"]
    newest = newest_in_place(rows, ["label_id"])
    return newest[~newest["deleted"].astype(bool) & _may_count(newest["trace_id"], columns, filters)]


def _is_complete(errors: pd.DataFrame) -> pd.Series:
    """Only an error with a span, a dimension and an impact can be caught or missed."""
    return _has(errors).all(axis=1)


def _has(errors: pd.DataFrame) -> pd.DataFrame:
    """What of all that it needs each error has."""
    return pd.DataFrame(
        {
            "span": errors["span_ids"].map(len) > 0,
            "dimension": errors["dimensions"] != "",
            "impact": errors["impact"].notna(),
        },
        index=errors.index,
        dtype=bool,
    )


def _periods(reviews: pd.DataFrame) -> pd.DataFrame:
    """The periods of each trace by its newest review; a review without a guideline is of the version `none`."""
    newest = reviews.sort_values("created_at", kind="stable").drop_duplicates("trace_id", keep="last")
    when = pd.to_datetime(newest["created_at"].astype("Int64"), unit="us", utc=True).dt.strftime("%G-W%V")
    each = {"guideline": newest["guideline_version"].fillna("none"), "week": when}
    parts = [newest[["trace_id"]].assign(by=by, period=period.astype(str)) for by, period in each.items()]
    return pd.concat(parts, ignore_index=True)


def _incomplete(errors: pd.DataFrame) -> pd.DataFrame:
    """trace_id, error_id, annotator, lacks."""
    has = _has(errors)
    left = errors.loc[~has.all(axis=1), ["trace_id", "label_id", "annotator"]].rename(columns={"label_id": "error_id"})
    lacks = [", ".join(name for name in has.columns if not has.at[row, name]) for row in left.index]
    return left.assign(lacks=pd.Series(lacks, index=left.index, dtype="object")).reset_index(drop=True)


def _scores(columns: Columns, filters: Filters, done: pd.DataFrame) -> pd.DataFrame:
    """What people scored on traces they submitted; of a blind and a revealed score the one written last."""
    rows = columns.scores
    if filters.blind_only:
        rows = rows[rows["phase"] == "blind"]
    rows = rows[_may_count(rows["trace_id"], columns, filters)]
    newest = newest_in_place(rows, ["annotator", "trace_id", "dimension"])
    return newest.merge(done, on=["annotator", "trace_id"], how="inner")


def _in_split(trace_ids: pd.Series, filters: Filters) -> pd.Series:
    if filters.split is None:
        return pd.Series(data=True, index=trace_ids.index, dtype=bool)
    return among(trace_ids, list(filters.split.by_trace))


_CELL_COLUMNS = [
    "cell_key", "trace_id", "dimension", "judge_model", "repeat", "state", "score", "reports_errors", "cost_usd",
    "tokens",
]  # fmt: skip


def _cells(columns: Columns, filters: Filters) -> pd.DataFrame:
    """Finished cells of traces in the workspace: of each judge_model, dimension, trace and repeat the newest one.

    Where a judge model's judge exists in several versions, the one of `current_versions` counts, or those chosen.
    """
    cells = columns.cells
    cells = cells[among(cells["judge_version"], filters.versions or columns.current)]
    if filters.judge_models:
        cells = cells[cells["judge_model"].isin(filters.judge_models)]
    if filters.versions:
        cells = cells.assign(
            judge_model=cells["judge_model"] + VERSION_MARK + cells["judge_version"].str.slice(0, VERSION_SHOWN)
        )
    if filters.dimensions:
        cells = cells[cells["dimension"].isin(filters.dimensions)]
    cells = cells[_may_count(cells["trace_id"], columns, filters)]
    keys = ["judge_model", "dimension", "trace_id", "repeat"]
    newest = cells.drop_duplicates(keys, keep="last")
    return newest.sort_values(keys)[_CELL_COLUMNS]  # in one order, whichever answer came first


def _splits(trace_ids: pd.Series, filters: Filters) -> pd.Series:
    if filters.split is None:
        return pd.Series("all", index=trace_ids.index)
    return trace_ids.map(dict(filters.split.by_trace)).fillna("all")


def _states(cells: pd.DataFrame) -> pd.Series:
    """scored, not_applicable (answered without a score, whatever the reason), or failed."""
    answered = cells["state"].where(cells["state"] == "scored", "not_applicable")
    return answered.where(cells["state"].isin(ANSWERED_STATES), "failed")


_ERROR_PAIR = [
    "trace_id", "error_id", "impact", "split", "judge_model", "dimension", "relevant", "state", "caught", "localized",
    "match_status", "match_confidence", "dimensions", "annotator",
]  # fmt: skip


def _error_pairs(
    cells: pd.DataFrame, errors: pd.DataFrame, decided: pd.DataFrame, seen: pd.DataFrame, filters: Filters
) -> pd.DataFrame:
    """Every error under every cell of its trace; `seen` says up to which label matches were proposed."""
    own = errors[["trace_id", "label_id", "impact", "dimensions", "annotator", "row_key"]]
    pairs = cells.merge(own, on="trace_id", how="inner")
    pairs = pairs.merge(
        decided[["cell_key", "label_id", "status", "localized", "confidence"]], on=["cell_key", "label_id"], how="left"
    )
    pairs = pairs.merge(seen, on=["cell_key", "annotator"], how="left")
    # a judge that found its rubric not applicable has said something: it reported no error
    answered = _states(pairs) != "failed"
    matched = pairs["status"].notna()
    localized = matched & pairs["localized"].eq(True)  # undefined is not localized
    is_known = answered & (matched | (pairs["row_key"] <= pairs["last_label"]))
    state = pd.Series("scored", index=pairs.index).mask(~is_known, "not_matched").where(answered, "failed")
    names = {"label_id": "error_id", "status": "match_status", "confidence": "match_confidence"}
    return pairs.rename(columns=names).assign(
        split=_splits(pairs["trace_id"], filters),
        relevant=_relevant(pairs),
        state=state,
        caught=_where(matched, is_known),
        localized=_where(localized, is_known),
    )[_ERROR_PAIR]


def _spent(cells: pd.DataFrame) -> pd.DataFrame:
    """What the cells of a judge model on a trace took together in each repeat; NaN where one has nothing recorded."""
    each = cells.groupby(["trace_id", "judge_model", "repeat"], sort=False)[["cost_usd", "tokens"]]
    return each.sum().where(each.count().eq(each.size(), axis=0)).reset_index()


def _matched(cells: pd.DataFrame, decided: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """The pairs that stand for errors of these cells."""
    about = cells.loc[_states(cells) != "failed", ["cell_key", "trace_id", "judge_model", "dimension"]]
    pairs = decided[["cell_key", "label_id", "finding_id"]].merge(about, on="cell_key", how="inner")
    pairs = pairs.rename(columns={"label_id": "error_id"}).assign(split=_splits(pairs["trace_id"], filters))
    return pairs[["trace_id", "error_id", "finding_id", "judge_model", "dimension", "split"]]


def _where(values: pd.Series, answered: pd.Series) -> pd.Series:
    """What was said, None where nothing was."""
    return values if answered.all() else values.astype("object").where(answered, None)


def _relevant(pairs: pd.DataFrame) -> pd.Series:
    """Whether the error is of the judge's dimension; every error is a whole suite's."""
    relevant = pd.Series(data=True, index=pairs.index, dtype=bool)
    for dimension in DIMENSIONS:
        of_dimension = pairs["dimension"] == dimension
        named = pairs.loc[of_dimension, "dimensions"]
        # no dimension's name is part of another's
        relevant[of_dimension] = named.astype("str").str.contains(dimension, regex=False).astype(bool)
    return relevant


def _counted(decided: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    statuses = ["confirmed"] if filters.matches == "confirmed" else ["confirmed", "proposed"]
    return decided[decided["status"].isin(statuses)].drop_duplicates(["cell_key", "label_id"], keep="last")


def _score_pairs(cells: pd.DataFrame, scores: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    own = scores[["trace_id", "dimension", "value", "not_applicable"]]
    pairs = cells.merge(own, on=["trace_id", "dimension"], how="inner")
    state = _states(pairs)
    is_out = pairs["not_applicable"].astype(bool) & (state == "scored")
    state = state.mask(is_out, "not_applicable")
    return pd.DataFrame(
        {
            "trace_id": pairs["trace_id"],
            "dimension": pairs["dimension"],
            "judge_model": pairs["judge_model"],
            "split": _splits(pairs["trace_id"], filters),
            "reference_score": pairs["value"],
            "judge_score": pairs["score"].where(state == "scored"),
            "state": state,
        }
    )


def _ratings(cells: pd.DataFrame, scores: pd.DataFrame, filters: Filters, golds: Collection[str]) -> pd.DataFrame:
    """Every score of judges (rater: the repeat, kind `judge`) and of people (kind `annotator`, judge_model `people`).

    The adjudicated gold is of kind `gold`: made from what people said, it would raise every ceiling.
    """
    judged = _scoring(cells)
    judges = pd.DataFrame(
        {
            "unit": judged["trace_id"],
            "trace_id": judged["trace_id"],
            "rater": "repeat " + judged["repeat"].astype(str),
            "rater_kind": "judge",
            "value": judged["score"].where(judged["state"] == "scored"),
            "dimension": judged["dimension"],
            "judge_model": judged["judge_model"],
            "split": _splits(judged["trace_id"], filters),
            "state": _states(judged),
        }
    )
    is_out = scores["not_applicable"].astype(bool)
    people = pd.DataFrame(
        {
            "unit": scores["trace_id"],
            "trace_id": scores["trace_id"],
            "rater": scores["annotator"],
            "rater_kind": scores["annotator"].isin(list(golds)).map({True: "gold", False: "annotator"}),
            "value": scores["value"].where(~is_out),
            "dimension": scores["dimension"],
            "judge_model": PEOPLE,
            "split": _splits(scores["trace_id"], filters),
            "state": pd.Series("scored", index=scores.index).mask(is_out, "not_applicable"),
        }
    )
    return pd.concat([judges, people], ignore_index=True)


def _those(cells: pd.DataFrame, is_counted: pd.Series) -> pd.DataFrame:
    """The cells without those, of whom something is said, that do not count."""
    return cells[is_counted.reindex(cells.index, fill_value=True)]


def _scoring(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells of judges that score: those of the dimensions, and others of which any cell has a score."""
    judge = [cells["judge_model"], cells["dimension"]]
    has_score = cells["score"].notna().groupby(judge).transform("any").astype(bool)
    return cells[cells["dimension"].isin(DIMENSIONS) | has_score]


def _findings(
    findings: pd.DataFrame, cells: pd.DataFrame, decided: pd.DataFrame, waiting: pd.DataFrame, filters: Filters
) -> pd.DataFrame:
    """One row per finding of the current cells; `matched`: with an error of the reference compared.

    `waiting` names the judgements that no matching has compared with all of these errors.
    """
    about = cells[["cell_key", "trace_id", "dimension", "judge_model"]]
    own_findings = findings.merge(about, on="cell_key", how="inner")
    matched = own_findings["finding_id"].isin(decided["finding_id"])
    columns = [
        "trace_id", "dimension", "judge_model", "split", "finding_id", "matched", "review", "citations",
        "invalid_citations", "match_status", "state",
    ]  # fmt: skip
    best = decided.sort_values("status", kind="stable").drop_duplicates("finding_id")  # confirmed before proposed
    place = pd.MultiIndex.from_frame(own_findings[["trace_id", "dimension", "judge_model"]].astype("object"))
    is_open = place.isin(pd.MultiIndex.from_frame(waiting.astype("object")))
    return own_findings.assign(
        match_status=own_findings["finding_id"].map(best.set_index("finding_id")["status"]),
        state=pd.Series("scored", index=own_findings.index).mask(is_open, "not_matched"),
        split=_splits(own_findings["trace_id"], filters),
        matched=matched,
        review=own_findings["review"].mask(matched),
    )[columns]


def _judged(cells: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    answered = cells.loc[_states(cells) != "failed", ["trace_id", "dimension", "judge_model"]]
    return answered.assign(split=_splits(answered["trace_id"], filters)).reset_index(drop=True)


def _rationales(cells: pd.DataFrame, rationales: pd.DataFrame) -> pd.DataFrame:
    written = cells.merge(rationales, on="cell_key", how="inner")
    renamed = written.rename(columns={"rationale": "text"})
    return renamed[["dimension", "judge_model", "trace_id", "repeat", "text"]]
