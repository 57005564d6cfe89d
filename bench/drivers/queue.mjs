// What every queue on Node is asked to do by the benchmark, over the few functions that differ between them.
//
// usage: node DRIVER setup | bulk N | single N CALLERS | drain N CONCURRENCY VARIANT | latency N CONCURRENCY VARIANT
//        | contend N CALLERS KEYS CONCURRENCY live|before
//
// Each prints one JSON document. What is timed begins when the connections are there: the start of the interpreter is not
// counted. `latency` starts a second process that enqueues (`pace`): a worker that enqueues its own jobs would know of them.
import { execFile, spawn } from "node:child_process";
import { createRequire } from "node:module";

export const load = createRequire(process.env.MODULES + "/");

const moment = () => Number(process.hrtime.bigint() / 1000n); // microseconds, the same clock in every process
const seconds = (begun) => (moment() - begun) / 1e6;
const tell = (found) => process.stdout.write(JSON.stringify(found) + "\n");
const CHUNK = 1000;
const PAUSE_MS = 25;

// queue: setup(), open(), add([payload], key), work(concurrency, variant, handle) -> async stop, close()
// Jobs with the same key run one after the other.
export async function drive(queue) {
  const [command, ...words] = process.argv.slice(2);
  const count = Number(words[0]);
  if (command === "setup") {
    await queue.setup();
    tell({});
  } else if (command === "bulk") {
    await queue.open();
    const begun = moment();
    for (let done = 0; done < count; done += CHUNK) {
      await queue.add(Array.from({ length: Math.min(CHUNK, count - done) }, () => ({})));
    }
    tell({ seconds: seconds(begun) });
  } else if (command === "single") {
    await queue.open();
    let left = count;
    const caller = async () => {
      while (left-- > 0) await queue.add([{}]);
    };
    const begun = moment();
    await Promise.all(Array.from({ length: Number(words[1]) }, caller));
    tell({ seconds: seconds(begun) });
  } else if (command === "drain") {
    let [done, first, last] = [0, 0, 0];
    const all = Promise.withResolvers();
    const stop = await queue.work(Number(words[1]), words[2], () => {
      first ||= moment();
      if (++done === count) {
        last = moment();
        all.resolve();
      }
    });
    await all.promise;
    await stop();
    tell({ seconds: (last - first) / 1e6 });
  } else if (command === "latency") {
    const ms = [];
    const all = Promise.withResolvers();
    const stop = await queue.work(Number(words[1]), words[2], (payload) => {
      ms.push((moment() - payload.sent) / 1e3);
      if (ms.length === count) all.resolve();
    });
    // Until the worker is up and has gone to sleep.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const pace = spawn(process.execPath, [process.argv[1], "pace", String(count)], { stdio: ["ignore", "ignore", "inherit"] });
    pace.on("exit", (code) => code === 0 || all.reject(new Error(`pace ended with ${code}`)));
    await all.promise;
    await stop();
    tell({ ms });
  } else if (command === "contend") {
    // Several callers enqueue jobs with keys, one by one, while the worker runs or before. Each job
    // starts a program.
    const [callers, keys, concurrency] = words.slice(1, 4).map(Number);
    const ms = [];
    const enqueue = async () => {
      let next = 0;
      const caller = async () => {
        for (let at = next++; at < count; at = next++) {
          const begun = moment();
          await queue.add([{}], `k${at % keys}`);
          ms.push((moment() - begun) / 1e3);
        }
      };
      await Promise.all(Array.from({ length: callers }, caller));
    };
    let [done, first, last] = [0, 0, 0];
    const all = Promise.withResolvers();
    const work = () =>
      queue.work(concurrency, "keyed", async () => {
        first ||= moment();
        await new Promise((resolve) => execFile("/bin/true", resolve));
        if (++done === count) {
          last = moment();
          all.resolve();
        }
      });
    await queue.open();
    let stop;
    if (words[4] === "live") {
      stop = await work();
      await enqueue();
    } else {
      await enqueue();
      stop = await work();
    }
    await all.promise;
    await stop();
    tell({ seconds: (last - first) / 1e6, ms });
  } else if (command === "pace") {
    await queue.open();
    for (let sent = 0; sent < count; sent++) {
      await queue.add([{ sent: moment() }]);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  } else {
    throw new Error(`${command} is no command`);
  }
  await queue.close();
  process.exit(0);
}
