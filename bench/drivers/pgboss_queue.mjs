// pg-boss as the benchmark drives it; see queue.mjs. Variants:
// - `batch`: fetches 100 jobs at a time, and the next batch at once when a batch was full
// - `notify`: fetches one job at a time
// - `keyed`: as `notify`, and runs one job of a key at a time
// Notifications wake all of them; they also poll twice a second, the shortest interval it allows.
import { pathToFileURL } from "node:url";
import { drive, load } from "./queue.mjs";

const module = await import(pathToFileURL(load.resolve("pg-boss")));
const PgBoss = module.PgBoss ?? module.default;
let boss;

async function start(supervise) {
  boss = new PgBoss({ connectionString: process.env.DATABASE_URL, max: 10, useListenNotify: true, supervise, schedule: false });
  boss.on("error", (error) => console.error(String(error)));
  await boss.start();
}

await drive({
  async setup() {
    await start(false);
    await boss.createQueue("noop", { notify: true });
  },
  open: () => start(false),
  add(payloads, key) {
    if (payloads.length === 1) return boss.send("noop", payloads[0], key ? { group: { id: key } } : {});
    return boss.insert("noop", payloads.map((data) => ({ data })));
  },
  async work(concurrency, variant, handle) {
    await start(true);
    const batchSize = variant === "batch" ? 100 : 1;
    const often = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 };
    const keyed = variant === "keyed" ? { groupConcurrency: 1 } : {};
    const options = { batchSize, localConcurrency: concurrency, burstWhenBatchFull: batchSize > 1, ...often, ...keyed };
    await boss.work("noop", options, (jobs) => Promise.all(jobs.map((job) => handle(job.data))));
    return async () => {};
  },
  close: () => boss.stop({ graceful: true, timeout: 5000 }),
});
