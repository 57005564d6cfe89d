import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { STALE_MS, Stream, type Connection, type StreamEvent } from './stream';

const ONE = '0199f2a0-0000-7000-8000-1a2b3c4d5e6f';
const TWO = '0199f2a0-0000-7000-8000-1a2b3c4d5e70';

/** A server in the test's hand: each opening waits for what the test makes of it. */
class Server {
  opened: Opening[] = [];
  /** Answers for openings to come; without one they stay open. */
  next: Response[] = [];
  gone = new Set<string>();

  fetch = (address: string, init: RequestInit): Promise<Response> => {
    const url = new URL(address, 'http://here');
    if (url.pathname !== '/v1/events') {
      const run = url.pathname.split('/')[3] ?? '';
      return Promise.resolve(new Response('{}', { status: this.gone.has(run) ? 404 : 200 }));
    }
    const opening = new Opening(url, init.signal as AbortSignal);
    this.opened.push(opening);
    const answer = this.next.shift();
    return Promise.resolve(answer ?? new Response(opening.body));
  };

  get last(): Opening {
    const opening = this.opened.at(-1);
    if (!opening) throw new Error('nothing was opened');
    return opening;
  }
}

class Opening {
  readonly asked: Record<string, string>;
  readonly body: ReadableStream<Uint8Array>;
  #out!: ReadableStreamDefaultController<Uint8Array>;
  is_cut = false;

