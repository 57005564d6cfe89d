// The pure parts of the run page: events folded into tasks, bars in lanes, and what may be done.
import { describe, expect, it } from 'vitest';
import type { StreamEvent } from '../api/stream';
import { acts_beside, is_canceling, run_acts, run_state, task_acts, type RunFacts } from './acts';
import { bars_of, History, lanes_of, span_of, ticks, type Bar } from './bars';
import { moment, RunFold, type Cause, type Run } from './fold';
import { opens_at } from './why';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000).toISOString();
const task = (step: string) => ({ step, status: 'pending', attempt: 0, output: {}, item: null, node: null });
const RUN = {
  run: '0199f2a0-0000-7000-8000-1a2b3c4d5e6f',
  workflow: 'nightly',
  status: 'queued',
  submitted_at: at(0),
  last_event: 1,
  paused: [],
  tasks: [task('a'), task('each'), task('approve')],
} as unknown as Run;

function told(...events: [string, Record<string, unknown>?][]): RunFold {
  const fold = new RunFold(RUN);
  events.forEach(([event, fields], place) => {
    const seq = place + 2;
    const line = { event, seq, at: at(seq), ...fields } as StreamEvent;
    expect(fold.apply(line)).toBe('taken');
  });
  return fold;
}
const started = (step: string, attempt = 1) => ['task_started', { step, attempt, node: 'host:1' }] as [string, Record<string, unknown>];

