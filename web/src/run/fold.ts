// A run as its events tell it on: the page's side of core's `run_state.rs`. It begins with an answer of the server and goes on with the
// events behind it. It decides nothing and refuses nothing; an event that does not follow is a gap, and the run is asked for again. Pure.

import type { components } from '../api/schema';
import type { StreamEvent } from '../api/stream';
import type { TaskStatus } from '../look/states';
import type { RunStatus } from '../route/routes';

export type Run = components['schemas']['Run'];
export type RunTask = components['schemas']['Task'];
export type Cause = components['schemas']['Cause'];

export interface Task {
  /** By which it is asked for: the step's, or `STEP[INDEX]`. */
  name: string;
  step: string;
  index: number | null;
  item: unknown;
  status: TaskStatus;
  attempt: number;
  node: string | null;
  reason: string | null;
  detail: string | null;
  exit_code: number | null;
  output: Record<string, unknown>;
  /** Milliseconds since 1970, as all times here. */
  started_at: number | null;
  finished_at: number | null;
  took_ms: number | null;
  run_at: number | null;
  /** What the server said when it was asked last; `null` as soon as the task has moved. */
  cause: Cause | null;
  /** The signal that it waits for. */
  signal: string | null;
  wait: { until: number | null; timeout_at: number | null; signaled_by: string | null; reason: string | null; child: string | null } | null;
  effects: { name: string; key: string; status: string; attempt: number; exit_code: number | null }[];
  items: Items | null;
}

export interface Items {
  total: number;
  added: number;
  states: Record<string, number>;
}

export interface Merged {
  group: string;
  files: number;
  conflicts: string[];
  at: number;
}

/** What became of an event. */
export type Taken = 'taken' | 'known' | 'gap';

export function moment(value: unknown): number | null {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string') return null;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? null : parsed;
}

export function task_name(step: string, index: number | null | undefined): string {
  return index == null ? step : `${step}[${index}]`;
}

export function task_of(task: RunTask): Task {
  const wait = task.wait ?? null;
  return {
    name: task_name(task.step, task.index),
    step: task.step,
    index: task.index ?? null,
    item: task.item ?? null,
    status: task.status as TaskStatus,
    attempt: task.attempt,
    node: task.node ?? null,
    reason: task.reason ?? null,
    detail: task.detail ?? null,
    exit_code: task.exit_code ?? null,
    output: task.output as Record<string, unknown>,
    started_at: moment(task.started_at),
    finished_at: moment(task.finished_at),
    took_ms: task.took_ms ?? null,
    run_at: moment(task.run_at),
    cause: task.cause ?? null,
    signal: task.cause?.gate === 'signal' ? (task.cause.key ?? null) : null,
    wait: wait && {
      until: moment(wait.until),
      timeout_at: moment(wait.timeout_at),
      signaled_by: wait.signaled_by ?? null,
      reason: wait.reason ?? null,
      child: wait.child ?? null,
    },
    effects: (task.effects ?? []).map((effect) => ({
      name: effect.name,
      key: effect.key ?? '',
      status: effect.status,
      attempt: effect.attempt,
      exit_code: effect.exit_code ?? null,
    })),
    items: task.items ? { ...task.items, states: { ...(task.items.states as Record<string, number>) } } : null,
  };
}

const NOTHING: Task = {
  name: '',
  step: '',
  index: null,
  item: null,
  status: 'pending',
  attempt: 0,
  node: null,
  reason: null,
  detail: null,
  exit_code: null,
  output: {},
  started_at: null,
  finished_at: null,
  took_ms: null,
  run_at: null,
  cause: null,
  signal: null,
  wait: null,
  effects: [],
  items: null,
};

export class RunFold {
  status: RunStatus;
  reason: string | null;
  /** Why it is being brought to its end, while it is. */
  closing: string | null;
  /** Until when it may clean up, while it is being canceled. */
  clean_up_until: number | null;
  paused: string[];
  /** Until when it waits, of one that was submitted for later. */
  not_before: number | null;
  submitted_at: number;
  started_at: number | null;
  finished_at: number | null;
  last_event: number;
  /** By name, in definition order, items behind the steps. */
  readonly tasks = new Map<string, Task>();
  /** Of steps, without items. */
  readonly counts: Record<string, number> = {};
  /** Names of tasks that changed since somebody took them. */
  readonly changed = new Set<string>();

