"""Runs one graph of /bin/true on huey with a SQLite queue, durable, and prints how long that took.

usage: huey_graph.py DATABASE AT_ONCE flat N | chain N | levels LEVELS WIDTH

The interpreter's start is not counted: what is timed begins with the first enqueue and ends with the last task.
A task makes its successors; the last of a level makes the next level. Polling is set to be quick (5 ms, no
back-off), which favours huey.
"""

import json
import logging
import os
import sys
import threading
import time

from huey import SqliteHuey

database, at_once, shape, *sizes = sys.argv[1:]
sizes = [int(size) for size in sizes]
queue = SqliteHuey("graph", filename=database, fsync=True, results=False, timeout=60)
lock = threading.Lock()
done = threading.Event()
left = {"all": sizes[0] * (sizes[1] if shape == "levels" else 1), "level": 0}


def spawn():
    pid = os.posix_spawn("/bin/true", ["/bin/true"], {})
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RuntimeError(f"/bin/true ended with {status}")


def settle():
    with lock:
        left["all"] -= 1
        left["level"] -= 1
        if left["all"] == 0:
            done.set()
        return left["level"] == 0


@queue.task()
def single():
    spawn()
    settle()


@queue.task()
def link(after):
    spawn()
    if after > 0:
        link(after - 1)
    settle()


@queue.task()
def member(level):
    spawn()
    if settle() and level + 1 < sizes[0]:
        begin_level(level + 1)


def begin_level(level):
    with lock:
        left["level"] = sizes[1]
    for _ in range(sizes[1]):
        member(level)


def main():
    logging.disable(logging.CRITICAL)
    consumer = queue.create_consumer(
        workers=int(at_once),
        worker_type="thread",
        periodic=False,
        initial_delay=0.005,
        backoff=1.0,
        max_delay=0.005,
        check_worker_health=False,
    )
    begun = time.perf_counter()
    if shape == "flat":
        for _ in range(sizes[0]):
            single()
    elif shape == "chain":
        link(sizes[0] - 1)
    elif shape == "levels":
        begin_level(0)
    else:
        sys.exit(f"{shape} is not a shape: use flat, chain or levels")
    consumer.start()
    if not done.wait(600):
        sys.exit(f"{left['all']} tasks were not done after ten minutes")
    took = time.perf_counter() - begun
    consumer.stop(graceful=True)
    print(json.dumps({"seconds": took}), flush=True)


main()