describe('a run', () => {
  it('goes on from an answer, takes each event once, and sees a gap', () => {
    const fold = told(['run_started', { node: 'host:1' }]);
    expect(fold.status).toBe('running');
    expect(fold.apply({ event: 'run_started', seq: 2, at: at(2) })).toBe('known');
    expect(fold.apply({ event: 'task_available', seq: 4, at: at(4), step: 'a' })).toBe('gap');
    expect(fold.last_event).toBe(2);
  });

  it('is being canceled until it has ended, whether an event or the answer said so', () => {
    const canceling = ['run_canceling', { closing: 'canceled', by: 'ada' }] as [string, Record<string, unknown>];
    const finished = ['run_finished', { status: 'canceled', reason: null }] as [string, Record<string, unknown>];
    expect(told(['run_started'], canceling).closing).toBe('canceled');
    expect(told(['run_started'], canceling, finished).closing).toBeNull();
    const asked = new RunFold({ ...RUN, status: 'running', closing: 'canceled' });
    expect([asked.closing, is_canceling(asked)]).toEqual(['canceled', true]);
    expect(is_canceling(told(['run_started']))).toBe(false);
    const cleaning = ['run_canceling', { closing: 'canceled', by: 'ada', clean_up_until: 60_000 }] as [string, Record<string, unknown>];
    const ended = ['run_canceling', { closing: 'canceled', by: 'ada', ends_clean_up: true }] as [string, Record<string, unknown>];
    expect(told(['run_started'], cleaning).clean_up_until).toBe(60_000);
    expect(told(['run_started'], cleaning, ended).clean_up_until).toBeNull();
    expect(told(['run_started'], cleaning, finished).clean_up_until).toBeNull();
  });

  it('waits for its moment until that has come, or it has ended', () => {
    const later = { ...RUN, not_before: at(60) } as Run;
    const not_before = (...facts: string[]) => {
      const fold = new RunFold(later);
      facts.forEach((event, place) => fold.apply({ event, seq: place + 2, at: at(place), status: 'canceled' } as StreamEvent));
      return fold.not_before;
    };
    expect(not_before()).toBe(moment(at(60)));
    expect(not_before('run_paused')).toBe(moment(at(60)));
    expect([not_before('run_due'), not_before('run_started'), not_before('run_finished')]).toEqual([null, null, null]);
  });

  it('counts down for a task only where time alone lets it go on', () => {
    const cause = { gate: 'not_before', holders: [], opens: '', text: '', opens_at: at(9) } as Cause;
    const wait = { until: 7, timeout_at: null, signaled_by: null, reason: null, child: null };
    const task = { status: 'pending', cause: null, wait: null, run_at: null } as Parameters<typeof opens_at>[0];
    expect(opens_at(task, null)).toBeNull();
    expect(opens_at({ ...task, cause }, null)).toBe(moment(at(9)));
    expect(opens_at({ ...task, cause }, { ...cause, opens_at: at(8) })).toBe(moment(at(8)));
    expect(opens_at({ ...task, run_at: 5 }, null)).toBe(5);
    expect(opens_at({ ...task, status: 'parked', wait }, null)).toBe(7);
    expect(opens_at({ ...task, status: 'parked', wait: { ...wait, signaled_by: 'ada' } }, null)).toBeNull();
    expect(opens_at({ ...task, status: 'running', cause, wait, run_at: 5 }, null)).toBeNull();
  });

  it('has something that waits until all of it has started or ended', () => {
    const fold = new RunFold({ ...RUN, tasks: RUN.tasks.slice(0, 1) });
    expect(fold.has_waiting).toBe(true);
    fold.apply({ event: 'task_started', seq: 2, at: at(2), step: 'a', attempt: 1, node: 'host:1' });
    expect(fold.has_waiting).toBe(false);
  });

  it('shows a task as pending whose claim was returned without an attempt', () => {
    const available = ['task_available', { step: 'a' }] as [string, Record<string, unknown>];
    expect(told(['run_started'], available, ['task_returned', { step: 'a' }]).tasks.get('a')?.status).toBe('pending');
    const taken_back = told(['run_started'], available, ['task_returned', { step: 'a', attempt: 1 }]);
    expect(taken_back.tasks.get('a')).toMatchObject({ status: 'available', attempt: 1 });
  });

  it('follows a task through a retry to its end', () => {
    const fold = told(
      ['run_started', { node: 'host:1' }],
      ['task_available', { step: 'a' }],
      started('a'),
      ['task_retrying', { step: 'a', attempt: 1, reason: 'exit', detail: 'exit code 75', exit_code: 75, took_ms: 12, run_at: Date.UTC(2026, 0, 1) }],
    );
    expect(fold.tasks.get('a')).toMatchObject({ status: 'pending', attempt: 1, reason: 'exit', exit_code: 75, run_at: Date.UTC(2026, 0, 1) });
    fold.apply({ event: 'task_available', seq: 6, at: at(6), step: 'a' });
    expect(fold.tasks.get('a')).toMatchObject({ status: 'available', reason: null, exit_code: null, node: null });
    fold.apply({ event: 'task_started', seq: 7, at: at(7), step: 'a', attempt: 2, node: 'host:2' });
    fold.apply({ event: 'task_finished', seq: 8, at: at(9), step: 'a', attempt: 2, status: 'succeeded', took_ms: 2000, output: { n: 1 } });
    expect(fold.tasks.get('a')).toMatchObject({
      status: 'succeeded',
      attempt: 2,
      node: 'host:2',
      output: { n: 1 },
      started_at: moment(at(7)),
      finished_at: moment(at(9)),
    });
    expect(fold.counts).toMatchObject({ succeeded: 1, pending: 2, running: 0 });
    expect(fold.take_changed()).toEqual(['a']);
    expect(fold.take_changed()).toEqual([]);
  });

  it('is paused by both scopes, and gives back what was available', () => {
    const fold = told(
      ['run_started', { node: 'host:1' }],
      ['task_available', { step: 'a' }],
      ['run_paused', { scope: 'workflow', by: 'ada', tasks: ['a'] }],
      ['run_paused', { scope: 'run', by: 'ada', tasks: [] }],
    );
    expect(fold.paused).toEqual(['run', 'workflow']);
    expect(fold.tasks.get('a')!.status).toBe('pending');
    fold.apply({ event: 'run_resumed', seq: 6, at: at(6), scope: 'run', by: 'ada' });
    expect(fold.paused).toEqual(['workflow']);
  });

  it('grows by the items of a list, and counts their states', () => {
    const fold = told(
      ['run_started', { node: 'host:1' }],
      ['task_parked', { step: 'each', items: 3 }],
      ['tasks_added', { step: 'each', total: 3, first: 0, items: ['x', 'y'] }],
      ['tasks_added', { step: 'each', total: 3, first: 2, items: ['z'], attempts: 4 }],
      ['task_available', { step: 'each[1]' }],
      started('each[1]'),
      ['task_finished', { step: 'each[1]', attempt: 1, status: 'failed', reason: 'exit' }],
    );
    expect(fold.tasks.get('each')).toMatchObject({ status: 'parked', items: { total: 3, added: 3 } });
    expect(fold.tasks.get('each')!.items!.states).toMatchObject({ pending: 2, failed: 1, running: 0 });
    expect(fold.tasks.get('each[2]')).toMatchObject({ item: 'z', index: 2, attempt: 4 });
    expect(fold.take_changed()).toContain('each');
    fold.apply({ event: 'tasks_removed', seq: 9, at: at(9), step: 'each' });
    expect([...fold.tasks.keys()]).toEqual(['a', 'each', 'approve']);
    expect(fold.tasks.get('each')!.items).toBeNull();
  });

  it('keeps what a task did to the world when it is opened again', () => {
    const fold = told(
      ['run_started', { node: 'host:1' }],
      ['task_available', { step: 'a' }],
      started('a'),
      ['effect_started', { step: 'a', attempt: 1, name: 'charge' }],
      ['effect_committed', { step: 'a', attempt: 1, name: 'charge', status: 'done', exit_code: 0 }],
      ['task_finished', { step: 'a', attempt: 1, status: 'failed', reason: 'exit', exit_code: 1 }],
      ['run_finished', { status: 'failed', reason: 'a failed' }],
      ['run_reopened', { why: 'retry', by: 'ada', tasks: ['a'] }],
    );
    expect(fold.status).toBe('running');
    expect(fold.tasks.get('a')).toMatchObject({ status: 'pending', attempt: 1, reason: null, effects: [{ name: 'charge', status: 'done' }] });
  });

  it('waits for a signal, and knows who gave it', () => {
    const fold = told(['run_started', { node: 'host:1' }], ['task_parked', { step: 'approve', signal: 'approved', timeout_at: 5 }]);
    expect(fold.tasks.get('approve')).toMatchObject({ status: 'parked', signal: 'approved', wait: { timeout_at: 5, signaled_by: null } });
    fold.apply({ event: 'task_signaled', seq: 4, at: at(4), step: 'approve', signal: 'approved', by: 'ada', reason: 'fine' });
    expect(fold.tasks.get('approve')!.wait).toMatchObject({ signaled_by: 'ada', reason: 'fine', timeout_at: 5 });
  });

  it('knows the run that a step has started', () => {
    const fold = told(['run_started', { node: 'host:1' }], ['task_parked', { step: 'approve', workflow: './deploy.yaml' }]);
    fold.apply({ event: 'child_run_started', seq: 4, at: at(4), step: 'approve', child: '0199f2a0-0000-7000-8000-1a2b3c4d5e6f', workflow: './deploy.yaml' });
    expect(fold.tasks.get('approve')).toMatchObject({ status: 'parked', wait: { child: '0199f2a0-0000-7000-8000-1a2b3c4d5e6f' } });
  });
});

