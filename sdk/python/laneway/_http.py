"""Requests to the service: JSON in, JSON out, a kept connection for each thread, refusals as exceptions."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from typing import Any, Dict, Mapping, Optional
from urllib.parse import urlsplit

Json = Dict[str, Any]


class ApiError(Exception):
    """The service refused. `code` is a stable word (`problem+json`)."""

    def __init__(self, status: int, code: str, detail: str, hint: Optional[str] = None) -> None:
        super().__init__(detail if hint is None else f"{detail} ({hint})")
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint

    @property
    def is_passing(self) -> bool:
        """The same request may succeed later."""
        return self.status >= 500 or self.status == 429


class Unreachable(Exception):
    """The service did not answer. Whether it did what was asked is not known."""


class Transport:
    def __init__(self, url: str, token: str, context: Optional[ssl.SSLContext] = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"{url!r} is no address of a service; write http://HOST:PORT")
        self._is_tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._is_tls else 80)
        self._prefix = parts.path.rstrip("/")
        self._token = token
        self._context = context
        self._mine = threading.local()
        #: Somebody was there: who answered once comes back after a restart, who never did may be a wrong address.
        self.has_answered = False

    def request(
        self,
        method: str,
        path: str,
        body: Optional[Mapping[str, Any]] = None,
        *,
        timeout: float = 30.0,
        headers: Optional[Mapping[str, str]] = None,
    ) -> Json:
        """Every request of this package may be said twice, so one whose kept connection had gone is."""
        sent = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **(headers or {})}
        data = None
        if body is not None:
            data = json.dumps(body, allow_nan=False).encode()
            sent["Content-Type"] = "application/json"
        for is_last in (False, True):
            connection, is_kept = self._connection(timeout)
            try:
                connection.request(method, self._prefix + path, body=data, headers=sent)
                response = connection.getresponse()
                text = response.read()
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if self._mine.__dict__.pop("interrupted", False):
                    raise Unreachable("it was interrupted") from error
                if is_kept and not is_last and not isinstance(error, socket.timeout):
                    continue
                raise Unreachable(f"{method} {path}: {error or type(error).__name__}") from error
            self.has_answered = True
            if response.will_close:
                self.close()
            return _read(response.status, text)
        raise AssertionError("the second try returns or raises")

    def close(self) -> None:
        """Ends the connection of this thread."""
        connection = getattr(self._mine, "connection", None)
        if connection is not None:
            connection.close()
        self._mine.connection = None

    def interrupter(self) -> "Interrupter":
        """For another thread, to end the request that this one waits for."""
        return Interrupter(self._mine.__dict__)

    def _connection(self, timeout: float) -> "tuple[http.client.HTTPConnection, bool]":
        kept: Optional[http.client.HTTPConnection] = getattr(self._mine, "connection", None)
        if kept is not None and kept.sock is not None:
            kept.timeout = timeout
            kept.sock.settimeout(timeout)
            return kept, True
        made: http.client.HTTPConnection
        if self._is_tls:
            made = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        self._mine.connection = made
        return made, False


class Interrupter:
    def __init__(self, slots: Dict[str, Any]) -> None:
        self._slots = slots

    def __call__(self) -> None:
        self._slots["interrupted"] = True
        connection = self._slots.get("connection")
        sock = getattr(connection, "sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It has ended by itself.


def _read(status: int, text: bytes) -> Json:
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        value = {}
    if 200 <= status < 300:
        return value if isinstance(value, dict) else {}
    problem = value if isinstance(value, dict) else {}
    detail = str(problem.get("detail") or f"the service answered {status}")
    hint = problem.get("hint")
    raise ApiError(status, str(problem.get("code", "unknown")), detail, None if hint is None else str(hint))
