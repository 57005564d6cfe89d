"""procrastinate as the benchmark drives it. The commands are those of queue.mjs, and it prints what that prints."""

import asyncio
import json
import logging
import os
import sys
import time

import procrastinate

logging.disable(logging.CRITICAL)

CHUNK = 1000
PAUSE_S = 0.025

command, *words = sys.argv[1:]
count = int(words[0]) if words else 0
connector = procrastinate.PsycopgConnector(conninfo=os.environ["DATABASE_URL"], min_size=8, max_size=12)
app = procrastinate.App(connector=connector)
handled = {"done": 0, "first": 0, "last": 0, "ms": []}
everything = asyncio.Event()


def moment():
    """In microseconds, the same clock in every process."""
    return time.monotonic_ns() // 1000


@app.task(name="noop")
async def noop(sent=0):
    now = moment()
    handled["first"] = handled["first"] or now
    handled["done"] += 1
    if sent:
        handled["ms"].append((now - sent) / 1e3)
    if handled["done"] == count:
        handled["last"] = now
        everything.set()


async def work(concurrency):
    worker = asyncio.create_task(app.run_worker_async(concurrency=concurrency, wait=True, install_signal_handlers=False))
    if command == "latency":
        # Until the worker is up and has gone to sleep.
        await asyncio.sleep(1)
        pace = await asyncio.create_subprocess_exec(sys.executable, __file__, "pace", str(count))
        if await pace.wait() != 0:
            sys.exit("pace failed")
    await everything.wait()
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def main():
    async with app.open_async():
        begun = moment()
        if command == "setup":
            await app.schema_manager.apply_schema_async()
        elif command == "bulk":
            for done in range(0, count, CHUNK):
                await noop.batch_defer_async(*[{} for _ in range(min(CHUNK, count - done))])
        elif command == "single":
            left = iter(range(count))

            async def caller():
                for _ in left:
                    await noop.defer_async()

            await asyncio.gather(*[caller() for _ in range(int(words[1]))])
        elif command == "pace":
            for _ in range(count):
                await noop.defer_async(sent=moment())
                await asyncio.sleep(PAUSE_S)
        elif command in ("drain", "latency"):
            await work(int(words[1]))
            begun = None
        else:
            sys.exit(f"{command} is no command")
        if command == "latency":
            print(json.dumps({"ms": handled["ms"]}), flush=True)
        elif command == "drain":
            print(json.dumps({"seconds": (handled["last"] - handled["first"]) / 1e6}), flush=True)
        elif command != "pace":
            print(json.dumps({"seconds": (moment() - begun) / 1e6}), flush=True)


asyncio.run(main())
