"""One life of a worker, with its threads:

    claimer    asks for work, and hears what is to be stopped and what is lost ──▶ a thread for each task
    heart      renews the lease; one that could not be renewed in time is over
    speaker    says what began and what ended, everything that came together at once
    logger     says what was printed, a piece of each task in turn; the end of a task waits for its own log, and for no other

Whatever is said carries the claim of its task. What the service says is lost is dropped, whatever its handler returns.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Set

from ._http import ApiError, Json, Transport, Unreachable
from .task import Canceled, Task

_log = logging.getLogger("laneway")

#: How long the service waits for something to tell, in seconds, and how long its answer is waited for beyond that.
_WAIT, _PATIENCE = 20, 10.0

#: While all slots are taken nobody waits at the service: the next free slot must not wait for that.
_LOOK = 0.5

#: Between two tries of something that did not come through, at first and at most.
_PAUSE, _LONGEST_PAUSE = 0.05, 2.0

#: What is said at once: ends of tasks, and characters of a log.
_BATCH, _LOG_BATCH = 200, 200_000

#: What is around a piece of a log, and what the service keeps of an output.
_PIECE, _MAX_OUTPUT = 40, 256 * 1024


def _now() -> float:
    """A clock that goes on while the machine sleeps, where there is one: so does the lease."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Places:
    """Handlers that run, of all lives of a worker: one that does not end when it is told to keeps its place."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._taken = 0
        self._lock = threading.Lock()

    def free(self) -> int:
        with self._lock:
            return max(0, self._slots - self._taken)

    def take(self, count: int) -> None:
        with self._lock:
            self._taken += count


class _Running:
    """A task, from its claim until its end was acknowledged."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.begun = time.monotonic()
        self.is_start_said = False
        #: Handler returned, and this is what to say.
        self.result: Optional[Json] = None
        self.has_ended = False
        self.log_offset = 0
        self.is_log_full = False
        self.timer: Optional[threading.Timer] = None

    def can_be_ended(self) -> bool:
        """It is over, and what it printed is kept."""
        return self.result is not None and not self.task._unsent


def _has_printed(one: _Running) -> bool:
    return one.is_start_said and bool(one.task._unsent)


