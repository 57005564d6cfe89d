// graphile-worker as the benchmark drives it; see queue.mjs. Variants: `default`, and `batched`: a local queue of 500 jobs
// and completion that nobody waits for.
import { drive, load } from "./queue.mjs";

const { Logger, makeWorkerUtils, run, runMigrations } = load("graphile-worker");
const { Pool } = load("pg");

const logger = new Logger(() => () => {});
// It wants to know that somebody looks at errors of connections.
const pool = (max) => {
  const made = new Pool({ connectionString: process.env.DATABASE_URL, max });
  made.on("error", console.error);
  made.on("connect", (client) => client.on("error", console.error));
  return made;
};
const batched = { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } };
let pgPool, utils;

await drive({
  async setup() {
    pgPool = pool(1);
    await runMigrations({ pgPool, logger });
  },
  async open() {
    pgPool = pool(8);
    utils = await makeWorkerUtils({ pgPool, logger });
    await Promise.all(Array.from({ length: 8 }, () => pgPool.query("select 1")));
  },
  add(payloads, queueName) {
    if (payloads.length === 1) return utils.addJob("noop", payloads[0], { queueName });
    return utils.addJobs(payloads.map((payload) => ({ identifier: "noop", payload })));
  },
  async work(concurrency, variant, handle) {
    pgPool = pool(concurrency + 2);
    const preset = variant === "batched" ? batched : {};
    const taskList = { noop: async (payload) => handle(payload) };
    const runner = await run({ pgPool, concurrency, taskList, logger, noHandleSignals: true, preset });
    return () => runner.stop();
  },
  async close() {
    await utils?.release();
    await pgPool?.end().catch(() => {});
  },
});