const bar = (step: string, node: string | null, start: number, end: number | null, state = 'succeeded'): Bar => ({
  task: step,
  step,
  attempt: 1,
  node,
  start,
  end,
  state,
});

describe('a timeline', () => {
  it('has as many lanes of a node as tasks ran there at once', () => {
    const bars = [bar('a', 'n1', 0, 10), bar('b', 'n1', 5, 8), bar('c', 'n1', 10, 12), bar('d', 'n2', 0, null, 'running'), bar('w', null, 0, 5, 'parked')];
    const lanes = lanes_of(bars, 'node', 20);
    expect(lanes.map((lane) => [lane.name, lane.slot, lane.bars.map((found) => found.step).join()])).toEqual([
      ['n1', 0, 'a,c'],
      ['n1', 1, 'b'],
      ['n2', 0, 'd'],
    ]);
  });

  it('keeps steps apart, in the order of their starts', () => {
    const lanes = lanes_of([bar('late', 'n1', 9, 10), bar('early', 'n1', 0, 3)], 'step', 20);
    expect(lanes.map((lane) => lane.name)).toEqual(['early', 'late']);
  });

  it('knows every attempt from the history', () => {
    const history = new History();
    const event = (seq: number, name: string, fields: object) => history.add({ event: name, seq, at: at(seq), ...fields } as StreamEvent);
    event(1, 'task_started', { step: 'a', attempt: 1, node: 'n1' });
    event(2, 'task_retrying', { step: 'a', attempt: 1 });
    event(3, 'task_started', { step: 'a', attempt: 2, node: 'n2' });
    event(4, 'task_lost', { step: 'a', attempt: 2, node: 'n2' });
    event(5, 'task_started', { step: 'each[3]', attempt: 1, node: 'n1' });
    expect(history.bars.map(({ task, step, attempt, state, end }) => [task, step, attempt, state, end])).toEqual([
      ['a', 'a', 1, 'failed', moment(at(2))],
      ['a', 'a', 2, 'lost', moment(at(4))],
      ['each[3]', 'each', 1, 'running', null],
    ]);
  });

  it('draws a task that goes on up to now, and none that never started', () => {
    const fold = told(['run_started', { node: 'n' }], ['task_available', { step: 'a' }], started('a'));
    const bars = bars_of(fold.tasks.values());
    expect(bars).toHaveLength(1);
    expect(span_of(bars, moment(at(60))!)).toEqual({ from: moment(at(4)), to: moment(at(60)) });
    expect(span_of([], 5)).toEqual({ from: 5, to: 6 });
  });

  it('has marks at round moments', () => {
    expect(ticks(95, 10)).toEqual([0, 10, 20, 30, 40, 50, 60, 70, 80, 90]);
    expect(ticks(3_600_000, 6)).toHaveLength(7);
    expect(ticks(86_400_000 * 30, 10).length).toBeLessThanOrEqual(11);
  });
});

