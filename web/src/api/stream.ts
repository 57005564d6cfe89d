// One stream a tab, for all that the page follows.
//
//   subscribe ─▶ subscribers ─▶ (gather) ─▶ open from their places ─▶ messages ─▶ those whose place is behind them
//                     ▲                          │ lost, silent, other subscriptions
//                     └──────────────────────────┘ again, from the places held
//
// While nobody sees the tab it rests: browsers have six connections to a server, for all tabs together.
// Every subscriber holds its own place, and is handed an event only if that is behind it: nothing is lost, nothing comes
// twice, whatever happens to the connection. Read by `fetch`, because EventSource sends no token.
import { moved, places_of, query_of, type Places } from './places';
import { problem_of, type Problem } from './problem';
import { Reader, type Message } from './sse';

/** An event as the server tells it: of a run, of a node or of a pool. Each kind has fields of its own. */
export type StreamEvent = { event: string; seq: number; at: string; run?: string } & Record<string, unknown>;
export type Connection = 'live' | 'reconnecting' | 'stale';

/** Silence longer than that is death: the server says something every 15 s. */
const SILENCE_MS = 40_000;
/** Away longer than that, what is shown is called stale. */
export const STALE_MS = 5_000;
const FIRST_WAIT_MS = 250;
const LAST_WAIT_MS = 10_000;
/** Subscriptions of one page come together; so the connection is opened once for them. */
const GATHER_MS = 20;

/** What came together: a piece of the connection at a time, in order. */
export type Hear = (events: StreamEvent[]) => void;
type Follower = { after: number; hear: Hear; gone?: (() => void) | undefined };
type Batches = Map<Follower, StreamEvent[]>;

export type Outside = {
  fetch: (address: string, init: RequestInit) => Promise<Response>;
  token: () => string | null;
  /** Told of every change. */
  tell: (connection: Connection) => void;
  refused: (problem: Problem) => void;
  random?: () => number;
};

export class Stream {
  readonly #outside: Outside;
  #runs = new Map<string, Set<Follower>>();
  #nodes = new Set<Follower>();
  #pools = new Set<Follower>();
  #changes = new Set<() => void>();
  #connection: Connection = 'reconnecting';
  #open: AbortController | null = null;
  #failures = 0;
  #is_resting = false;
  #next: ReturnType<typeof setTimeout> | null = null;
  #stale: ReturnType<typeof setTimeout> | null = null;
  /** Counts openings: what belongs to an older one is dropped. */
  #turn = 0;

  constructor(outside: Outside) {
    this.#outside = outside;
  }

  get connection(): Connection {
    return this.#connection;
  }

  /** Events of a run behind `after`. `gone`: the run is not there any more. */
  subscribe(run: string, after: number, hear: Hear, gone?: () => void): () => void {
    const follower: Follower = { after, hear, gone };
    const followers = this.#runs.get(run) ?? new Set();
    this.#runs.set(run, followers.add(follower));
    this.#gather();
    return () => {
      followers.delete(follower);
      if (followers.size === 0 && this.#runs.get(run) === followers) {
        this.#runs.delete(run);
        this.#gather();
      }
    };
  }

  nodes(after: number, hear: Hear): () => void {
    return this.#follow(this.#nodes, { after, hear });
  }

  pools(after: number, hear: Hear): () => void {
    return this.#follow(this.#pools, { after, hear });
  }

  /** Something in the store changed. The server says so too whenever a connection is opened: something may have been missed. */
  changes(hear: () => void): () => void {
    const is_first = this.#changes.size === 0;
    this.#changes.add(hear);
    if (is_first) this.#gather();
    return () => {
      this.#changes.delete(hear);
      if (this.#changes.size === 0) this.#gather();
    };
  }

  /** At once instead of after its pause: the host is on the net again, or somebody looks again. */
  hurry(): void {
    if (this.#connection !== 'live' && !this.#is_resting && this.#wants()) {
      this.#failures = 0;
      this.#later(0);
    }
  }

  /** Nobody looks: the connection is left to those that somebody sees. Subscriptions and their places stay. */
  rest(): void {
    this.#is_resting = true;
    this.stop();
  }

  /** Somebody looks again. What is shown counts as live, unless there is no connection soon. */
  wake(): void {
    if (!this.#is_resting) return this.hurry();
    this.#is_resting = false;
    if (!this.#wants()) return;
    this.#failures = 0;
    this.#stale ??= setTimeout(() => this.#become('stale'), STALE_MS);
    this.#later(0);
  }

  /** Ends the connection; subscriptions stay and open it again when they change. */
  stop(): void {
    this.#cut();
    if (this.#next !== null) clearTimeout(this.#next);
    if (this.#stale !== null) clearTimeout(this.#stale);
    this.#next = this.#stale = null;
  }

  #follow(followers: Set<Follower>, follower: Follower): () => void {
    followers.add(follower);
    this.#gather();
    return () => {
      followers.delete(follower);
      if (followers.size === 0) this.#gather();
    };
  }

  #wants(): boolean {
    return this.#runs.size > 0 || this.#nodes.size > 0 || this.#pools.size > 0 || this.#changes.size > 0;
  }

  #gather(): void {
    this.#later(GATHER_MS);
  }

  #later(wait: number): void {
    if (this.#next !== null) clearTimeout(this.#next);
    this.#next = setTimeout(() => {
      this.#next = null;
      void this.#reopen();
    }, wait);
  }

