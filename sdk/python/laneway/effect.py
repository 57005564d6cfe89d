"""Durable effects: what a task does to the world, once.

Recorded before it runs and after. A later attempt, of whichever worker, gets what is recorded and does not run it. One that was
started and never finished is not run blindly. docs/design/effects.md has the whole table.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from typing import Any, Awaitable, Callable, Dict, Optional, Tuple

#: What is kept of a result, in bytes of JSON.
MAX_RESULT = 256 * 1024

_Key = Tuple[str, str]
_Say = Callable[[str, Dict[str, Any]], Dict[str, Any]]


class EffectId(str):
    """What an effect is called with: an idempotency key, the same in every attempt."""

    #: Fencing token of a step with a `lock`, as `Task.fence`.
    fence: Optional[int]

    def __new__(cls, key: str, fence: Optional[int] = None) -> "EffectId":
        made = super().__new__(cls, key)
        made.fence = fence
        return made


class EffectUnknown(Exception):
    """It was started, and nobody knows whether it happened. `laneway effects RUN` shows it, and how to settle it."""


class EffectLacking(Exception):
    """It has happened and does not run again, but its result could not be recorded."""


class EffectRefused(Exception):
    """It was not run, or its end was not recorded: the task is held no longer, or is to end."""


class Effects:
    """Those of one attempt. Who of it is at what is known here; what counts is recorded by the service."""

    def __init__(self, claim: str, say: Optional[_Say]) -> None:
        self._claim = claim
        self._say = say
        self._lock = threading.Lock()
        self._locks: Dict[_Key, threading.Lock] = {}
        #: Executions that never said what became of them.
        self._gone: Dict[_Key, str] = {}

    def run(self, name: str, key: str, on_unknown: str, function: Callable[[EffectId], Any]) -> Any:
        # Of two at once one runs it, and the other waits for the record.
        with self._at(name, key):
            begun = self._begin(name, key, on_unknown)
            if "execution" not in begun:
                return begun["result"]
            started = time.monotonic()
            try:
                result = function(begun["id"])
            except Exception:
                self._commit(begun, "failed", None, started)
                raise
            return self._commit(begun, "done", result, started)

    async def run_async(
        self, name: str, key: str, on_unknown: str, function: Callable[[EffectId], Awaitable[Any]]
    ) -> Any:
        loop = asyncio.get_running_loop()
        at = self._at(name, key)
        await loop.run_in_executor(None, at.acquire)
        try:
            begun = await loop.run_in_executor(None, self._begin, name, key, on_unknown)
            if "execution" not in begun:
                return begun["result"]
            started = time.monotonic()
            try:
                result = await function(begun["id"])
            except Exception:
                await loop.run_in_executor(None, self._commit, begun, "failed", None, started)
                raise
            return await loop.run_in_executor(None, self._commit, begun, "done", result, started)
        finally:
            at.release()

    def _at(self, name: str, key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault((name, key), threading.Lock())

    def _begin(self, name: str, key: str, on_unknown: str) -> Dict[str, Any]:
        if on_unknown not in ("fail", "retry"):
            raise ValueError("on_unknown is fail or retry")
        if self._say is None:
            raise EffectRefused("effects are recorded in runs only")
        execution = uuid.uuid4().hex
        asked = {"claim": self._claim, "name": name, "key": key, "execution": execution, "on_unknown": on_unknown}
        with self._lock:
            gone = self._gone.get((name, key))
            # Until it says what became of it.
            self._gone[(name, key)] = execution
        if gone is not None:
            asked["gone"] = gone
        begun = self._say("effects/begin", asked)
        answer, why = begun["answer"], begun.get("why")
        if answer == "run":
            return {"execution": execution, "id": EffectId(begun["id"], begun.get("fence")), "name": name, "key": key}
        with self._lock:
            # It was not let begin: who was gone before is gone still.
            if gone is None:
                del self._gone[(name, key)]
            else:
                self._gone[(name, key)] = gone
        if answer == "recorded":
            return {"result": begun.get("result")}
        if answer in ("unknown", "taken"):
            raise EffectUnknown(why or answer)
        if answer == "lacking":
            raise EffectLacking(why or answer)
        raise EffectRefused("the task is held no longer" if answer == "lost" else "the task is to end")

    def _commit(self, begun: Dict[str, Any], status: str, result: Any, started: float) -> Any:
        assert self._say is not None
        try:
            text = json.dumps(result, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            # It has happened: that is recorded, and what it returned is not.
            text, result = json.dumps(f"not JSON: {error}"), "x" * (MAX_RESULT + 1)
        if len(text) > MAX_RESULT:
            result = "x" * (MAX_RESULT + 1)
        ended = {
            "claim": self._claim,
            "name": begun["name"],
            "key": begun["key"],
            "execution": begun["execution"],
            "status": status,
            "result": result,
            "took_ms": int((time.monotonic() - started) * 1000),
        }
        committed = self._say("effects/commit", ended)
        if committed["fate"] == "lost":
            raise EffectRefused("the task is held no longer: what the effect returned is not recorded")
        with self._lock:
            self._gone.pop((begun["name"], begun["key"]), None)
        if committed["fate"] == "lacking":
            raise EffectLacking(committed.get("why") or "its result could not be recorded")
        # As a later attempt reads it back.
        return json.loads(text)
