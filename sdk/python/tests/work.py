"""The worker that tests start as a process: NAME DIRECTORY. Handlers leave files there, by which tests see what they do."""

import logging
import os
import pathlib
import sys

from laneway import Task, Worker

name, directory = sys.argv[1], pathlib.Path(sys.argv[2])
logging.basicConfig(level=logging.INFO, format=f"{name} %(message)s")
worker = Worker(os.environ["LANEWAY_URL"], os.environ["LANEWAY_TOKEN"], name=name, slots=2, shutdown_grace=20)


def mark(text: str) -> None:
    (directory / f"{name}.{text}").touch()


@worker.handler("slow")
def slow(task: Task) -> dict:
    """Runs until a file says that it may end."""
    mark(f"began.{task.attempt}")
    while not (directory / task.input.get("until", "go")).exists():
        if task.wait(0.02):
            mark(f"stopped.{task.cancel_reason}")
            task.check()
    return {"by": name}


worker.run()
mark("left")
