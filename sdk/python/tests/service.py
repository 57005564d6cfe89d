"""A real `laneway serve` for the tests, which can be killed and started again at the same address."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Callable, List, Optional

from laneway import Client

ROOT = pathlib.Path(__file__).resolve().parents[3]
SDK = pathlib.Path(__file__).resolve().parents[1]

#: Longer than anything takes; only a test that fails waits that long.
SOON = 60.0


def program() -> str:
    found = os.environ.get("LANEWAY_BIN", str(ROOT / "target" / "debug" / "laneway"))
    if not os.path.isfile(found):
        raise RuntimeError(f"{found} is not there: build it with `cargo build`, or set LANEWAY_BIN")
    return found


def until(what: Callable[[], bool], why: str) -> None:
    end = time.monotonic() + SOON
    while not what():
        if time.monotonic() > end:
            raise AssertionError(f"never: {why}")
        time.sleep(0.02)


class Service:
    """Short leases, so that a death is seen within seconds."""

    def __init__(self) -> None:
        self.dir = tempfile.TemporaryDirectory(prefix="laneway-sdk-")
        self.store = os.path.join(self.dir.name, "laneway.db")
        self.listen = "127.0.0.1:0"
        self.process: Optional["subprocess.Popen[str]"] = None
        self.start()
        self.worker_token = self.token("worker", "worker")
        self.operator_token = self.token("operator", "operator")
        self.client = Client(self.url, self.operator_token)

    def start(self) -> None:
        args = [program(), "serve", "--no-worker", "--listen", self.listen, "--store", self.store]
        args += ["--lease-ttl", "3s", "--heartbeat-interval", "300ms", "--kill-grace", "1s"]
        self.process = subprocess.Popen(
            args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self.dir.name
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line.startswith("listening at "), line
        self.url = line[len("listening at ") :]
        self.listen = self.url[len("http://") :]

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def end(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(SOON)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.dir.cleanup()

    def token(self, name: str, role: str) -> str:
        args = [program(), "token", "create", name, "--role", role, "--store", self.store]
        made = subprocess.run(args, check=True, capture_output=True, text=True, cwd=self.dir.name)
        return made.stdout.strip()


class WorkerProcess:
    """A worker in a process of its own: tests/work.py."""

    def __init__(self, service: Service, name: str, *more: str) -> None:
        env = {**os.environ, "PYTHONPATH": str(SDK), "LANEWAY_URL": service.url, "LANEWAY_TOKEN": service.worker_token}
        args: List[str] = [sys.executable, str(SDK / "tests" / "work.py"), name, service.dir.name, *more]
        self.process = subprocess.Popen(args, env=env)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SOON)
