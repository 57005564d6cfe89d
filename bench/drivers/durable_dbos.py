"""Three durable steps a run, by DBOS on the Postgres that DATABASE_URL names: RUNS AT_ONCE SAMPLES."""
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS

runs, at_once, samples = (int(word) for word in sys.argv[1:4])
DBOS(
    config={
        "name": "bench",
        "system_database_url": os.environ["DATABASE_URL"],
        "system_database_pool_size": min(at_once, 20),
        "log_level": "ERROR",
        "console_log_level": "ERROR",
        "enable_otlp": False,
        "run_admin_server": False,
        "executor_id": "bench",
    }
)


@DBOS.step()
def add(number):
    return number + 1


@DBOS.workflow()
def three(number):
    return add(add(add(number)))


def timed(number):
    begun = time.perf_counter()
    assert three(number) == number + 3
    return (time.perf_counter() - begun) * 1000


DBOS.launch()
for number in range(20):
    timed(number)
alone = sorted(timed(number) for number in range(samples))
begun = time.perf_counter()
with ThreadPoolExecutor(at_once) as threads:
    for _ in threads.map(timed, range(runs)):
        pass
seconds = time.perf_counter() - begun
print(json.dumps({"seconds": seconds, "p50_ms": alone[len(alone) // 2]}), flush=True)
os._exit(0)
