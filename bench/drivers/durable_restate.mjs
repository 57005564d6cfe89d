// Three durable steps a run, by Restate: serves them, makes them known to the server, and asks for them. RUNS AT_ONCE SAMPLES,
// ports of the server in INGRESS and ADMIN, the packages in NPM.
import http from "node:http";
import http2 from "node:http2";
import { createRequire } from "node:module";

const restate = createRequire(`${process.env.NPM}/package.json`)("@restatedev/restate-sdk");
const [runs, atOnce, samples] = process.argv.slice(2, 5).map(Number);
const { INGRESS, ADMIN } = process.env;

const three = restate.service({
  name: "bench",
  handlers: {
    three: async (ctx, number) => {
      for (const step of ["one", "two", "three"]) number = await ctx.run(step, () => number + 1);
      return number;
    },
  },
});

const agent = new http.Agent({ keepAlive: true, maxSockets: atOnce });

function post(port, path, body) {
  return new Promise((resolve, reject) => {
    const data = JSON.stringify(body);
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(data) };
    const asked = http.request({ host: "127.0.0.1", port, path, method: "POST", headers, agent }, (answer) => {
      let text = "";
      answer.on("data", (part) => (text += part));
      answer.on("end", () => (answer.statusCode < 300 ? resolve(text) : reject(new Error(`${answer.statusCode} ${text}`))));
    });
    asked.on("error", reject);
    asked.end(data);
  });
}

async function timed(number) {
  const begun = performance.now();
  const told = await post(INGRESS, "/bench/three", number);
  if (Number(told) !== number + 3) throw new Error(`${told} instead of ${number + 3}`);
  return performance.now() - begun;
}

const server = http2.createServer(restate.endpoint().bind(three).http2Handler());
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
await post(ADMIN, "/deployments", { uri: `http://127.0.0.1:${server.address().port}`, force: true });
for (let number = 0; number < 20; number++) await timed(number);
const alone = [];
for (let number = 0; number < samples; number++) alone.push(await timed(number));
alone.sort((one, other) => one - other);
const begun = performance.now();
let next = 0;
const one = async () => {
  while (next < runs) await timed(next++);
};
await Promise.all(Array.from({ length: atOnce }, one));
const seconds = (performance.now() - begun) / 1000;
console.log(JSON.stringify({ seconds, p50_ms: alone[Math.floor(alone.length / 2)] }));
process.exit(0);
