"""The example keeps its promise."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest

from .service import SDK, SOON, Service


class ExampleTest(unittest.TestCase):
    def test_letters_are_written_and_sent(self) -> None:
        service = Service()
        self.addCleanup(service.end)
        env = {
            **os.environ,
            "PYTHONPATH": str(SDK),
            "LANEWAY_URL": service.url,
            "LANEWAY_TOKEN": service.worker_token,
            "LANEWAY_OPERATOR_TOKEN": service.operator_token,
        }
        example = [sys.executable, str(SDK / "examples" / "letters.py")]
        ran = subprocess.run(example, env=env, capture_output=True, text=True, timeout=2 * SOON)
        self.assertEqual((ran.returncode, ran.stdout), (0, "succeeded {'sent': 3}\n"), ran.stderr)


if __name__ == "__main__":
    unittest.main()
