"""Connections on which nothing moves end: a request whose head does not come, an answer that is not taken."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from tracejury.app.config import config
from tracejury.app.guard import SLOWEST


class Connection(H11Protocol):
    """HTTP as uvicorn speaks it, which waits for ever where it waits for the other side.

    The head of a request must be whole `config().timeout_s` seconds after the connection was made or the head began;
    what is sent must be taken (`Metered`). A body is timed by `guard.Guard`, which knows when it is waited for.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        metered = Metered(transport, patience_s=config().timeout_s, call_later=self.loop.call_later)
        super().connection_made(cast("asyncio.Transport", metered))
        self._limit()

    def data_received(self, data: bytes) -> None:
        """Take the next bytes; a whole head ends the wait for it."""
        super().data_received(data)
        self._limit()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _limit(self) -> None:
        if not self._is_waiting() or self.transport.is_closing():
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(config().timeout_s, self._end)

    def _is_waiting(self) -> bool:
        """Whether only bytes can come: of a head, or of a body whose request has been answered already."""
        if self.timeout_keep_alive_task is not None:  # uvicorn's own limit between two requests
            return False
        is_answered = self.cycle is not None and self.cycle.response_complete
        return self.conn.their_state is h11.IDLE or (is_answered and self.conn.their_state is h11.SEND_BODY)

    def _end(self) -> None:
        self._late = None
        self.transport.close()

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class Metered:
    """A transport that ends its connection when the other side takes too little of what waits to be sent.

    In each `patience_s` seconds it must take `patience_s * SLOWEST` bytes, or all that waited when they began. It also
    serves the WebSocket that a connection turns into.
    """

    def __init__(self, transport: asyncio.Transport, *, patience_s: float, call_later: Callable[..., object]) -> None:
        self._transport, self._patience_s, self._call_later = transport, patience_s, call_later
        self._written = 0
        self._is_timed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send, or keep until the other side takes it."""
        self._written += len(data)
        self._transport.write(data)
        if not self._is_timed:
            self._look_again()

    def _look_again(self) -> None:
        waiting = self._transport.get_write_buffer_size()
        self._is_timed = waiting > 0
        if waiting:
            due = self._taken() + min(waiting, int(self._patience_s * SLOWEST))
            self._call_later(self._patience_s, self._check, due)

    def _check(self, due: int) -> None:
        if self._taken() < due:
            self._end()
        else:
            self._look_again()

    def _end(self) -> None:
        """End the connection and have the system drop what it still holds of it, and say so to the other side."""
        with suppress(OSError):
            self._transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _taken(self) -> int:
        return self._written - self._transport.get_write_buffer_size()
