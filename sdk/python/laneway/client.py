"""A small client: submits runs, waits for them, and reads what came of them."""

from __future__ import annotations

import ssl
import time
import uuid
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional
from urllib.parse import quote

from ._http import ApiError, Json, Transport, Unreachable

_FINAL = ("succeeded", "failed", "canceled")

#: Between two looks at a run, at first and at most.
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


@dataclass(frozen=True)
class TaskState:
    """A task of a run, as `laneway show --json` has it."""

    step: str
    status: str
    attempt: int
    node: Optional[str]
    reason: Optional[str]
    output: Dict[str, Any]
    #: Why it waits, in words.
    cause: Optional[str]

    @property
    def is_cached(self) -> bool:
        """It succeeded with a result that was recorded before, without being executed."""
        return self.reason == "cached"


@dataclass(frozen=True)
class Run:
    run: str
    workflow: str
    status: str
    reason: Optional[str]
    tasks: List[TaskState]

    @property
    def has_ended(self) -> bool:
        return self.status in _FINAL

    def task(self, step: str) -> TaskState:
        for task in self.tasks:
            if task.step == step:
                return task
        raise KeyError(step)


class Client:
    """Needs a token with the role operator; viewer is enough to look."""

    def __init__(self, url: str, token: str, *, ssl_context: Optional[ssl.SSLContext] = None) -> None:
        self._transport = Transport(url, token, ssl_context)

    def close(self) -> None:
        """Ends the connection of this thread; the next question makes another one."""
        self._transport.close()

    def submit(
        self,
        *,
        document: Optional[str] = None,
        workflow: Optional[str] = None,
        params: Optional[Mapping[str, Any]] = None,
        name: Optional[str] = None,
        key: Optional[str] = None,
        not_before: Optional[str] = None,
    ) -> str:
        """A run of a document, or of a workflow by its name; its id. With a key that was used before, the run of that.

        With `not_before` it waits until a moment such as `2026-12-24T18:00:00Z`, or for a while such as `90m`."""
        asked: Json = {"params": dict(params or {})}
        words = (("document", document), ("workflow", workflow), ("name", name), ("not_before", not_before))
        for word, value in words:
            if value is not None:
                asked[word] = value
        # With a key of its own the request can be said again when its answer is lost.
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return str(self._transport.request("POST", "/v1/runs", asked, headers=headers)["run"])

    def run(self, run: str) -> Run:
        return _run(self._transport.request("GET", f"/v1/runs/{quote(run, safe='')}"))

    def wait(self, run: str, timeout: Optional[float] = None) -> Run:
        """Until it has ended, also over a restart of the service. Raises TimeoutError if that takes too long."""
        until = None if timeout is None else time.monotonic() + timeout
        pause = _PAUSE
        while True:
            lost: Optional[Exception] = None
            try:
                found = self.run(run)
                if found.has_ended:
                    return found
                waits = ", ".join(f"{task.step}: {task.cause or task.status}" for task in found.tasks)
                state = f"{found.status} after {timeout} s ({waits})"
            except (ApiError, Unreachable) as error:
                # The run does not wait for the service, which comes back.
                if not self._comes_back(error):
                    raise
                lost, state = error, f"not known after {timeout} s ({error})"
            if until is not None and time.monotonic() + pause > until:
                raise TimeoutError(f"run {run} is {state}") from lost
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _comes_back(self, error: Exception) -> bool:
        if isinstance(error, ApiError):
            return error.is_passing
        return self._transport.has_answered

    def cancel(self, run: str, now: bool = False) -> None:
        """Ends a run. Its clean-up, steps with `when: always` and hooks, still runs until its `cleanup_timeout` has passed.

        `now` leaves the clean-up out, or stops it. Without that, canceling twice changes nothing.
        """
        body = {"now": True} if now else {}
        self._transport.request("POST", f"/v1/runs/{quote(run, safe='')}/cancel", body)

    def retry(self, run: str) -> List[str]:
        """Runs again what did not succeed, and what is behind it; the names of those steps.

        A run that went on since this looked at it is left alone (`ApiError` with the code `run_went_on`): so a request that had to
        be said twice, because its answer was lost, opens it once.
        """
        seen = self._transport.request("GET", f"/v1/runs/{quote(run, safe='')}?items=0&causes_up_to=0")
        body = {"last_event": seen["last_event"]}
        answer = self._transport.request("POST", f"/v1/runs/{seen['run']}/retry", body)
        return [str(step) for step in answer["steps"]]

    def signal(
        self,
        run: str,
        step: str,
        name: str,
        *,
        reason: Optional[str] = None,
        payload: Optional[Json] = None,
    ) -> str:
        """Says what a step waits for; `payload` is its output. `woken`, `kept` for later, or `before`: somebody was first."""
        body: Json = {"signal": name}
        if reason is not None:
            body["reason"] = reason
        if payload is not None:
            body["payload"] = payload
        path = f"/v1/runs/{quote(run, safe='')}/tasks/{quote(step, safe='')}/signal"
        return str(self._transport.request("POST", path, body)["result"])

    def log(self, run: str, step: str, attempt: int = 1) -> str:
        """What an attempt has printed so far."""
        path = f"/v1/runs/{quote(run, safe='')}/tasks/{quote(step, safe='')}/attempts/{attempt}/log"
        text, offset = [], 0
        while True:
            page = self._transport.request("GET", f"{path}?offset={offset}")
            text += [piece["text"] for piece in page["pieces"] if piece["stream"] != "note"]
            if not page["pieces"]:
                return "".join(text)
            offset = page["next_offset"]


def _run(given: Json) -> Run:
    tasks = [
        TaskState(
            step=task["step"],
            status=task["status"],
            attempt=task["attempt"],
            node=task.get("node"),
            reason=task.get("reason"),
            output=task.get("output") or {},
            cause=(task.get("cause") or {}).get("text"),
        )
        for task in given["tasks"]
    ]
    return Run(given["run"], given["workflow"], given["status"], given.get("reason"), tasks)
