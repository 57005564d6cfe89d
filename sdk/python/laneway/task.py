"""A task as its handler sees it."""

from __future__ import annotations

import threading
import traceback
from typing import Any, Awaitable, Callable, Dict, List, Optional, Tuple

from .effect import EffectId, Effects

#: What a log call may hold at most before it is cut into several.
PIECE = 200_000

#: Characters of a task that wait to be sent. Of what comes beyond that only the number is kept, until half of it is sent.
MAX_UNSENT = 1_000_000


class Canceled(Exception):
    """Raised by `Task.check`: the handler is to end now."""


class Task:
    """What is to be done, and what its handler may say of it."""

    def __init__(
        self,
        given: Dict[str, Any],
        on_change: Callable[[], None],
        say: Optional[Callable[[str, Dict[str, Any]], Dict[str, Any]]] = None,
    ) -> None:
        self.run: str = given["run"]
        self.workflow: str = given["workflow"]
        self.step: str = given["step"]
        #: From 1 on. With `run` and `step` it names this attempt and no other: a key for effects elsewhere.
        self.attempt: int = given["attempt"]
        #: Fencing token of a step with a `lock`: larger than the token of every earlier holder.
        self.fence: Optional[int] = given.get("fence")
        self.queue: str = given["queue"]
        #: `with` of the step, evaluated.
        self.input: Dict[str, Any] = given["input"]
        #: The parameters of the run.
        self.params: Dict[str, Any] = given["params"]
        timeout = given.get("timeout_ms")
        #: In seconds; None for as long as it likes.
        self.timeout: Optional[float] = None if timeout is None else timeout / 1000
        self._claim: str = given["claim"]
        self._effects = Effects(self._claim, say)
        self._on_change = on_change
        self._stop = threading.Event()
        self._reason: Optional[str] = None
        self._on_stop: Optional[Callable[[], None]] = None
        self._lock = threading.Lock()
        self._unsent: List[Tuple[str, str]] = []
        self._unsent_size = 0
        #: Characters that were printed faster than they could be sent, and are told of when there is room again.
        self._dropped = 0

    def __repr__(self) -> str:
        return f"<Task {self.step} attempt {self.attempt} of run {self.run}>"

    @property
    def canceled(self) -> bool:
        """Whether it is to end: canceled, out of time, lost, or the worker stops. What it returns is dropped then."""
        return self._stop.is_set()

    @property
    def cancel_reason(self) -> Optional[str]:
        """canceled, aborted, run_timeout, timeout, lost or stopping."""
        return self._reason

    def wait(self, seconds: float) -> bool:
        """Sleeps, and wakes at once when it is to end; says whether it is."""
        return self._stop.wait(seconds)

    def check(self) -> None:
        """Raises `Canceled` when it is to end."""
        if self._stop.is_set():
            raise Canceled(self._reason or "canceled")

    def effect(self, name: str, function: Callable[[EffectId], Any], *, key: str = "", on_unknown: str = "fail") -> Any:
        """Does something to the world, once: calls `function`, unless an attempt of this step has done so before; then what it
        returned comes back. It is given a word that is the same in every attempt, for services that take an idempotency key; in a
        step with a `lock`, `fence` of that word is the fencing token. What it returns is recorded as JSON, up to 256 KiB; what it raises means that it did not happen, and the next one who asks runs
        it again. Where it was started and nobody knows whether it happened, `EffectUnknown` is raised, or with `on_unknown="retry"`
        it runs again."""
        return self._effects.run(name, key, on_unknown, function)

    async def effect_async(
        self, name: str, function: Callable[[EffectId], Awaitable[Any]], *, key: str = "", on_unknown: str = "fail"
    ) -> Any:
        """The same for handlers that are `async`."""
        return await self._effects.run_async(name, key, on_unknown, function)

    def log(self, *words: object, stream: str = "stdout") -> None:
        """Adds a line to its log, as `print` would."""
        self.write(" ".join(str(word) for word in words) + "\n", stream)

    def write(self, text: str, stream: str = "stdout") -> None:
        """Adds text as it is. What is printed faster than it can be sent is left out, and the log says how much that was."""
        if stream not in ("stdout", "stderr"):
            raise ValueError("stream is stdout or stderr")
        with self._lock:
            for start in range(0, len(text), PIECE):
                self._keep(stream, text[start : start + PIECE])
        self._on_change()

    def _keep(self, stream: str, piece: str) -> None:
        most = MAX_UNSENT // 2 if self._dropped else MAX_UNSENT
        if self._unsent_size + len(piece) > most:
            self._dropped += len(piece)
            return
        self._tell_dropped()
        self._unsent.append((stream, piece))
        self._unsent_size += len(piece)

    def _tell_dropped(self) -> None:
        if self._dropped:
            marker = f"[laneway: {self._dropped} characters are not kept: they were printed faster than they could be sent]\n"
            self._unsent.append(("stderr", marker))
            self._unsent_size += len(marker)
            self._dropped = 0

    # ---- for the worker ----------------------------------------------------------------------------

    def _sent(self, count: int) -> None:
        """So many pieces were kept by the service, or nobody wants them any more."""
        with self._lock:
            self._unsent_size -= sum(len(text) for _, text in self._unsent[:count])
            del self._unsent[:count]

    def _close_log(self) -> None:
        """Nothing more is printed that anybody waits for."""
        with self._lock:
            self._tell_dropped()

    def _cancel(self, reason: str) -> None:
        with self._lock:
            # A claim that is lost stays so, whatever else is asked.
            if self._reason is None or reason == "lost":
                self._reason = reason
            on_stop = self._on_stop
        self._stop.set()
        if on_stop is not None:
            on_stop()

    def _call_on_stop(self, on_stop: Optional[Callable[[], None]]) -> None:
        with self._lock:
            self._on_stop = on_stop
        if on_stop is not None and self._stop.is_set():
            on_stop()

    def _log_traceback(self, error: BaseException) -> None:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.write(text, "stderr")
