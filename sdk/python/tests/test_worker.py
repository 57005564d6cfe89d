"""Workers against a real service."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import threading
import time
import unittest
from typing import Any, Callable, Dict, List
from unittest import mock

from laneway import ApiError, Client, EffectLacking, EffectUnknown, Task, Unreachable, Worker
from laneway._http import Transport
from laneway.task import MAX_UNSENT

from .service import SOON, Service, WorkerProcess, until


class InThread:
    """A worker beside the test."""

    def __init__(self, service: Service, token: str = "", **more: Any) -> None:
        self.worker = Worker(service.url, token or service.worker_token, name=more.pop("name", "here"), **more)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.error: List[BaseException] = []

    def _run(self) -> None:
        try:
            self.worker.run()
        except BaseException as error:
            self.error.append(error)

    def __enter__(self) -> Worker:
        return self.worker

    def start(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.worker.stop()
        self.thread.join(SOON)
        assert not self.thread.is_alive()


class WorkerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.service = Service()
        self.addCleanup(self.service.end)
        self.client = self.service.client

    def submit(self, steps: str, **params: Any) -> str:
        return self.client.submit(document=f"name: flow\nsteps:\n{steps}", params=params)

    def wait(self, run: str, client: "Client | None" = None) -> Any:
        return (client or self.client).wait(run, SOON)

    def test_a_signal_wakes_a_step_that_waits(self) -> None:
        run = self.submit("  gate: {wait: {signal: go}}\n  next: {needs: [gate], queue: mail, with: {n: '${{ steps.gate.output.n }}'}}")
        self.assertEqual(self.client.run(run).task("gate").status, "parked")
        self.assertEqual(self.client.signal(run, "gate", "go", reason="fine", payload={"n": 7}), "woken")
        self.assertEqual(self.client.signal(run, "gate", "go"), "before")
        with self.assertRaises(ApiError):
            self.client.signal(run, "next", "go")
        self.assertEqual(self.client.run(run).task("gate").status, "succeeded")

    def test_an_effect_is_done_once_and_a_later_attempt_gets_its_result(self) -> None:
        beside = InThread(self.service)
        calls: List[str] = []
        seen: List[Any] = []
        with beside as worker:

            @worker.handler("pay")
            def pay(task: Task) -> Dict[str, Any]:
                def charge(key: str) -> Dict[str, Any]:
                    calls.append(key)
                    return {"receipt": 7}

                seen.append(task.effect("charge", charge, key="order 17"))
                seen.append(task.effect("nothing", lambda _: None))
                if task.attempt == 1:
                    raise ValueError("after the effect")
                return {"n": task.effect("charge", charge, key="order 17")["receipt"]}

            @worker.handler("apay")
            async def apay(task: Task) -> None:
                async def charge(key: str) -> str:
                    calls.append(key)
                    await asyncio.sleep(0.05)
                    return "once"

                both = await asyncio.gather(*(task.effect_async("charge", charge) for _ in range(2)))
                seen.append(both)

            beside.start()
            run = self.submit("  a: {queue: pay, retry: {max: 1, backoff: 0s}}\n  b: {needs: [a], queue: apay}")
            ended = self.wait(run)
        self.assertEqual((ended.status, ended.task("a").output), ("succeeded", {"n": 7}))
        self.assertEqual(seen, [{"receipt": 7}, None, {"receipt": 7}, None, ["once", "once"]])
        self.assertEqual(len(calls), 2, "each ran once")
        self.assertNotEqual(calls[0], calls[1])

    def test_task_and_effect_of_a_step_with_a_lock_have_its_fencing_token(self) -> None:
        beside = InThread(self.service)
        seen: List[Any] = []
        with beside as worker:

            @worker.handler("pay")
            def pay(task: Task) -> None:
                task.effect("charge", lambda key: seen.append((task.fence, key.fence)))

            beside.start()
            self.wait(self.submit("  a: {queue: pay, lock: bank}\n  b: {needs: [a], queue: pay, lock: bank}\n  c: {needs: [b], queue: pay}"))
        self.assertEqual([fence for fence, _ in seen], [fence for _, fence in seen])
        self.assertLess(seen[0][0], seen[1][0])
        self.assertIsNone(seen[2][0])

    def test_an_effect_that_raises_is_tried_again_and_one_that_never_ended_is_unknown(self) -> None:
        beside = InThread(self.service)
        calls: List[str] = []
        said: List[str] = []
        with beside as worker:

            @worker.handler("pay")
            def pay(task: Task) -> None:
                def charge(_: str) -> None:
                    calls.append("charge")
                    if task.attempt == 1:
                        raise ValueError("the bank is closed")

                def half(_: str) -> str:
                    calls.append("half")
                    if len([call for call in calls if call == "half"]) == 1:
                        raise SystemExit("in the middle of it")
                    return "whole"

                task.effect("charge", charge)
                for on_unknown in ("fail", "fail", "retry"):
                    try:
                        said.append(str(task.effect("half", half, on_unknown=on_unknown)))
                    except EffectUnknown as error:
                        said.append(str(error))
                    except SystemExit:
                        said.append("exit")
                with self.assertRaises(EffectLacking):
                    task.effect("large", lambda _: "x" * 300_000)
                with self.assertRaises(EffectLacking):
                    task.effect("large", lambda _: "small")

            beside.start()
            ended = self.wait(self.submit("  a: {queue: pay, retry: {max: 1, backoff: 0s}}"))
        self.assertEqual(ended.status, "succeeded", said)
        self.assertEqual(calls, ["charge", "charge", "half", "half"])
        self.assertEqual((said[0], said[2]), ("exit", "whole"))
        self.assertIn("nobody knows whether it happened", said[1])

    def marked(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.service.dir.name, name))

    def mark(self, name: str) -> None:
        open(os.path.join(self.service.dir.name, name), "w").close()

    def test_run_is_done_with_inputs_outputs_and_log(self) -> None:
        beside = InThread(self.service)
        with beside as worker:

            @worker.handler("make")
            def make(task: Task) -> Dict[str, Any]:
                task.log("making", task.input["n"])
                task.write("oh\n", "stderr")
                return {"made": [task.input["n"], task.params["who"]], "attempt": task.attempt}

            @worker.handler("send")
            async def send(task: Task) -> None:
                await asyncio.sleep(0.01)
                task.log(task.input["what"])

            beside.start()
            document = (
                "params: {who: {type: string, required: true}}\n"
                "steps:\n"
                "  make: {queue: make, with: {n: 7}}\n"
                '  send: {queue: send, needs: [make], with: {what: "${{ steps.make.output.made }}"}}\n'
            )
            run = self.client.submit(document=document, params={"who": "ada"})
            done = self.wait(run)
            self.assertEqual(done.status, "succeeded", done)
            self.assertEqual(done.task("make").output, {"made": [7, "ada"], "attempt": 1})
            self.assertEqual(done.task("make").node, "here")
            self.assertEqual(self.client.log(run, "make"), "making 7\noh\n")
            self.assertEqual(self.client.log(run, "send"), "[7, 'ada']\n")
        self.assertEqual(beside.error, [])

    def test_a_run_for_later_begins_at_its_moment(self) -> None:
        beside = InThread(self.service)
        with beside as worker:

            @worker.handler("make")
            def make(task: Task) -> None:
                pass

            beside.start()
            document = "name: later\nsteps:\n  a: {queue: make}\n"
            before = time.monotonic()
            run = self.client.submit(document=document, not_before="2s")
            self.assertEqual(self.client.run(run).status, "queued")
            self.assertEqual(self.wait(run).status, "succeeded")
            self.assertGreaterEqual(time.monotonic() - before, 2)
            with self.assertRaisesRegex(ApiError, "neither a moment"):
                self.client.submit(document=document, not_before="noon")
        self.assertEqual(beside.error, [])

    def test_many_tasks_are_taken_and_ended_in_batches(self) -> None:
        beside = InThread(self.service, slots=16)
        with beside as worker:
            seen: List[int] = []

            @worker.handler("n")
            def handle(task: Task) -> Dict[str, Any]:
                seen.append(task.input["n"])
                return {"n": task.input["n"]}

            beside.start()
            steps = "".join(f"  s{n}: {{queue: n, with: {{n: {n}}}}}\n" for n in range(100))
            run = self.client.submit(document=f"max_parallel: 100\nsteps:\n{steps}")
            done = self.wait(run)
            self.assertEqual(done.status, "succeeded")
            self.assertEqual(sorted(seen), list(range(100)), "each once")
            self.assertEqual([task.output["n"] for task in done.tasks], list(range(100)))

    def test_what_is_raised_fails_the_attempt_and_is_tried_again(self) -> None:
        beside = InThread(self.service)
        with beside as worker:

            @worker.handler("flaky")
            def flaky(task: Task) -> Dict[str, Any]:
                if task.attempt < 3:
                    raise ValueError(f"attempt {task.attempt} is unlucky")
                return {"attempt": task.attempt}

            @worker.handler("odd")
            def odd(task: Task) -> Any:
                return ["no", "dict"]

            beside.start()
            steps = "  a: {queue: flaky, retry: {max: 2, backoff: 50ms}}\n  b: {queue: odd}\n"
            run = self.client.submit(document=f"on_failure: continue\nsteps:\n{steps}")
            done = self.wait(run)
            self.assertEqual(done.task("a").output, {"attempt": 3})
            log = self.client.log(run, "a", 1)
            self.assertIn("Traceback", log)
            self.assertIn("ValueError: attempt 1 is unlucky", log)
            self.assertEqual((done.task("b").status, done.task("b").reason), ("failed", "bad_output"))

    def test_retry_whose_answer_is_lost_opens_the_run_once(self) -> None:
        beside = InThread(self.service)
        with beside as worker:

            @worker.handler("q")
            def handle(task: Task) -> None:
                raise ValueError("never")

            beside.start()
            run = self.submit("  a: {queue: q}\n")
            self.assertEqual(self.wait(run).status, "failed")
            answered, others = http.client.HTTPConnection.getresponse, Client(self.service.url, self.service.operator_token)
            me, lost = threading.get_ident(), []

            def lose(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
                response = answered(connection)
                if threading.get_ident() == me and not lost and response.status == 200 and asked:
                    lost.append(response.read())
                    # What it opened has ended again: nothing but what was seen tells the second one from a new wish.
                    until(lambda: others.run(run).has_ended, "the end of the second attempt")
                    raise ConnectionResetError("the answer is lost")
                return response

            asked: List[str] = []
            request = http.client.HTTPConnection.request

            def ask(connection: http.client.HTTPConnection, method: str, path: str, *args: Any, **more: Any) -> None:
                if path.endswith("/retry"):
                    asked.append(path)
                request(connection, method, path, *args, **more)

            with mock.patch.multiple(http.client.HTTPConnection, getresponse=lose, request=ask):
                with self.assertRaises(ApiError) as refused:
                    self.client.retry(run)
            self.assertEqual((len(asked), refused.exception.code), (2, "run_went_on"))
            self.assertEqual(self.client.run(run).task("a").attempt, 2)
            self.assertEqual(self.client.retry(run), ["a"])

    def test_cancel_and_timeout_reach_the_handler(self) -> None:
        beside = InThread(self.service)
        with beside as worker:
            began, told = threading.Event(), []

            @worker.handler("long")
            def long(task: Task) -> None:
                began.set()
                task.wait(SOON)
                told.append(task.cancel_reason)
                task.check()

            @worker.handler("along")
            async def along(task: Task) -> None:
                await asyncio.sleep(SOON)

            beside.start()
            run = self.submit("  a: {queue: long}\n  b: {queue: along}\n")
            self.assertTrue(began.wait(SOON))
            until(lambda: all(task.status == "running" for task in self.client.run(run).tasks), "both run")
            begun = time.monotonic()
            self.client.cancel(run)
            done = self.wait(run)
            self.assertLess(time.monotonic() - begun, SOON / 2)
            self.assertEqual([task.status for task in done.tasks], ["canceled", "canceled"])
            late = self.wait(self.submit("  a: {queue: long, timeout: 200ms}\n"))
            self.assertEqual((late.task("a").status, late.task("a").reason), ("failed", "timeout"))
            self.assertEqual(told, ["canceled", "timeout"])

    def test_task_that_prints_without_end_delays_no_other(self) -> None:
        beside = InThread(self.service)
        with beside as worker:
            enough = threading.Event()
            self.addCleanup(enough.set)

            @worker.handler("flood")
            def flood(task: Task) -> None:
                while not enough.is_set() and not task.canceled:
                    task.write("x" * 50_000 + "\n")

            @worker.handler("quiet")
            def quiet(task: Task) -> None:
                task.log("a word")

            beside.start()
            noisy = self.submit("  a: {queue: flood}\n")
            until(lambda: self.client.run(noisy).task("a").status == "running", "it prints")
            for _ in range(3):
                run = self.submit("  a: {queue: quiet}\n")
                self.assertEqual(self.wait(run).status, "succeeded")
                self.assertEqual(self.client.log(run, "a"), "a word\n")
            self.assertEqual(self.client.run(noisy).task("a").status, "running")
            enough.set()
            self.assertEqual(self.wait(noisy).status, "succeeded")
        self.assertEqual(beside.error, [])

    def test_what_is_printed_faster_than_it_is_sent_is_bounded_and_the_log_says_so(self) -> None:
        beside = InThread(self.service)
        with beside as worker:
            held: List[int] = []

            @worker.handler("burst")
            def burst(task: Task) -> None:
                task.log("first")
                for _ in range(100):
                    task.write("z" * 100_000)
                held.append(sum(len(text) for _, text in task._unsent))

            beside.start()
            run = self.submit("  a: {queue: burst}\n")
            self.assertEqual(self.wait(run).status, "succeeded")
            self.assertLessEqual(held[0], MAX_UNSENT + 1_000)
            log = self.client.log(run, "a")
            self.assertTrue(log.startswith("first\nzzz"), log[:20])
            told = [int(number) for number in re.findall(r"\[laneway: (\d+) characters are not kept", log)]
            self.assertTrue(told, log[-200:])
            self.assertEqual(log.count("z") + sum(told), 10_000_000)

    def test_another_worker_takes_over_from_one_that_was_killed(self) -> None:
        first = WorkerProcess(self.service, "first")
        self.addCleanup(first.kill)
        run = self.submit("  a: {queue: slow}\n")
        until(lambda: self.marked("first.began.1"), "it begins")
        first.kill()
        second = WorkerProcess(self.service, "second")
        self.addCleanup(second.kill)
        until(lambda: self.marked("second.began.2"), "it goes on elsewhere, as the next attempt")
        self.mark("go")
        done = self.wait(run)
        self.assertEqual((done.task("a").output, done.task("a").attempt), ({"by": "second"}, 2))
        self.assertEqual(second.end(), 0)
        self.assertTrue(self.marked("second.left"))

    def test_worker_that_is_told_to_stop_lets_its_task_end(self) -> None:
        worker = WorkerProcess(self.service, "only")
        self.addCleanup(worker.kill)
        run = self.submit("  a: {queue: slow}\n  b: {queue: slow, needs: [a]}\n")
        until(lambda: self.marked("only.began.1"), "it begins")
        threading.Timer(0.5, lambda: self.mark("go")).start()
        self.assertEqual(worker.end(), 0)
        shown = self.client.run(run)
        self.assertEqual(shown.task("a").status, "succeeded")
        self.assertIn(shown.task("b").status, ("available", "pending"), "it takes nothing more")

    def test_restart_of_the_service_costs_no_attempt(self) -> None:
        worker = WorkerProcess(self.service, "only")
        self.addCleanup(worker.kill)
        run = self.submit("  a: {queue: slow}\n  b: {queue: slow, needs: [a]}\n")
        until(lambda: self.marked("only.began.1"), "it begins")
        self.service.kill()
        # Its end is said while nobody listens.
        self.mark("go")
        time.sleep(0.5)
        self.service.start()
        done = self.wait(run)
        self.assertEqual(done.status, "succeeded")
        self.assertEqual([task.attempt for task in done.tasks], [1, 1])
        self.assertEqual(worker.end(), 0)

    def test_who_waits_for_a_run_outlives_a_restart_of_the_service(self) -> None:
        run = self.submit("  a: {wait: {signal: go}}\n")
        self.service.kill()
        with self.assertRaises(TimeoutError) as late:
            self.client.wait(run, 0.2)
        self.assertIsInstance(late.exception.__cause__, Unreachable)
        with self.assertRaises(Unreachable):
            # Nobody has ever answered there.
            Client(self.service.url, self.service.operator_token).wait(run, SOON)
        ended: List[str] = []
        waiting = threading.Thread(target=lambda: ended.append(self.wait(run).status))
        waiting.start()
        self.service.start()
        self.client.signal(run, "a", "go")
        waiting.join(SOON)
        self.assertEqual(ended, ["succeeded"])

    def test_result_of_a_lost_claim_is_dropped_and_the_handler_is_told(self) -> None:
        beside = InThread(self.service)
        with beside as worker:
            began, told = threading.Event(), []
            go = threading.Event()

            @worker.handler("q")
            def handle(task: Task) -> Dict[str, Any]:
                if task.attempt == 1:
                    began.set()
                    task.wait(SOON)
                    told.append(task.cancel_reason)
                    go.set()
                return {"attempt": task.attempt}

            beside.start()
            run = self.submit("  a: {queue: q}\n")
            self.assertTrue(began.wait(SOON))
            until(lambda: self.client.run(run).task("a").status == "running", "its start is said")
            # As if it had been silent for too long: somebody ends its session.
            admin = Transport(self.service.url, self.service.worker_token)
            session = self.session_of("here")
            admin.request("DELETE", f"/v1/workers/{session}")
            self.assertTrue(go.wait(SOON))
            self.assertEqual(told, ["lost"])
            done = self.wait(run)
            self.assertEqual((done.task("a").output, done.task("a").attempt), ({"attempt": 2}, 2))

    def session_of(self, node: str) -> str:
        nodes = Transport(self.service.url, self.service.operator_token).request("GET", "/v1/nodes")["nodes"]
        return next(str(one["session"]) for one in nodes if one["node"] == node)

    def test_wrong_token_is_refused_in_words(self) -> None:
        def nothing(task: Task) -> None:
            return None

        for token, code in (("laneway_no_such", "bad_token"), (self.service.operator_token, "forbidden")):
            worker = Worker(self.service.url, token)
            worker.handler("q")(nothing)
            with self.assertRaises(ApiError) as refused:
                worker.run(handle_signals=False)
            self.assertEqual(refused.exception.code, code)
        # Nor does a token of another worker get at a session.
        beside = InThread(self.service)
        with beside as worker:
            worker.handler("q")(nothing)
            beside.start()
            until(lambda: any(True for _ in self.nodes()), "it is there")
            session = self.session_of("here")
            thief = Transport(self.service.url, self.service.token("thief", "worker"))
            with self.assertRaises(ApiError) as refused:
                thief.request("POST", f"/v1/workers/{session}/claim", {"max": 1, "holding": []})
            self.assertEqual((refused.exception.status, refused.exception.code), (404, "no_such_session"))

    def nodes(self) -> List[Dict[str, Any]]:
        listed = Transport(self.service.url, self.service.operator_token).request("GET", "/v1/nodes")["nodes"]
        return [one for one in listed if one["node"] == "here"]

    def test_what_cannot_be_is_said_before_anything_runs(self) -> None:
        worker = Worker(self.service.url, self.service.worker_token)
        with self.assertRaisesRegex(RuntimeError, "has no handler"):
            worker.run(handle_signals=False)
        register: Callable[..., Any] = worker.handler("q")
        register(lambda task: None)
        with self.assertRaisesRegex(ValueError, "has a handler already"):
            register(lambda task: None)
        with self.assertRaisesRegex(ValueError, "no address of a service"):
            Worker("localhost", "x")


if __name__ == "__main__":
    unittest.main()
