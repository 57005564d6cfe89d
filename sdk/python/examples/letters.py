"""A worker and a run of its queue. LANEWAY_URL, LANEWAY_TOKEN (role worker) and LANEWAY_OPERATOR_TOKEN say where and who."""

import os
import threading

from laneway import Client, Task, Worker

WORKFLOW = """
name: letters
params: {who: {type: string, default: ada}}
steps:
  write: {queue: letters, with: {to: "${{ params.who }}", lines: 3}}
  send:  {queue: letters, needs: [write], with: {text: "${{ steps.write.output.text }}"}}
"""

url = os.environ["LANEWAY_URL"]
worker = Worker(url, os.environ["LANEWAY_TOKEN"], slots=2)


@worker.handler("letters")
def letters(task: Task) -> dict:
    if task.step == "write":
        return {"text": [f"Dear {task.input['to']}"] * task.input["lines"]}
    for line in task.input["text"]:
        task.log(line)
    return {"sent": len(task.input["text"])}


thread = threading.Thread(target=worker.run)
thread.start()
client = Client(url, os.environ["LANEWAY_OPERATOR_TOKEN"])
done = client.wait(client.submit(document=WORKFLOW), timeout=60)
print(done.status, done.task("send").output)
worker.stop()
thread.join()