describe('acts', () => {
  const run = (status: RunFacts['status'], more: Partial<RunFacts> = {}): RunFacts => ({ status, paused: [], closing: null, has_levels: false, ...more });
  it.each([
    ['queued', {}, ['pause', 'cancel']],
    ['running', {}, ['pause', 'cancel']],
    ['running', { paused: ['run'] }, ['resume', 'cancel']],
    ['running', { paused: ['run'], has_levels: true }, ['resume', 'advance', 'cancel']],
    ['running', { paused: ['workflow'] }, ['pause', 'cancel']],
    ['running', { closing: 'canceled' }, []],
    ['running', { closing: 'canceled', clean_up_until: 60_000 }, ['end_clean_up']],
    ['running', { closing: 'halted' }, ['pause', 'cancel']],
    ['failed', {}, ['retry']],
    ['canceled', {}, ['retry']],
    ['succeeded', {}, []],
  ] as const)('of a run that is %s %j', (status, more, expected) => {
    expect(run_acts(run(status, more as Partial<RunFacts>), true)).toEqual(expected);
    expect(run_acts(run(status, more as Partial<RunFacts>), false)).toEqual([]);
  });

  it.each([
    ['running', {}, 'running'],
    ['queued', { paused: ['workflow'] }, 'paused'],
    ['running', { paused: ['run'], closing: 'canceled' }, 'canceling'],
    ['running', { closing: 'run_timeout' }, 'canceling'],
    ['running', { closing: 'halted' }, 'running'],
    ['canceled', { paused: ['run'], closing: 'canceled' }, 'canceled'],
  ] as const)('one word for a run that is %s %j', (status, more, expected) => {
    expect(run_state(run(status, more as Partial<RunFacts>))).toBe(expected);
  });

  const facts = { is_item: false, reason: null, signal: null, is_signaled: false };
  it.each([
    ['pending', 'running', []],
    ['available', 'running', []],
    ['running', 'running', []],
    ['parked', 'running', ['signal']],
    ['failed', 'failed', ['retry_from', 'skip']],
    ['failed', 'running', []],
    ['failed', 'canceled', ['retry_from']],
    ['canceled', 'canceled', ['retry_from']],
    ['succeeded', 'failed', []],
    ['skipped', 'failed', []],
  ] as const)('of a task that is %s in a run that is %s', (status, of_run, expected) => {
    const task = { ...facts, status, signal: status === 'parked' ? 'approved' : null };
    expect(task_acts(run(of_run), task, true)).toEqual(expected);
    expect(task_acts(run(of_run), task, false)).toEqual([]);
  });

  it('of the run stand beside a task that has not ended', () => {
    for (const status of ['pending', 'available', 'running', 'parked'] as const) {
      expect(acts_beside(run('running'), status, true)).toEqual(['pause', 'cancel']);
      expect(acts_beside(run('running', { paused: ['run'], has_levels: true }), status, true)).toEqual(['resume', 'cancel']);
      expect(acts_beside(run('running', { closing: 'canceled' }), status, true)).toEqual([]);
      expect(acts_beside(run('running'), status, false)).toEqual([]);
    }
    for (const status of ['succeeded', 'failed', 'canceled', 'skipped'] as const) {
      expect(acts_beside(run('running'), status, true)).toEqual([]);
      expect(acts_beside(run('failed'), status, true)).toEqual([]);
    }
  });

  it('undo what a person skipped, once the run has ended, and nothing else that was skipped', () => {
    const skipped = { ...facts, status: 'skipped', reason: 'skipped_by_person' } as const;
    expect(task_acts(run('succeeded'), skipped, true)).toEqual(['retry_from']);
    expect(task_acts(run('canceled'), { ...skipped, is_item: true }, true)).toEqual(['retry_from']);
    expect(task_acts(run('running'), skipped, true)).toEqual([]);
    expect(task_acts(run('failed'), { ...skipped, reason: 'upstream' }, true)).toEqual([]);
  });

  it('offer no signal that was given, and let an item be passed but not tried alone', () => {
    expect(task_acts(run('running'), { ...facts, status: 'parked', signal: 'go', is_signaled: true }, true)).toEqual([]);
    expect(task_acts(run('failed'), { ...facts, status: 'failed', is_item: true }, true)).toEqual(['skip']);
  });
});