  constructor(run: Run) {
    this.status = run.status as RunStatus;
    this.reason = run.reason ?? null;
    this.closing = run.closing ?? null;
    this.clean_up_until = moment(run.clean_up_until);
    this.paused = [...(run.paused ?? [])];
    this.not_before = moment(run.not_before);
    this.submitted_at = moment(run.submitted_at) ?? 0;
    this.started_at = moment(run.started_at);
    this.finished_at = moment(run.finished_at);
    this.last_event = run.last_event ?? 0;
    for (const task of run.tasks) {
      const found = task_of(task);
      this.tasks.set(found.name, found);
      if (found.index === null) this.#count(found.status, 1);
    }
  }

  get has_ended(): boolean {
    return this.status === 'succeeded' || this.status === 'failed' || this.status === 'canceled';
  }

  /** Something of it has not started: why, may change with what other runs do. */
  get has_waiting(): boolean {
    for (const { status } of this.tasks.values()) if (status === 'pending' || status === 'available') return true;
    return false;
  }

  take_changed(): string[] {
    const names = [...this.changed];
    this.changed.clear();
    return names;
  }

  apply(event: StreamEvent): Taken {
    if (event.seq <= this.last_event) return 'known';
    if (event.seq !== this.last_event + 1) return 'gap';
    this.last_event = event.seq;
    const at = moment(event.at) ?? 0;
    if (event.event.startsWith('run_')) this.#run(event, at);
    else if (event.event === 'tasks_added') this.#added(event);
    else if (event.event === 'tasks_removed') this.#removed(text(event.step));
    else if (typeof event.step === 'string') this.#task(event, this.#known(event.step), at);
    return 'taken';
  }

