// What may be done to a run and to a task now: the state machine decides, and the role of whoever asks. Pure: the server decides again.

import type { TaskStatus } from '../look/states';
import type { RunStatus } from '../route/routes';

export type RunAct = 'pause' | 'resume' | 'advance' | 'retry' | 'cancel' | 'end_clean_up';
export type HoldingAct = Exclude<RunAct, 'advance' | 'retry' | 'end_clean_up'>;
export type TaskAct = 'signal' | 'retry_from' | 'skip';

export interface RunFacts {
  status: RunStatus;
  /** `run`, `workflow`. */
  paused: readonly string[];
  closing: string | null;
  /** Until when it may clean up, while it is being canceled. */
  clean_up_until?: number | null;
  /** It goes level by level; `null` where that is not known. */
  has_levels: boolean | null;
}

export interface TaskFacts {
  status: TaskStatus;
  /** An item of a `for_each`: its step is what acts are about. */
  is_item: boolean;
  /** Why it ended so. */
  reason: string | null;
  signal: string | null;
  is_signaled: boolean;
}

export function has_ended(status: RunStatus): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'canceled';
}

/** What runs of it is being stopped, and nothing of it starts any more but its clean-up. */
export function is_canceling(run: Pick<RunFacts, 'status' | 'closing'>): boolean {
  return !has_ended(run.status) && (run.closing === 'canceled' || run.closing === 'run_timeout');
}

/** Steps that clean up may still run, and a person may end that. */
export function is_cleaning_up(run: Pick<RunFacts, 'status' | 'closing' | 'clean_up_until'>): boolean {
  return is_canceling(run) && (run.clean_up_until ?? null) !== null;
}

/** How a run is, in one word: one that is being stopped, or is held up, is that first. */
export function run_state(run: Pick<RunFacts, 'status' | 'paused' | 'closing'>): string {
  if (is_canceling(run)) return 'canceling';
  return run.paused.length > 0 && !has_ended(run.status) ? 'paused' : run.status;
}

export function run_acts(run: RunFacts, may_act: boolean): RunAct[] {
  if (!may_act) return [];
  // What succeeded is done.
  if (has_ended(run.status)) return run.status === 'succeeded' ? [] : ['retry'];
  const acts: RunAct[] = [];
  if (!is_canceling(run)) {
    if (run.paused.includes('run')) {
      acts.push('resume');
      if (run.has_levels !== false && run.status === 'running') acts.push('advance');
    } else acts.push('pause');
    acts.push('cancel');
  } else if (is_cleaning_up(run)) acts.push('end_clean_up');
  return acts;
}

/** What holds up or ends a task that has not ended is done to its run. */
export function acts_beside(run: RunFacts, task: TaskStatus, may_act: boolean): HoldingAct[] {
  if (task === 'succeeded' || task === 'failed' || task === 'canceled' || task === 'skipped') return [];
  return run_acts(run, may_act).filter((act) => act !== 'advance' && act !== 'retry' && act !== 'end_clean_up');
}

/** Succeeded and skipped are done; what has failed, was canceled or passed over by a person can be tried again once its run has ended. */
export function task_acts(run: RunFacts, task: TaskFacts, may_act: boolean): TaskAct[] {
  if (!may_act) return [];
  const acts: TaskAct[] = [];
  switch (task.status) {
    case 'pending':
    case 'parked':
      if (task.signal !== null && !task.is_signaled && !has_ended(run.status)) acts.push('signal');
      break;
    case 'failed':
      if (has_ended(run.status) && !task.is_item) acts.push('retry_from');
      // A run that somebody canceled is not to go on past anything.
      if (run.status === 'failed' || run.status === 'succeeded') acts.push('skip');
      break;
    case 'canceled':
      if (has_ended(run.status) && !task.is_item) acts.push('retry_from');
      break;
    case 'available':
    case 'running':
    case 'succeeded':
      break;
    case 'skipped':
      // A retry of the run leaves what a person skipped as it is: this alone undoes it, of an item too.
      if (has_ended(run.status) && task.reason === 'skipped_by_person') acts.push('retry_from');
      break;
  }
  return acts;
}
