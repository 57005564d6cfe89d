// The real program on a temporary store: started, asked, stopped, and started again at the same place.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('../..', import.meta.url));
const START_MS = 20_000;
const STOP_MS = 15_000;

export function binary(): string {
  const path = resolve(process.env['LANEWAY_BIN'] ?? join(here, '../target/debug/laneway'));
  if (!existsSync(path)) throw new Error(`${path} is not there: build it with \`cargo build --bin laneway\`, or name another in LANEWAY_BIN`);
  return path;
}

/** A port that was free just now. */
export async function free_port(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export type Options = {
  /** More arguments of `laneway serve`. */
  args?: string[];
  env?: Record<string, string>;
  /** The node's name; `here` without one. */
  node?: string;
  /** A store for many nodes; one of its own in its directory without it. */
  store?: string;
};

/** A schema of its own on the Postgres that `cargo xtask web` or `cargo xtask postgres` lends. */
export function postgres(): string {
  const server = process.env['LANEWAY_TEST_POSTGRES'];
  if (!server) throw new Error('there is no Postgres: run this with `cargo xtask postgres npm run e2e`, which names one in LANEWAY_TEST_POSTGRES');
  const name = `web_${process.pid}_${Date.now()}`;
  execFileSync('psql', [server, '-qc', `CREATE SCHEMA ${name}`]);
  return `${server}${server.includes('?') ? '&' : '?'}options=-csearch_path%3D${name}`;
}

export class Program {
  readonly directory: string;
  readonly port: number;
  readonly #options: Options;
  #child: ChildProcess | null = null;
  #said = '';

  private constructor(directory: string, port: number, options: Options) {
    this.directory = directory;
    this.port = port;
    this.#options = options;
  }

  static async start(options: Options = {}): Promise<Program> {
    const program = new Program(mkdtempSync(join(tmpdir(), 'laneway-e2e-')), await free_port(), options);
    try {
      await program.start();
    } catch (error) {
      await program.end();
      throw error;
    }
    return program;
  }

  get store(): string {
    return this.#options.store ?? join(this.directory, 'laneway.db');
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The admin's token, which the first start makes. */
  get token(): string {
    return readFileSync(join(this.directory, 'admin.token'), 'utf8').trim();
  }

  /** A link that signs in once. */
  link(): string {
    // The token of a server lies beside its store.
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.directory, LANEWAY_DATA_DIR: this.directory, LANEWAY_STORE: this.store };
    return execFileSync(binary(), ['web', '--server', this.url], { cwd: this.directory, env, encoding: 'utf8' }).trim();
  }

  async start(): Promise<void> {
    this.#said = '';
    const args = ['--store', this.store, 'serve', '--listen', `127.0.0.1:${this.port}`, '--node-address', this.#options.node ?? 'here', ...(this.#options.args ?? [])];
    const env = { PATH: process.env['PATH'] ?? '', HOME: this.directory, LANEWAY_DATA_DIR: this.directory, ...this.#options.env };
    const child = spawn(binary(), args, { cwd: this.directory, env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    await new Promise<void>((done, fail) => {
      const late = setTimeout(() => fail(new Error(`it did not start:\n${this.#said}`)), START_MS);
      const hear = (data: Buffer) => {
        this.#said += data.toString();
        if (this.#said.includes('listening at ')) {
          clearTimeout(late);
          done();
        }
      };
      child.stdout?.on('data', hear);
      child.stderr?.on('data', hear);
      child.once('exit', (code) => fail(new Error(`it ended with ${code}:\n${this.#said}`)));
    });
  }

  /** In good order; what still runs after a moment is killed with it. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (!child || child.exitCode !== null) return;
    const ended = new Promise<void>((done) => child.once('exit', () => done()));
    child.kill('SIGINT');
    const again = setTimeout(() => child.kill('SIGINT'), 1_000);
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await ended;
    clearTimeout(again);
    clearTimeout(kill);
  }

  async end(): Promise<void> {
    await this.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** A command of the same program on the same store. */
  async command(...args: string[]): Promise<string> {
    const child = spawn(binary(), ['--store', this.store, ...args], {
      cwd: this.directory,
      env: { PATH: process.env['PATH'] ?? '', HOME: this.directory },
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (data: Buffer) => (out += data.toString()));
    child.stderr.on('data', (data: Buffer) => (err += data.toString()));
    const code = await new Promise<number | null>((done) => child.once('exit', done));
    if (code !== 0) throw new Error(`laneway ${args.join(' ')} ended with ${code}: ${err}`);
    return out;
  }

  file(name: string, text: string): string {
    const path = join(this.directory, name);
    writeFileSync(path, text);
    return path;
  }

  async ask<T>(method: string, path: string, body?: unknown, token = this.token): Promise<T> {
    const answer = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === '' ? null : JSON.parse(text)) as T;
  }

  apply(document: string): Promise<{ workflow: string; version: number }> {
    return this.ask('POST', '/v1/workflows', { document });
  }

  async submit(what: ({ document: string } | { workflow: string }) & { not_before?: string }, params: Record<string, unknown> = {}): Promise<string> {
    return (await this.ask<{ run: string }>('POST', '/v1/runs', { ...what, params })).run;
  }

  /** Waits on the run's own events until one is there. */
  async event(run: string, is_it: (event: Record<string, unknown>) => boolean, within = 20_000): Promise<Record<string, unknown>> {
    const cut = AbortSignal.timeout(within);
    const answer = await fetch(`${this.url}/v1/events?runs=${run}:0`, { headers: { authorization: `Bearer ${this.token}` }, signal: cut });
    let rest = '';
    const decoder = new TextDecoder();
    for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(piece, { stream: true });
      const lines = rest.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines.filter((line) => line.startsWith('data:'))) {
        const event = JSON.parse(line.slice(5)) as Record<string, unknown>;
        if (is_it(event)) return event;
      }
    }
    throw new Error('the stream ended');
  }

  async until_ended(run: string): Promise<string> {
    await this.event(run, (event) => event['event'] === 'run_finished');
    return (await this.ask<{ status: string }>('GET', `/v1/runs/${run}`)).status;
  }
}

