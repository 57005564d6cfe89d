"""A worker: takes tasks of its queues and runs their handlers, each in a thread.

    run()      registers, waits for signals, drains and leaves
      └ Session   one life, with its threads (_session.py); when it is over and nobody stops, another one begins
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import ssl
import threading
from typing import Any, Awaitable, Callable, Dict, Mapping, Optional, TypeVar, Union

from ._http import ApiError, Transport, Unreachable
from ._session import Places, Session
from .task import Task

Output = Optional[Dict[str, Any]]
Handler = Callable[[Task], Union[Output, Awaitable[Output]]]
H = TypeVar("H", bound=Handler)

#: Between two tries to reach a service, at first and at most.
_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

_log = logging.getLogger("laneway")


class Worker:
    """`slots` tasks at once. `labels` are what `runs_on` of a step asks for. `shutdown_grace` is how long tasks may go on
    after the first signal; then they are canceled, and after the service's `kill_grace` left to somebody else."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        name: Optional[str] = None,
        slots: int = 4,
        labels: Optional[Mapping[str, str]] = None,
        shutdown_grace: float = 10.0,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        if slots < 1:
            raise ValueError("slots is at least 1")
        self._transport = Transport(url, token, ssl_context)
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.slots = slots
        self.labels = dict(labels or {})
        self.shutdown_grace = shutdown_grace
        self._handlers: Dict[str, Handler] = {}
        self._places = Places(slots)
        self._stop = threading.Event()
        self._kill = threading.Event()

    def handler(self, queue: str) -> Callable[[H], H]:
        """Makes a function the handler of a queue: it is given the task and returns its output, a dict or None. What it
        raises fails the task. It may be `async`."""

        def register(function: H) -> H:
            if queue in self._handlers:
                raise ValueError(f"the queue {queue!r} has a handler already")
            self._handlers[queue] = function
            return function

        return register

    def stop(self) -> None:
        """Takes nothing more, lets what runs end, and leaves. The second time at once."""
        if self._stop.is_set():
            self._kill.set()
        self._stop.set()

    def run(self, *, handle_signals: bool = True) -> None:
        """Works until `stop` is called or, in the main thread, until SIGTERM or SIGINT. Raises `ApiError` if the token is not
        good."""
        if not self._handlers:
            raise RuntimeError("the worker has no handler; make one with @worker.handler(QUEUE)")
        is_main = threading.current_thread() is threading.main_thread()
        before = {}
        if handle_signals and is_main:

            def told(*_: object) -> None:
                # On a thread of its own: this one may be in the middle of a wait, whose lock a handler must not want.
                threading.Thread(target=self.stop, daemon=True).start()

            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number, told)
        try:
            while not self._stop.is_set():
                session = self._register()
                if session is None:
                    return
                session.work(self._stop, self._kill, self.shutdown_grace)
        finally:
            self._transport.close()
            for number, old in before.items():
                signal.signal(number, old)

    def _register(self) -> Optional[Session]:
        """A session, as soon as there is a service. None if nobody wants it any more."""
        asked = {
            "name": self.name,
            "queues": sorted(self._handlers),
            "slots": self.slots,
            "labels": self.labels,
            "pid": os.getpid(),
        }
        pause = _PAUSE
        while not self._stop.is_set():
            try:
                given = self._transport.request("POST", "/v1/workers", asked)
                _log.info("registered as %s, session %s", self.name, given["session"])
                return Session(self._transport, given, self._handlers, self._places)
            except (Unreachable, ApiError) as error:
                if isinstance(error, ApiError) and not error.is_passing:
                    raise
                _log.warning("the service cannot be used yet: %s", error)
            self._stop.wait(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        return None