class Session:
    def __init__(
        self, transport: Transport, given: Json, handlers: Mapping[str, Callable[[Task], Any]], places: Places
    ) -> None:
        self._transport = transport
        self._path = f"/v1/workers/{given['session']}"
        self._lease = given["lease_ms"] / 1000
        self._renew_every = given["renew_every_ms"] / 1000
        self._kill_grace = given["kill_grace_ms"] / 1000
        self._handlers = handlers
        self._places = places
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._running: Dict[str, _Running] = {}
        self._tally = {"asks": 0, "claims": 0, "succeeded": 0, "failed": 0, "canceled": 0, "returned": 0, "lost": 0}
        self._renewed = _now()
        #: Nothing new is taken.
        self._is_leaving = False
        #: Nothing that is said counts any more.
        self._is_over = False
        self._error: Optional[BaseException] = None
        self._interrupt_claim: Callable[[], None] = lambda: None

    # ---- life --------------------------------------------------------------------------------------

    def work(self, stop: threading.Event, kill: threading.Event, grace: float) -> None:
        """Until it is over, or somebody wants it to end; then in good order."""
        loops = (self._claim_loop, self._heart_loop, self._speak_loop, self._log_loop)
        threads = [threading.Thread(target=self._guard, args=(loop,), daemon=True) for loop in loops]
        for thread in threads:
            thread.start()
        while not self._is_over and not stop.wait(0.1):
            self._look_at_the_lease()
        if not self._is_over:
            self._drain(kill, grace)
        self._end("stopping")
        for thread in threads:
            thread.join(_PATIENCE)
        if self._error is not None:
            raise self._error

    def _look_at_the_lease(self) -> None:
        """A renewal may hang for longer than the lease is good: nobody waits for it."""
        if not self._is_over and _now() > self._renewed + self._lease - min(5.0, self._lease / 4):
            _log.warning("the lease could not be renewed in time; what runs is dropped")
            self._end("lost")

    def _guard(self, loop: Callable[[], None]) -> None:
        """A thread that cannot go on ends the session, and says why if the worker cannot go on either."""
        try:
            loop()
        except ApiError as error:
            if error.code == "no_such_session":
                _log.warning("the session is over; what it held goes on elsewhere")
            else:
                self._error = error
            self._end("lost")
        except BaseException as error:  # A fault of this package must not hang the worker.
            self._error = error
            self._end("lost")
        finally:
            self._transport.close()

    def _end(self, reason: str) -> None:
        with self._lock:
            self._is_over = True
            running = list(self._running.values())
            self._changed.notify_all()
        for one in running:
            one.task._cancel("lost" if reason == "lost" else reason)
        self._interrupt_claim()

    def _drain(self, kill: threading.Event, grace: float) -> None:
        with self._lock:
            self._is_leaving = True
            self._changed.notify_all()
        self._interrupt_claim()
        self._wait_for_all(kill, grace)
        with self._lock:
            cut = [one for one in self._running.values() if not one.has_ended]
        for one in cut:
            _log.warning("%r is cut short; it goes on elsewhere", one.task)
            one.task._cancel("stopping")
        # Also for what has ended, and whose end is not acknowledged yet.
        self._wait_for_all(kill, self._kill_grace)
        try:
            self._return_unknown()
            self._transport.request("DELETE", self._path, timeout=_PATIENCE)
        except (ApiError, Unreachable) as error:
            _log.warning("the service was not told that this worker leaves: %s", error)

    def _wait_for_all(self, kill: threading.Event, seconds: float) -> None:
        """Until everything has ended and that is acknowledged."""
        until = time.monotonic() + seconds
        with self._lock:
            while self._running and not self._is_over and not kill.is_set():
                left = until - time.monotonic()
                if left <= 0:
                    return
                self._changed.wait(min(left, 0.1))

    def _return_unknown(self) -> None:
        """What was in an answer that never came was never started."""
        held = set(self._say("renew", dict(self._tally))["held"])
        with self._lock:
            unknown = sorted(held - set(self._running))
        if unknown:
            self._say("give_back", {"claims": unknown})

    # ---- claimer -----------------------------------------------------------------------------------

    def _claim_loop(self) -> None:
        self._interrupt_claim = self._transport.interrupter()
        pause = _PAUSE
        while True:
            with self._lock:
                if self._is_over:
                    return
                free = 0 if self._is_leaving else self._places.free()
                asked = {
                    "max": free,
                    "wait": _WAIT if free > 0 else 0,
                    "holding": sorted(self._running),
                    "stopping": sorted(claim for claim, one in self._running.items() if one.task.canceled),
                }
                self._tally["asks"] += 1
            try:
                work = self._say("claim", asked, timeout=_WAIT + _PATIENCE)
                pause = _PAUSE
            except (Unreachable, ApiError) as error:
                if isinstance(error, ApiError) and not error.is_passing:
                    raise
                with self._lock:
                    if not self._is_over and not self._is_leaving:
                        _log.warning("the service cannot be used: %s", error)
                        self._changed.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                continue
            self._hear(work)
            unwanted = self._begin(work["tasks"])
            if unwanted:
                self._insist("give_back", {"claims": unwanted})
                with self._lock:
                    self._tally["returned"] += len(unwanted)
            if free == 0:
                with self._lock:
                    if not self._is_over:
                        self._changed.wait(_LOOK)

    def _hear(self, work: Json) -> None:
        for claim in work["lost"]:
            self._lose(claim)
        for stop in work["stops"]:
            with self._lock:
                one = self._running.get(stop["claim"])
            if one is not None:
                one.task._cancel(stop["reason"])

    def _lose(self, claim: str) -> None:
        with self._lock:
            one = self._running.get(claim)
            # One whose end is under way is told there what became of it.
            if one is None or one.has_ended:
                return
            del self._running[claim]
            self._tally["lost"] += 1
            self._changed.notify_all()
        _log.warning("%r is held no longer; what it returns is dropped", one.task)
        one.task._cancel("lost")

    def _begin(self, tasks: List[Json]) -> List[str]:
        """Starts what there is to do; gives those that nobody here will do any more."""
        unwanted = []
        for given in tasks:
            task = Task(given, self._notify, self._insist_for_task)
            one = _Running(task)
            with self._lock:
                if self._is_leaving or self._is_over:
                    unwanted.append(task._claim)
                    continue
                self._running[task._claim] = one
                self._tally["claims"] += 1
                self._changed.notify_all()
            self._places.take(1)
            if task.timeout is not None:
                one.timer = threading.Timer(task.timeout, task._cancel, args=("timeout",))
                one.timer.daemon = True
                one.timer.start()
            threading.Thread(target=self._run, args=(one,), name=f"laneway {task.step}", daemon=True).start()
        return unwanted

    def _notify(self) -> None:
        with self._lock:
            self._changed.notify_all()

    # ---- a task ------------------------------------------------------------------------------------

    def _run(self, one: _Running) -> None:
        task = one.task
        result: Json
        try:
            output = _call(self._handlers[task.queue], task)
            result = {"status": "succeeded", "output": _checked(output)}
        except Canceled:
            result = {"status": "canceled", "reason": task.cancel_reason}
        except asyncio.CancelledError:
            result = {"status": "canceled", "reason": task.cancel_reason}
        except _BadOutput as error:
            result = {"status": "failed", "reason": "bad_output", "detail": str(error)}
        except BaseException as error:  # Also SystemExit: it ends the task, not the worker.
            task._log_traceback(error)
            words = str(error)
            detail = _sayable(f"{type(error).__name__}: {words}" if words else type(error).__name__)
            result = {"status": "failed", "reason": "error", "detail": detail}
        task._close_log()
        if one.timer is not None:
            one.timer.cancel()
        reason = task.cancel_reason
        if reason == "timeout":
            result = {"status": "failed", "reason": "timeout", "detail": f"ran longer than {task.timeout:g}s"}
        elif reason is not None:
            result = {"status": "canceled"}
        result["claim"] = task._claim
        self._places.take(-1)
        result["took_ms"] = int((time.monotonic() - one.begun) * 1000)
        with self._lock:
            one.has_ended = True
            # What was cut short is left to whoever gets it next.
            one.result = None if reason in ("lost", "stopping") else result
            if one.result is None:
                self._running.pop(task._claim, None)
            self._changed.notify_all()

    # ---- heart -------------------------------------------------------------------------------------

    def _heart_loop(self) -> None:
        margin = min(5.0, self._lease / 4)
        while True:
            with self._lock:
                if self._is_over:
                    return
                self._changed.wait_for(lambda: self._is_over, self._renew_every)
                if self._is_over:
                    return
                known = set(self._running)
                tally = dict(self._tally)
            asked_at = _now()
            try:
                left = self._renewed + self._lease - margin - asked_at
                renewed = self._say("renew", tally, timeout=max(0.5, min(_PATIENCE, left)))
                self._renewed = asked_at
            except (Unreachable, ApiError) as error:
                if isinstance(error, ApiError) and not error.is_passing:
                    raise
                self._look_at_the_lease()
                continue
            held: Set[str] = set(renewed["held"])
            self._hear({"lost": sorted(known - held), "stops": renewed["stops"]})

    # ---- speaker -----------------------------------------------------------------------------------

    def _speak_loop(self) -> None:
        while True:
            with self._lock:
                self._changed.wait_for(self._has_something_to_say)
                if self._is_over:
                    return
                started = [claim for claim, one in self._running.items() if not one.is_start_said]
                ended = [one for one in self._running.values() if one.can_be_ended()][:_BATCH]
            if started:
                self._say_started(started)
            if ended:
                self._say_ended(ended)

    def _has_something_to_say(self) -> bool:
        each = self._running.values()
        return self._is_over or any(not one.is_start_said or one.can_be_ended() for one in each)

    def _say_started(self, claims: List[str]) -> None:
        answer = self._insist("start", {"claims": claims})
        for result in answer["results"]:
            with self._lock:
                one = self._running.get(result["claim"])
                if one is not None:
                    one.is_start_said = True
                    # From here on its log can be said.
                    self._changed.notify_all()
            if result["fate"] == "lost":
                self._lose(result["claim"])

    def _say_ended(self, ended: List[_Running]) -> None:
        answer = self._insist("finish", {"results": [one.result for one in ended]})
        for one, result in zip(ended, answer["results"]):
            fate, said = result["fate"], (one.result or {}).get("status")
            with self._lock:
                self._running.pop(one.task._claim, None)
                if fate == "lost":
                    self._tally["lost"] += 1
                elif said in self._tally:
                    self._tally[said] += 1
                self._changed.notify_all()
            if fate == "lost":
                _log.warning("%r was held no longer; its result is dropped", one.task)
            elif fate == "refused":
                _log.warning("the end of %r was refused: %s", one.task, result.get("detail"))
            elif fate == "repeated" and result.get("status") != said:
                _log.warning("%r had ended as %s before", one.task, result.get("status"))

    # ---- logger ------------------------------------------------------------------------------------

    def _log_loop(self) -> None:
        while True:
            with self._lock:
                self._changed.wait_for(lambda: self._is_over or any(map(_has_printed, self._running.values())))
                if self._is_over:
                    return
                printed = [one for one in self._running.values() if _has_printed(one)]
            # A piece of each: who prints without end keeps nobody else waiting.
            for one in printed:
                self._say_log(one)
            self._notify()

    def _say_log(self, one: _Running) -> None:
        task = one.task
        with task._lock:
            pieces: List[Json] = []
            size = 0
            for stream, text in task._unsent:
                # As it is sent: a character may be six bytes there, and a piece has a frame around it.
                weight = len(json.dumps(text)) + _PIECE
                if pieces and size + weight > _LOG_BATCH:
                    break
                pieces.append({"stream": stream, "text": _sayable(text)})
                size += weight
        if not one.is_log_full:
            asked = {"claim": task._claim, "offset": one.log_offset, "pieces": pieces}
            added = self._insist("log", asked)
            one.log_offset = added["next_offset"]
            one.is_log_full = added["is_full"]
            if added["fate"] == "elsewhere":
                return
            if added["fate"] == "lost":
                one.is_log_full = True
        task._sent(len(pieces))

    # ---- said until it is heard ---------------------------------------------------------------------

    def _insist(self, verb: str, body: Json) -> Json:
        """Until it comes through, or the session is over."""
        pause = _PAUSE
        while True:
            try:
                return self._say(verb, body)
            except (Unreachable, ApiError) as error:
                if isinstance(error, ApiError) and not error.is_passing:
                    raise
                with self._lock:
                    if self._is_over:
                        raise _over() from error
                    self._changed.wait_for(lambda: self._is_over, pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _insist_for_task(self, verb: str, body: Json) -> Json:
        """On whichever thread of a handler, whose connection nobody else would close."""
        try:
            return self._insist(verb, body)
        finally:
            self._transport.close()

    def _say(self, verb: str, body: Json, timeout: float = 30.0) -> Json:
        return self._transport.request("POST", f"{self._path}/{verb}", body, timeout=timeout)


def _over() -> ApiError:
    return ApiError(404, "no_such_session", "the session is over")


class _BadOutput(Exception):
    pass


def _checked(output: object) -> Json:
    if output is None:
        return {}
    if not isinstance(output, dict) or not all(isinstance(key, str) for key in output):
        raise _BadOutput(f"a handler returns a dict with names, or None, not {type(output).__name__}")
    try:
        text = json.dumps(output, allow_nan=False)
        # Half of a pair is no character, though JSON has a way to write it.
        json.dumps(output, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise _BadOutput(f"the output cannot be written as JSON: {error}") from error
    if len(text) > _MAX_OUTPUT:
        raise _BadOutput(f"the output has {len(text)} bytes, and {_MAX_OUTPUT} are kept at most")
    return output


def _sayable(text: str) -> str:
    """What cannot be written as UTF-8 is shown as a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _call(handler: Callable[[Task], Any], task: Task) -> object:
    task.check()
    made = handler(task)
    if not inspect.isawaitable(made):
        return made
    # A loop of its own: what one handler blocks is its own matter.
    loop = asyncio.new_event_loop()
    try:

        async def whole() -> object:
            return await made

        future = loop.create_task(whole())
        task._call_on_stop(lambda: _cancel_soon(loop, future))
        try:
            return loop.run_until_complete(future)
        finally:
            task._call_on_stop(None)
    finally:
        loop.close()


def _cancel_soon(loop: asyncio.AbstractEventLoop, future: "asyncio.Task[object]") -> None:
    try:
        loop.call_soon_threadsafe(future.cancel)
    except RuntimeError:
        pass  # It has ended by itself.
