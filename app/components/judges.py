"""The metrics of judges as the pages and the snapshot show them: by name, in long form, beside the human ceiling."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pandas as pd

from tracejury.app.components.estimate_text import metric_of, title_of, with_labels
from tracejury.judging.agreement import ceiling, reasons, scores
from tracejury.judging.agreement.error_rates import RATES
from tracejury.judging.agreement.inputs import Inputs
from tracejury.judging.agreement.metric import Metric
from tracejury.judging.records import DIMENSIONS


class JudgeMetric(NamedTuple):
    """A metric that the forest plot can show: its name in the address, its title, and whether of errors or scores."""

    name: str
    title: str
    kind: str

    @property
    def metric(self) -> Metric:
        """Return the record of what is shown."""
        return metric_of(self.name.partition(".")[2])


JUDGE_METRICS = (
    *(
        JudgeMetric(f"{kind}.{rate}", f"{title_of(rate)}, {kind}", kind)
        for kind in ("caught", "localized")
        for rate in RATES
    ),
    *(JudgeMetric(f"scores.{metric}", title_of(metric), "scores") for metric in scores.SCORE_NAMES),
    JudgeMetric("repeats.alpha_interval", "Krippendorff's alpha over repeats, interval", "repeats"),
)


def has_rows(inputs: Inputs, shown: JudgeMetric) -> bool:
    """Whether there is a judge that this metric can be shown of."""
    if shown.kind == "repeats":
        return bool((inputs.consistency["repeats"] > 1).any())
    return not (inputs.score_estimates if shown.kind == "scores" else inputs.error_rates).empty


def alpha_rows(consistency: pd.DataFrame) -> pd.DataFrame:
    """Interval alpha of the judges with repeats: value, low, high and its reason, beside the other columns."""
    repeated = consistency[consistency["repeats"] > 1]
    named = repeated.rename(columns={"alpha_interval": "value", "alpha_low": "low", "alpha_high": "high"})
    return named.assign(reason=reasons.each_of(repeated["reason"], "alpha_interval"))


def metric_rows(inputs: Inputs, shown: JudgeMetric, *, beside_people: bool = True) -> pd.DataFrame:
    """The columns `PLAIN` of one metric, beside what people reach on the same dimension.

    Rates of errors come without the people where `beside_people` is false: theirs may not be computed yet.
    """
    metric = shown.name.partition(".")[2]
    if shown.kind == "repeats":
        table = with_labels(inputs.consistency)
        return alpha_rows(table)[PLAIN]
    if shown.kind == "scores":
        rows = with_labels(inputs.scores_beside_people)
        of_metric = rows["metric"] == metric
    else:
        rates = inputs.error_estimates if beside_people else inputs.rate_estimates.assign(**_NO_CEILING)
        rows = with_labels(rates)
        of_metric = (rows["metric"] == metric) & (rows["kind"] == shown.kind) & (rows["impact"] == "all")
    rows = split_labels(rows[of_metric])
    return rows[[*PLAIN, *CEILING]] if rows["ceiling"].notna().any() else rows[PLAIN]


def beside_people(rows: pd.DataFrame, reached: pd.DataFrame | None) -> pd.DataFrame:
    """Coverage by judge, impact, split and kind beside the recall that people reach: `CEILING` and ceiling_n.

    `reached`: `Inputs.error_ceiling`, None while it is not known. A judge of no dimension, and a whole suite, stand
    beside what people find of each other's errors under whatever dimension.
    """
    on = ["among_people", "impact", "split", "kind"]
    named = rows.assign(among_people=rows["dimension"].where(rows["dimension"].isin(DIMENSIONS), ceiling.ANY))
    if reached is None:
        return rows.assign(**_NO_CEILING, ceiling_n=float("nan"))
    recall = reached[reached["metric"] == "recall"].rename(columns={"dimension": "among_people"})
    return ceiling.beside(named, recall, on).merge(
        recall[[*on, "n"]].rename(columns={"n": "ceiling_n"}), on=on, how="left"
    )


def between_people(reached: pd.DataFrame, dimensions: Collection[str]) -> pd.DataFrame:
    """Precision and recall of people on each other's errors: judge (a dimension, or any), split, kind, precision, ...

    Of these dimensions; any where a judge of none is among them. Of any there is one estimate, which is both.
    """
    keys = {one if one in DIMENSIONS else ceiling.ANY for one in dimensions}
    rows = reached[(reached["impact"] == "all") & (reached["n"] > 0) & reached["dimension"].isin(keys)]
    sides = {
        rate: rows[rows["metric"] == rate].set_index(["dimension", "split", "kind"]) for rate in ("precision", "recall")
    }
    columns = {"value": "", "low": "_low", "high": "_high", "n": "_n"}
    recall = sides["recall"][list(columns)].rename(columns={name: f"recall{end}" for name, end in columns.items()})
    precision = sides["precision"][list(columns)].rename(columns={k: f"precision{end}" for k, end in columns.items()})
    both = recall.join(precision, how="left").reset_index()
    is_any = both["dimension"] == ceiling.ANY
    for end in columns.values():
        both.loc[is_any, f"precision{end}"] = both.loc[is_any, f"recall{end}"]
    return both


PLAIN = ["label", "value", "low", "high", "n", "reason", "judge_model", "dimension", "split"]
CEILING = ["ceiling", "ceiling_low", "ceiling_high"]
_NO_CEILING = dict.fromkeys(CEILING, float("nan"))
PEOPLE = "people (ceiling)"


def _between_people(inputs: Inputs) -> pd.DataFrame:
    return inputs.error_ceiling[inputs.error_ceiling["impact"] == "all"]


def split_labels(rows: pd.DataFrame, *, is_split: bool | None = None) -> pd.DataFrame:
    """Labels with the split where the choice holds several; `is_split`: whether it does, where other rows tell."""
    several = rows["split"].nunique() > 1 if is_split is None else is_split
    return rows.assign(label=rows["label"] + " (" + rows["split"] + ")") if several else rows


TABLE_COLUMNS = (
    *(f"caught.{rate}" for rate in RATES),
    *(f"localized.{rate}" for rate in RATES),
    *(f"scores.{metric}" for metric in scores.SCORE_NAMES),
    "repeats.alpha_interval",
)


def every_metric(inputs: Inputs, *, beside_people: bool = True) -> pd.DataFrame:
    """Every estimate of every judge, one row each: judge_model, dimension, split, metric, value, low, high, n, reason,
    ...

    `beside_people` as in `metric_rows`: whether people's own rates of errors are among them.
    """
    caught = inputs.rate_estimates
    caught = caught[caught["impact"] == "all"].drop(columns="impact")
    between = _between_people(inputs) if beside_people else caught.head(0)
    scored = inputs.people_estimates[inputs.people_estimates["n"] > 0]
    repeated = alpha_rows(inputs.consistency)
    columns = [
        "judge_model",
        "dimension",
        "split",
        "metric",
        "value",
        "low",
        "high",
        "n",
        "failed",
        "not_applicable",
        "reason",
    ]
    parts = [
        caught.assign(metric=caught["kind"] + "." + caught["metric"]),
        inputs.score_estimates.assign(metric="scores." + inputs.score_estimates["metric"]),
        repeated.assign(metric="repeats.alpha_interval"),
        between.assign(
            metric=between["kind"] + "." + between["metric"], judge_model=PEOPLE, failed=0, not_applicable=0
        ),
        scored.assign(metric="scores." + scored["metric"], judge_model=PEOPLE, failed=0, not_applicable=0),
    ]
    every = pd.concat(
        [part[columns] for part in parts if len(part)] or [repeated.assign(metric="")[columns]], ignore_index=True
    )
    return reasons.of_long(every, draws=inputs.draws)
