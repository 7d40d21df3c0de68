"""The documents that the desk reads traces from: each version of a trace once, without the names a queue hides."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Row, select

from tracejury.app.api.packing import json_bytes, packed
from tracejury.app.components.annotator.payload import SPAN_FIELDS, Document, Hidden, document, outline
from tracejury.app.grants import Grant
from tracejury.app.session import workspace
from tracejury.ingest.store import load, read_transaction, schema
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.store import Workspace, tables

LONG_TRACE = 3_000  # spans: a longer trace opens with its outline, texts follow
_KEPT_DOCUMENTS = 8


class Version(NamedTuple):
    """One version of a trace (late spans make a new one) as one person may see it."""

    trace_id: str
    digest: str
    hide: tuple[Hidden, ...]


class Opened:
    """A document with its opening as it is sent: made once, compressed once."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @cached_property
    def opening(self) -> bytes:
        return packed(json_bytes(self.document.opening()))


class Documents:
    """The documents opened last, so that bodies and searches need no second reading of the trace."""

    def __init__(self, space: Callable[[], Workspace]) -> None:
        self._space = space
        self._kept: OrderedDict[Version, Future[Opened]] = OrderedDict()
        self._lock = threading.Lock()
        self._ahead = ThreadPoolExecutor(1, thread_name_prefix="documents")

    def prepare(self, grant: Grant) -> None:
        """Read the granted trace ahead: the page that asks for it is still on its way to the browser."""
        self._ahead.submit(self._prepare, grant)

    def _prepare(self, grant: Grant) -> None:
        with read_transaction(self._space().engine) as connection:
            version, head = _version(connection, grant)
        if head.spans <= LONG_TRACE:  # a longer one opens with its outline, which must not wait
            _ = self._get(version).opening

    def get(self, grant: Grant) -> Document:
        """The document of the granted trace as it is stored now. Raises `KeyError` for an unknown one."""
        with read_transaction(self._space().engine) as connection:
            version, _ = _version(connection, grant)
        return self._get(version).document

    def opening(self, grant: Grant) -> bytes:
        """What the island opens with, as gzipped JSON: what is needed first, or of a long trace its outline."""
        with read_transaction(self._space().engine) as connection:
            version, head = _version(connection, grant)
            if head.spans > LONG_TRACE and not self._is_kept(version):
                return packed(json_bytes(_outline(connection, head, version)))
        return self._get(version).opening

    def whole(self, grant: Grant) -> bytes:
        """The same once a long trace has been read."""
        with read_transaction(self._space().engine) as connection:
            version, _ = _version(connection, grant)
        return self._get(version).opening

    def _get(self, version: Version) -> Opened:
        """Requests that come while a trace is being read wait for that one reading."""
        with self._lock:
            known = self._kept.get(version)
            future: Future[Opened] = known or Future()
            self._kept[version] = future
            self._kept.move_to_end(version)
            while len(self._kept) > _KEPT_DOCUMENTS:
                self._kept.popitem(last=False)
        if known is None:
            self._fill(version, future)
        return future.result()

    def _is_kept(self, version: Version) -> bool:
        with self._lock:
            return version in self._kept and self._kept[version].done()

    def _fill(self, version: Version, future: Future[Opened]) -> None:
        try:
            with read_transaction(self._space().engine) as connection:
                digest = connection.scalar(
                    select(schema.trace.c.digest).where(schema.trace.c.trace_id == version.trace_id)
                )
                trace = load(connection, version.trace_id, with_logs=False)
            future.set_result(Opened(document(trace, render_trace(trace), hide=version.hide, digest=str(digest))))
        except BaseException as error:  # those who wait must hear of it; the next request tries again
            with self._lock:
                self._kept.pop(version, None)
            future.set_exception(error)


def hidden_for(connection: Connection, user: str, trace_id: str, occasion: int = 0) -> tuple[Hidden, ...]:
    """What the queues that hold this trace hide from this person until they have submitted it on this occasion.

    Any queue counts, not only those in which the person has a place: opening a trace past its queue shows no more.
    """
    review = tables.review
    status = connection.scalar(
        select(review.c.status)
        .where(review.c.annotator == user, review.c.trace_id == trace_id, review.c.occasion == occasion)
        .order_by(review.c.row_key.desc())
        .limit(1)
    )
    if status == "submitted":
        return ()
    lists = connection.scalars(
        select(tables.queue.c.hide)
        .join(tables.queue_item, tables.queue_item.c.queue_key == tables.queue.c.queue_key)
        .where(tables.queue_item.c.trace_id == trace_id)
    )
    return tuple(sorted({name for hide in lists for name in orjson.loads(hide)}))


def _version(connection: Connection, grant: Grant) -> tuple[Version, Row[Any]]:
    head = connection.execute(select(schema.trace).where(schema.trace.c.trace_id == grant.subject)).one_or_none()
    if head is None:
        raise KeyError(grant.subject)
    hide = hidden_for(connection, grant.user, grant.subject, grant.occasion)
    return Version(head.trace_id, head.digest, hide), head


def _outline(connection: Connection, head: Row[Any], version: Version) -> Any:
    columns = [schema.span.c[name] for name in SPAN_FIELDS]
    rows = select(*columns).where(schema.span.c.trace_key == head.trace_key).order_by(schema.span.c.seq)
    warnings = orjson.loads(head.warnings)
    spans = map(tuple, connection.execute(rows))
    return outline(head, spans, warnings, hide=version.hide, digest=version.digest)


DOCUMENTS = Documents(workspace)
"""Those of the running app: its routes and its Work page share them."""