  constructor(url: URL, signal: AbortSignal) {
    this.asked = Object.fromEntries(url.searchParams);
    this.body = new ReadableStream({ start: (out) => void (this.#out = out) });
    signal.addEventListener('abort', () => {
      this.is_cut = true;
      try {
        this.#out.error(new DOMException('cut', 'AbortError'));
      } catch {
        // It had ended.
      }
    });
  }

  async send(text: string): Promise<void> {
    this.#out.enqueue(new TextEncoder().encode(text));
    await vi.advanceTimersByTimeAsync(0);
  }

  event(id: string, seq: number, name = 'task_started'): Promise<void> {
    return this.send(`id: ${id}\nevent: ${name}\ndata: ${JSON.stringify({ event: name, seq, at: '2026-01-01T00:00:00Z' })}\n\n`);
  }

  async end(): Promise<void> {
    this.#out.close();
    await vi.advanceTimersByTimeAsync(0);
  }
}

let server: Server;
let told: Connection[];
let refused: number[];
let stream: Stream;

beforeEach(() => {
  vi.useFakeTimers();
  server = new Server();
  told = [];
  refused = [];
  stream = new Stream({
    fetch: server.fetch,
    token: () => 'secret',
    tell: (connection) => told.push(connection),
    refused: (problem) => refused.push(problem.status),
    random: () => 0,
  });
});
afterEach(() => {
  stream.stop();
  vi.useRealTimers();
});

const settle = (ms = 30) => vi.advanceTimersByTimeAsync(ms);
function heard(): { events: number[]; hear: (events: StreamEvent[]) => void } {
  const events: number[] = [];
  return { events, hear: (more) => events.push(...more.map((event) => event.seq)) };
}

test('subscriptions that come together open one connection', async () => {
  stream.subscribe(ONE, 3, () => {});
  stream.subscribe(TWO, 0, () => {});
  stream.nodes(7, () => {});
  stream.changes(() => {});
  await settle();
  expect(server.opened.length).toBe(1);
  expect(server.last.asked).toEqual({ runs: `${ONE}:3,${TWO}:0`, nodes: '7', changes: '1' });
  expect(told).toEqual(['live']);
});

test('an event reaches those it belongs to, by the place in its id', async () => {
  const [one, two, nodes, pools] = [heard(), heard(), heard(), heard()];
  stream.subscribe(ONE, 0, one.hear);
  stream.subscribe(TWO, 0, two.hear);
  stream.nodes(0, nodes.hear);
  stream.pools(4, pools.hear);
  await settle();
  await server.last.event('1.0~0^4', 1);
  await server.last.event('1.1~0^4', 1);
  await server.last.event('1.1~1^4', 1);
  await server.last.event('1.1~1^5', 5);
  expect([one.events, two.events, nodes.events, pools.events]).toEqual([[1], [1], [1], [5]]);
});

test('what came in one piece is handed over together', async () => {
  const batches: number[][] = [];
  stream.subscribe(ONE, 0, (events) => batches.push(events.map((event) => event.seq)));
  await settle();
  const text = [1, 2, 3].map((seq) => `id: ${seq}\nevent: e\ndata: {"event":"e","seq":${seq}}\n\n`).join('');
  await server.last.send(text.slice(0, 60));
  await server.last.send(text.slice(60));
  expect(batches.flat()).toEqual([1, 2, 3]);
  expect(batches.length).toBeLessThan(3);
});

test('a lost connection goes on behind the last event, without a gap or a repeat', async () => {
  const one = heard();
  stream.subscribe(ONE, 0, one.hear);
  await settle();
  await server.last.event('1', 1);
  await server.last.event('2', 2);
  await server.last.end();
  expect(told).toEqual(['live', 'reconnecting']);
  await settle(200);
  expect(server.opened.length).toBe(2);
  expect(server.last.asked['runs']).toBe(`${ONE}:2`);
  // A server that repeats itself is not heard twice.
  await server.last.event('3', 3);
  expect(one.events).toEqual([1, 2, 3]);
  expect(told).toEqual(['live', 'reconnecting', 'live']);
});

test('half an event that was cut off is not an event; it comes whole later', async () => {
  const one = heard();
  stream.subscribe(ONE, 0, one.hear);
  await settle();
  await server.last.send('id: 1\nevent: e\ndata: {"event":"e","seq":1}\n');
  await server.last.end();
  expect(one.events).toEqual([]);
  await settle(200);
  expect(server.last.asked['runs']).toBe(`${ONE}:0`);
  await server.last.event('1', 1);
  expect(one.events).toEqual([1]);
});

test('another subscription opens anew from the places that are held', async () => {
  const [one, two] = [heard(), heard()];
  stream.subscribe(ONE, 0, one.hear);
  await settle();
  await server.last.event('5', 5);
  const first = server.last;
  stream.subscribe(TWO, 9, two.hear);
  await settle();
  expect(first.is_cut).toBe(true);
  expect(server.last.asked['runs']).toBe(`${ONE}:5,${TWO}:9`);
  await server.last.event('6.9', 6);
  await server.last.event('6.10', 10);
  expect([one.events, two.events]).toEqual([[5, 6], [10]]);
});

test('two who follow one run from different places each get what they lack', async () => {
  const [early, late] = [heard(), heard()];
  stream.subscribe(ONE, 4, late.hear);
  await settle();
  stream.subscribe(ONE, 1, early.hear);
  await settle();
  expect(server.last.asked['runs']).toBe(`${ONE}:1`);
  for (const seq of [2, 3, 4, 5]) await server.last.event(String(seq), seq);
  expect(early.events).toEqual([2, 3, 4, 5]);
  expect(late.events).toEqual([5]);
});

test('who has ended hears nothing more, and the last one closes the connection', async () => {
  const one = heard();
  const end = stream.subscribe(ONE, 0, one.hear);
  await settle();
  end();
  await server.last.event('1', 1);
  expect(one.events).toEqual([]);
  await settle();
  expect(server.last.is_cut).toBe(true);
  expect(server.opened.length).toBe(1);
});

test('it is called stale only after a while, and pauses grow', async () => {
  stream.subscribe(ONE, 0, () => {});
  await settle();
  server.next = Array.from({ length: 40 }, () => new Response('', { status: 503 }));
  await server.last.end();
  expect(told).toEqual(['live', 'reconnecting']);
  await settle(STALE_MS - 200);
  expect(told).toEqual(['live', 'reconnecting']);
  await settle(400);
  expect(told).toEqual(['live', 'reconnecting', 'stale']);
  const tries = server.opened.length;
  await settle(60_000);
  // Half of ten seconds, the shortest pause there is in the end.
  expect(server.opened.length - tries).toBeLessThanOrEqual(13);
  server.next = [];
  stream.hurry();
  await settle(1);
  expect(told.at(-1)).toBe('live');
});

test('lists ask again on every change, once for those that come together', async () => {
  let count = 0;
  stream.changes(() => (count += 1));
  await settle();
  const changed = 'event: changed\ndata: {"at":"2026-01-01T00:00:00Z"}\n\n';
  await server.last.send(changed);
  expect(count).toBe(1);
  await server.last.end();
  await settle(200);
  await server.last.send(changed + changed);
  expect(count).toBe(2);
});

test('while nobody looks it holds no connection, and goes on behind the last event', async () => {
  const [one, two] = [heard(), heard()];
  stream.subscribe(ONE, 0, one.hear);
  await settle();
  await server.last.event('1', 1);
  stream.rest();
  expect(server.last.is_cut).toBe(true);
  stream.subscribe(TWO, 4, two.hear);
  stream.hurry();
  await settle(60_000);
  expect(server.opened.length).toBe(1);
  // Nothing is wrong: nobody is told so.
  expect(told).toEqual(['live']);
  stream.wake();
  await settle(1);
  expect(server.opened.length).toBe(2);
  expect(server.last.asked['runs']).toBe(`${ONE}:1,${TWO}:4`);
  await server.last.event('2.4', 2);
  expect(one.events).toEqual([1, 2]);
  expect(told).toEqual(['live']);
});

test('what somebody comes back to is stale, if there is no connection soon', async () => {
  stream.subscribe(ONE, 0, () => {});
  await settle();
  stream.rest();
  await settle(60_000);
  server.next = Array.from({ length: 40 }, () => new Response('', { status: 503 }));
  stream.wake();
  await settle(STALE_MS + 100);
  expect(told.at(-1)).toBe('stale');
});

test('silence is taken for death', async () => {
  stream.subscribe(ONE, 0, () => {});
  await settle();
  await settle(30_000);
  await server.last.send(': keep-alive\n\n');
  await settle(30_000);
  expect(server.opened.length).toBe(1);
  await settle(15_000);
  expect(server.opened.length).toBe(2);
});

test('a refused token ends it and is told', async () => {
  server.next = [new Response(JSON.stringify({ code: 'bad_token', status: 401 }), { status: 401 })];
  stream.subscribe(ONE, 0, () => {});
  await settle(60_000);
  expect(refused).toEqual([401]);
  expect(server.opened.length).toBe(1);
});

test('a run that is gone is left out, and the others go on', async () => {
  const two = heard();
  let gone = 0;
  server.gone.add(ONE);
  server.next = [new Response('{}', { status: 404 })];
  stream.subscribe(ONE, 0, () => {}, () => (gone += 1));
  stream.subscribe(TWO, 0, two.hear);
  await settle(500);
  expect(gone).toBe(1);
  expect(server.last.asked['runs']).toBe(`${TWO}:0`);
  await server.last.event('1', 1);
  expect(two.events).toEqual([1]);
});

test('one listener’s fault does not keep an event from the others', async () => {
  const one = heard();
  const thrown: unknown[] = [];
  const catcher = (error: unknown) => thrown.push(error);
  process.on('uncaughtException', catcher);
  stream.subscribe(ONE, 0, () => {
    throw new Error('mine');
  });
  stream.subscribe(ONE, 0, one.hear);
  await settle();
  await server.last.event('1', 1);
  expect(one.events).toEqual([1]);
  expect(thrown.length).toBe(1);
  process.off('uncaughtException', catcher);
});