  #run(event: StreamEvent, at: number): void {
    switch (event.event) {
      case 'run_due':
        this.not_before = null;
        break;
      case 'run_started':
        this.not_before = null;
        this.status = 'running';
        this.started_at = at;
        break;
      case 'run_released':
        this.#withdraw(names(event.tasks));
        break;
      case 'run_halted':
        this.closing = text(event.closing);
        break;
      case 'run_canceling':
        this.closing = text(event.closing);
        this.clean_up_until = moment(event.clean_up_until);
        break;
      case 'run_paused':
        if (!this.paused.includes(text(event.scope))) this.paused = [...this.paused, text(event.scope)].sort();
        this.#withdraw(names(event.tasks));
        break;
      case 'run_resumed':
        this.paused = this.paused.filter((scope) => scope !== event.scope);
        break;
      case 'run_reopened':
        this.status = 'running';
        this.reason = null;
        this.closing = null;
        this.clean_up_until = null;
        this.finished_at = null;
        this.started_at ??= at;
        for (const name of names(event.tasks)) {
          const { step, index, item, attempt, items, effects } = this.#known(name);
          this.#put({ ...NOTHING, name, step, index, item, attempt, items, effects });
        }
        break;
      case 'run_finished':
        this.status = text(event.status) as RunStatus;
        this.reason = maybe_text(event.reason);
        this.finished_at = at;
        this.closing = null;
        this.clean_up_until = null;
        this.not_before = null;
        this.paused = [];
        break;
    }
  }

  #task(event: StreamEvent, before: Task, at: number): void {
    const attempt = typeof event.attempt === 'number' ? event.attempt : before.attempt;
    switch (event.event) {
      case 'task_available':
        this.#put({ ...forget(before), status: 'available', run_at: null });
        break;
      case 'task_started':
        // No node could take the run, and now one does.
        if (this.status === 'queued') this.status = 'running';
        this.#put({ ...before, status: 'running', attempt, node: text(event.node), started_at: at, finished_at: null, cause: null });
        break;
      case 'task_returned': {
        const was_pending = before.status === 'pending';
        const has_to_wait = this.paused.length > 0 || typeof event.attempt !== 'number';
        const status = was_pending || has_to_wait ? 'pending' : 'available';
        this.#put({ ...before, status, attempt, cause: null });
        break;
      }
      case 'task_retrying':
        this.#put({ ...before, ...ending(event), status: 'pending', attempt, run_at: moment(event.run_at), cause: null });
        break;
      case 'task_lost':
        this.#put({ ...before, ...ending({}), status: 'pending', attempt, node: text(event.node), reason: 'lost', cause: null });
        break;
      case 'task_parked': {
        const { wait } = before;
        const total = typeof event.items === 'number' ? event.items : null;
        this.#put({
          ...forget(before),
          status: 'parked',
          run_at: null,
          started_at: at,
          signal: maybe_text(event.signal),
          wait:
            total !== null
              ? wait
              : {
                  until: moment(event.until),
                  timeout_at: moment(event.timeout_at),
                  signaled_by: wait?.signaled_by ?? null,
                  reason: wait?.reason ?? null,
                  child: null,
                },
          items: total !== null ? { total, added: before.items?.added ?? 0, states: before.items?.states ?? {} } : before.items,
        });
        break;
      }
      case 'task_signaled':
        this.#put({
          ...before,
          wait: {
            until: before.wait?.until ?? null,
            timeout_at: before.wait?.timeout_at ?? null,
            signaled_by: text(event.by),
            reason: maybe_text(event.reason),
            child: null,
          },
        });
        break;
      case 'child_run_started':
        this.#put({
          ...before,
          wait: {
            until: before.wait?.until ?? null,
            timeout_at: before.wait?.timeout_at ?? null,
            signaled_by: null,
            reason: null,
            child: maybe_text(event.child),
          },
        });
        break;
      case 'task_cached':
        this.#put({ ...before, attempt });
        break;
      case 'task_skipped':
        this.#put({
          ...before,
          status: 'skipped',
          reason: maybe_text(event.why),
          detail: maybe_text(event.detail),
          run_at: null,
          finished_at: at,
          cause: null,
        });
        break;
      case 'task_finished':
        this.#put({
          ...before,
          ...ending(event),
          status: text(event.status) as TaskStatus,
          attempt,
          output: (event.output as Record<string, unknown> | undefined) ?? {},
          run_at: null,
          finished_at: at,
          cause: null,
        });
        break;
      case 'effect_started':
      case 'effect_committed':
        this.#effect(event, before, attempt);
        break;
    }
  }

  #effect(event: StreamEvent, before: Task, attempt: number): void {
    const [name, key] = [text(event.name), maybe_text(event.key) ?? ''];
    const status = event.event === 'effect_started' ? 'started' : text(event.status);
    const exit_code = typeof event.exit_code === 'number' ? event.exit_code : null;
    const others = before.effects.filter((effect) => effect.name !== name || effect.key !== key);
    const effects = [...others, { name, key, status, attempt, exit_code }];
    effects.sort((a, b) => compare(a.name, b.name) || compare(a.key, b.key));
    this.#put({ ...before, effects });
  }

  #added(event: StreamEvent): void {
    const step = text(event.step);
    const first = Number(event.first);
    const items = Array.isArray(event.items) ? (event.items as unknown[]) : [];
    const attempt = typeof event.attempts === 'number' ? event.attempts : 0;
    const owner = this.#known(step);
    const states = { ...(owner.items?.states ?? {}) };
    this.#put({ ...owner, items: { total: Number(event.total), added: first + items.length, states } });
    items.forEach((item, place) => {
      const index = first + place;
      this.#put({ ...NOTHING, name: task_name(step, index), step, index, item, attempt });
    });
  }

  #removed(step: string): void {
    this.#put({ ...this.#known(step), items: null });
    for (const task of [...this.tasks.values()]) {
      if (task.step !== step || task.index === null) continue;
      this.tasks.delete(task.name);
      this.changed.add(task.name);
    }
  }

  #withdraw(tasks: string[]): void {
    for (const name of tasks) this.#put({ ...this.#known(name), status: 'pending', cause: null });
  }

  /** A task that nobody told of before is shown all the same. */
  #known(name: string): Task {
    return this.tasks.get(name) ?? { ...NOTHING, name, step: name };
  }

  #put(task: Task): void {
    const before = this.tasks.get(task.name);
    this.tasks.set(task.name, task);
    this.changed.add(task.name);
    if (task.index === null) {
      if (before !== undefined) this.#count(before.status, -1);
      this.#count(task.status, 1);
      return;
    }
    const owner = this.tasks.get(task.step);
    if (owner?.items == null || (before !== undefined && before.status === task.status)) return;
    const { states } = owner.items;
    if (before !== undefined) states[before.status] = (states[before.status] ?? 1) - 1;
    states[task.status] = (states[task.status] ?? 0) + 1;
    this.changed.add(task.step);
  }

  #count(status: string, by: number): void {
    this.counts[status] = (this.counts[status] ?? 0) + by;
  }
}

/** What its last attempt said stands in that attempt's record. */
function forget(task: Task): Task {
  return { ...task, node: null, reason: null, detail: null, exit_code: null, took_ms: null, started_at: null, cause: null };
}

function ending(event: Record<string, unknown>): Pick<Task, 'reason' | 'detail' | 'exit_code' | 'took_ms'> {
  return {
    reason: maybe_text(event.reason),
    detail: maybe_text(event.detail),
    exit_code: typeof event.exit_code === 'number' ? event.exit_code : null,
    took_ms: typeof event.took_ms === 'number' ? event.took_ms : null,
  };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function maybe_text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function names(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : [];
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