  #cut(): void {
    this.#turn += 1;
    this.#open?.abort();
    this.#open = null;
  }

  /** Where everybody is: the one that is furthest behind decides. */
  #places(): Places {
    const least = (followers: Iterable<Follower>) => Math.min(...[...followers].map((follower) => follower.after));
    return {
      runs: [...this.#runs].map(([run, followers]) => ({ run, after: least(followers) })),
      nodes: this.#nodes.size > 0 ? least(this.#nodes) : null,
      pools: this.#pools.size > 0 ? least(this.#pools) : null,
    };
  }

  async #reopen(): Promise<void> {
    this.#cut();
    if (this.#is_resting || !this.#wants() || this.#outside.token() === null) return;
    const turn = this.#turn;
    const cut = new AbortController();
    this.#open = cut;
    try {
      await this.#read(turn, cut);
    } catch {
      // However it ended, it is opened again.
    }
    if (turn === this.#turn) this.#lost();
  }

  async #read(turn: number, cut: AbortController): Promise<void> {
    const places = this.#places();
    let silence = setTimeout(() => cut.abort(), SILENCE_MS);
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => cut.abort(), SILENCE_MS);
    };
    try {
      const answer = await this.#outside.fetch(`/v1/events?${query_of(places, this.#changes.size > 0)}`, {
        headers: { accept: 'text/event-stream', authorization: `Bearer ${this.#outside.token() ?? ''}` },
        signal: cut.signal,
        cache: 'no-store',
        credentials: 'omit',
      });
      if (turn !== this.#turn) return;
      if (!answer.ok) return await this.#not_opened(answer);
      if (answer.body === null) return;
      this.#live();
      await this.#messages(answer.body, places, turn, heard);
    } finally {
      clearTimeout(silence);
      cut.abort();
    }
  }

  async #messages(body: ReadableStream<Uint8Array>, asked: Places, turn: number, heard: () => void): Promise<void> {
    const reader = new Reader();
    const decoder = new TextDecoder();
    const source = body.getReader();
    let places = asked;
    for (;;) {
      const { done, value } = await source.read();
      if (done || turn !== this.#turn) return;
      heard();
      const batches: Batches = new Map();
      let is_changed = false;
      for (const message of reader.push(decoder.decode(value, { stream: true }))) {
        if (message.event === 'changed') is_changed = true;
        else places = this.#sort(message, places, batches);
      }
      for (const [follower, events] of batches) safely(() => follower.hear(events));
      if (is_changed) this.#changed();
    }
  }

  /** Puts an event into the batch of everybody who has not had it. */
  #sort(message: Message, before: Places, batches: Batches): Places {
    const behind = message.id === null ? null : places_of(message.id, before);
    const move = behind && moved(before, behind);
    if (!behind || !move) return before;
    const event = JSON.parse(message.data) as StreamEvent;
    const { source, seq } = move;
    const followers = source.of === 'run' ? this.#runs.get(source.run) : source.of === 'nodes' ? this.#nodes : this.#pools;
    for (const follower of followers ?? []) {
      if (follower.after >= seq) continue;
      follower.after = seq;
      const batch = batches.get(follower);
      if (batch) batch.push(event);
      else batches.set(follower, [event]);
    }
    return behind;
  }

  #changed(): void {
    for (const hear of [...this.#changes]) safely(hear);
  }

  async #not_opened(answer: Response): Promise<void> {
    const problem = await problem_of(answer);
    if (problem.status === 401) {
      this.stop();
      this.#outside.refused(problem);
    } else if (problem.status === 404) {
      await this.#forget_gone();
    }
  }

  /** One run that is not there any more must not take the others their stream: finds it, says so, goes on without it. */
  async #forget_gone(): Promise<void> {
    for (const [run, followers] of [...this.#runs]) {
      const answer = await this.#outside.fetch(`/v1/runs/${run}/events?limit=1`, {
        headers: { authorization: `Bearer ${this.#outside.token() ?? ''}` },
        credentials: 'omit',
      });
      if (answer.status !== 404) continue;
      this.#runs.delete(run);
      for (const follower of followers) safely(() => follower.gone?.());
    }
  }

  #live(): void {
    this.#failures = 0;
    if (this.#stale !== null) clearTimeout(this.#stale);
    this.#stale = null;
    this.#become('live');
  }

  #lost(): void {
    if (this.#connection === 'live') this.#become('reconnecting');
    this.#stale ??= setTimeout(() => this.#become('stale'), STALE_MS);
    const wait = Math.min(LAST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures);
    this.#failures += 1;
    // Half of it by chance, so that a server that comes back is not met by everybody at once.
    this.#later(wait / 2 + (wait / 2) * (this.#outside.random ?? Math.random)());
  }

  #become(connection: Connection): void {
    if (this.#connection === connection) return;
    this.#connection = connection;
    this.#outside.tell(connection);
  }
}

/** One listener's fault is not the others'. */
function safely(act: () => void): void {
  try {
    act();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
