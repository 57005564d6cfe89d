"""Remote workers and a client for Laneway, with nothing but the standard library.

    from laneway import Task, Worker

    worker = Worker("http://127.0.0.1:7878", token="laneway_…")

    @worker.handler("images")
    def resize(task: Task) -> dict:
        task.log("resizing", task.input["file"])
        return {"width": 640}

    worker.run()

The protocol beneath it is docs/reference/remote-workers.md.
"""

from ._http import ApiError, Unreachable
from .client import Client, Run, TaskState
from .effect import EffectId, EffectLacking, EffectRefused, EffectUnknown
from .task import Canceled, Task
from .worker import Worker

__all__ = [
    "ApiError",
    "Canceled",
    "Client",
    "EffectId",
    "EffectLacking",
    "EffectRefused",
    "EffectUnknown",
    "Run",
    "Task",
    "TaskState",
    "Unreachable",
    "Worker",
]
