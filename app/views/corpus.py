"""The corpus that samples are drawn from: what the checks found in it, down to a trace, and its error rates."""

from __future__ import annotations

import os

import pandas as pd
import streamlit as st

from tracejury.app import listings
from tracejury.app.components import layout
from tracejury.app.components.data_table import data_table
from tracejury.app.components.estimate_text import counted, plain
from tracejury.app.session import must, workspace
from tracejury.ingest.corpus.layout import open_corpus
from tracejury.ingest.corpus.reading import read_trace
from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import IngestError, Trace
from tracejury.judging.corpus.counting import FACETS
from tracejury.judging.corpus.rates import CorpusRates, corpus_rates, newest_sample, sampled_url
from tracejury.judging.corpus.summary import facet_table, findings_of, totals, version
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.store.revisions import Revision

ADDRESS = "TRACEJURY_CORPUS"
TTL_S = 60  # seconds that counts of a corpus are shown again before its file of counts is asked for
LISTED = ["trace_id", "dimension", "check_name", "impact", "description", "evidence", "agent", "model", "tool"]
SHOWN = 100_000  # characters of a trace


def page() -> None:
    must("researcher")
    layout.heading("Corpus")
    url = address()
    if url is None:
        st.info(f"No corpus is chosen. Try: set {ADDRESS} to its address, or `tracejury corpus sample URL`.")
        return
    try:
        overview(url)
        rates_card(url)
        findings_card(url)
    except IngestError as error:
        st.error(plain(f"{error.reason}. Try: {error.remedy}"))


def address() -> str | None:
    """The corpus of TRACEJURY_CORPUS, else of the newest sample; a person at the browser names none."""
    with read_transaction(workspace().engine) as connection:
        return os.environ.get(ADDRESS) or sampled_url(connection)


def overview(url: str) -> None:
    counts = _totals(url)
    names = {"traces": "Traces", "spans": "Spans", "judged": "Judged traces", "with_findings": "Traces with findings",
             "findings": "Findings", "rejected": "Rejected inputs"}  # fmt: skip
    st.caption(plain(url))
    with st.container(horizontal=True, key="corpus-totals"):
        for key, label in names.items():
            st.metric(label, f"{counts[key]:,}")


def rates_card(url: str) -> None:
    """Error rates of the corpus from the newest sample, where there is one."""
    with st.container(border=True):
        layout.title(
            "Error rates", "Share of all traces with an error: by the checks on all traces, by people on a sample."
        )
        with read_transaction(workspace().engine) as connection:
            key = newest_sample(connection)
            if key is None or sampled_url(connection) != url:
                st.info("No sample of this corpus is in the workspace. Try: `tracejury corpus sample URL`.")
                return
        try:
            rates = _rates(listings.place(), listings.now_revision(), key, url, _version(url))
        except IngestError as error:
            st.warning(plain(f"No error rates: {error.reason}. Try: {error.remedy}"))
            return
        st.caption(plain(rates.basis()))
        if rates.table.empty:
            st.info("Nobody has submitted a trace of the sample, so its error rates are unknown.")
        else:
            data_table(rates.table, key="corpus-rates")


def findings_card(url: str) -> None:
    """Findings by a facet; a value's findings; a finding's trace, read from the corpus when it is chosen."""
    with st.container(border=True):
        layout.title("Findings of the checks", "Findings are counted at the first span that they cite.")
        by = st.segmented_control("By", FACETS, default="agent", required=True, key="corpus_by", bind="query-params")
        table = _facet(url, by)
        place = data_table(table, key=f"corpus-{by}", is_chosen=True)
        if place is None:
            st.caption("Select a row to list its findings.")
            return
        value, count = str(table[by].iloc[place]), int(table["findings"].iloc[place])
        findings = not_hidden(findings_of(url, by, value))
        layout.title(f"{len(findings):,} of {counted(count, 'finding')} of {plain(value)}")
        chosen = data_table(findings[LISTED], key=f"corpus-findings-{by}-{place}", is_chosen=True)
        if chosen is not None:
            show_trace(_trace(url, str(findings["trace_id"].iloc[chosen]), str(findings["source"].iloc[chosen])))


def not_hidden(findings: pd.DataFrame) -> pd.DataFrame:
    """The findings without those on traces that this person labels blind; says how many are hidden."""
    own = findings["trace_id"].isin(listings.blind_to_me())
    if own.any():
        st.info(f"Hidden: {counted(int(own.sum()), 'finding')} on traces that you are labelling blind.")
    return findings[~own].reset_index(drop=True)


def show_trace(trace: Trace) -> None:
    """The judges' text of a trace, its beginning where it is long."""
    layout.title(f"Trace {plain(trace.trace_id)}")
    text = render_trace(trace).text
    st.code(text[:SHOWN], language=None, wrap_lines=True, height=480)
    if len(text) > SHOWN:
        st.caption(f"The first {SHOWN:,} of {len(text):,} characters. The sample in a workspace holds whole traces.")


@st.cache_resource(show_spinner="Estimating", max_entries=4)
def _rates(place: str, now: Revision, key: int, url: str, version: str) -> CorpusRates:
    """The rates of a sample, of one state of the labels and one of the corpus. Shared between sessions."""
    with read_transaction(workspace().engine) as connection:
        return corpus_rates(connection, key)


@st.cache_data(ttl=TTL_S, max_entries=4, show_spinner=False)
def _version(url: str) -> str:
    return version(url)


@st.cache_data(ttl=TTL_S, max_entries=4, show_spinner="Counting")
def _totals(url: str) -> dict[str, int]:
    return totals(url)


@st.cache_data(ttl=TTL_S, max_entries=16, show_spinner="Counting")
def _facet(url: str, by: str) -> pd.DataFrame:
    return facet_table(url, by)  # type: ignore[arg-type]


def _trace(url: str, trace_id: str, source: str) -> Trace:
    return read_trace(open_corpus(url), trace_id, source=source)


page()
