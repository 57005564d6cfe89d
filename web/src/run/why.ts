// Why a task is as it is, in one line: what the server says of it, never words of our own.
import { t, word_of } from '../words';
import { moment, type Cause, type Task } from './fold';

export function why(task: Pick<Task, 'cause' | 'detail' | 'reason' | 'items' | 'wait'>): string | null {
  if (task.cause) return task.cause.text;
  if (task.detail) return task.detail;
  if (task.reason) return word_of('reason', task.reason);
  if (task.items) {
    const done = (task.items.states['succeeded'] ?? 0) + (task.items.states['skipped'] ?? 0);
    return t('run.items_done', { done, n: task.items.total });
  }
  if (task.wait?.signaled_by) return t('task.signaled', { by: task.wait.signaled_by });
  return null;
}

/** The moment that a task waits for, if only time lets it go on; `told` is the newest cause that is known. */
export function opens_at(task: Pick<Task, 'status' | 'cause' | 'wait' | 'run_at'>, told: Cause | null): number | null {
  switch (task.status) {
    case 'parked':
      return task.wait?.signaled_by ? null : (task.wait?.until ?? null);
    case 'pending':
      return moment((told ?? task.cause)?.opens_at) ?? task.run_at;
    default:
      return null;
  }
}
