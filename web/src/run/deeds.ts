// What people do to runs and tasks: asks with the consequence, does it, says what came of it, with undo where there is one.
import { post } from '../api/client';
import { confirm } from '../parts/confirm.svelte';
import { attempt, toasts } from '../parts/toasts.svelte';
import { t } from '../words';
import type { RunAct, TaskAct } from './acts';

/** What a deed is done to. `done` is called when the server has taken it. */
export interface On {
  run: string;
  workflow: string;
  done: () => void;
}

/** The same, as it was shown when somebody asked: a run that went on since is not opened once more. */
export interface Seen extends On {
  last_event: number;
}

export async function run_deed(act: RunAct, on: Seen): Promise<void> {
  const path = { run: on.run };
  const act_on = async (work: () => Promise<unknown>, said: string, undo?: () => Promise<void>): Promise<void> => {
    if (await attempt(work, said, undo)) on.done();
  };
  switch (act) {
    case 'pause':
      // Nothing is lost by it, and it is undone with a click: so it is not asked about.
      return act_on(() => post('/v1/runs/{run}/pause', { path }), t('run.pause_done'), () => run_deed('resume', on));
    case 'resume':
      return act_on(() => post('/v1/runs/{run}/resume', { path }), t('run.resume_done'), () => run_deed('pause', on));
    case 'advance': {
      const question = { title: t('run.advance_title'), consequence: t('run.advance_consequence'), act: t('run.advance') };
      if (!(await confirm(question))) return;
      return act_on(() => post('/v1/runs/{run}/advance', { path }), t('run.advance_done'));
    }
    case 'retry': {
      const question = { title: t('run.retry_title'), consequence: t('run.retry_consequence'), act: t('run.retry') };
      if (!(await confirm(question))) return;
      return reopened(() => post('/v1/runs/{run}/retry', { path, body: { last_event: on.last_event } }), on);
    }
    case 'end_clean_up': {
      const question = { title: t('run.end_clean_up_title'), consequence: t('run.end_clean_up_consequence'), act: t('run.end_clean_up'), danger: true };
      if (!(await confirm(question))) return;
      return act_on(() => post('/v1/runs/{run}/cancel', { path, body: { now: true } }), t('run.end_clean_up_done'));
    }
    case 'cancel': {
      const question = { title: t('run.cancel_title', { name: on.workflow }), consequence: t('run.cancel_consequence'), act: t('run.cancel_act'), danger: true };
      if (!(await confirm(question))) return;
      return act_on(() => post('/v1/runs/{run}/cancel', { path }), t('run.cancel_done'));
    }
  }
}

export async function task_deed(act: TaskAct, task: { name: string; signal: string | null; waits: boolean }, on: Seen): Promise<void> {
  const path = { run: on.run, step: task.name };
  switch (act) {
    case 'retry_from': {
      const question = {
        title: t('task.retry_from_title', { name: task.name }),
        consequence: t('task.retry_from_consequence', { name: task.name }),
        act: t('task.retry_from'),
      };
      if (!(await confirm(question))) return;
      return reopened(() => post('/v1/runs/{run}/retry', { path: { run: on.run }, body: { from: task.name, last_event: on.last_event } }), on);
    }
    case 'skip': {
      const question = {
        title: t('task.skip_title', { name: task.name }),
        consequence: t('task.skip_consequence', { name: task.name }),
        act: t('task.skip'),
        danger: true,
      };
      if (!(await confirm(question))) return;
      return reopened(() => post('/v1/runs/{run}/tasks/{step}/skip', { path }), on);
    }
    case 'signal': {
      const signal = task.signal;
      if (signal === null) return;
      const reply = await confirm({
        title: t('task.signal_title', { name: task.name, signal }),
        consequence: t(task.waits ? 'task.signal_consequence' : 'task.signal_early', { signal }),
        act: t('task.signal', { signal }),
        text: { label: t('task.signal_reason'), required: false },
      });
      if (!reply) return;
      const body = { signal, ...(reply.text === '' ? {} : { reason: reply.text }) };
      try {
        const answer = await post('/v1/runs/{run}/tasks/{step}/signal', { path, body });
        if (answer.result === 'before') toasts.say(t('task.signal_before', { by: answer.by ?? '' }));
        else toasts.say(t(answer.result === 'kept' ? 'task.signal_kept' : 'task.signal_done', { signal }));
        on.done();
      } catch (error) {
        toasts.fail(error);
      }
    }
  }
}

/** What nobody knows of is settled by a person: it happened, or it is to run again. */
export async function settle_deed(effect: { step: string; name: string; key: string }, settle: 'done' | 'again', on: On): Promise<void> {
  const what = effect.key === '' ? effect.name : `${effect.name} ${effect.key}`;
  const question = {
    title: t('run.settle_title', { name: what }),
    consequence: settle === 'done' ? t('run.settle_done_consequence') : t('run.settle_again_consequence'),
    act: settle === 'done' ? t('run.settle_done') : t('run.settle_again'),
    danger: settle === 'again',
  };
  if (!(await confirm(question))) return;
  const body = { name: effect.name, key: effect.key, settle };
  const path = { run: on.run, step: effect.step };
  if (await attempt(() => post('/v1/runs/{run}/tasks/{step}/effects/settle', { path, body }), t('run.settled'))) on.done();
}

async function reopened(work: () => Promise<{ steps: string[] }>, on: On): Promise<void> {
  try {
    const { steps } = await work();
    toasts.say(t('run.reopened', { n: steps.length }));
    on.done();
  } catch (error) {
    toasts.fail(error);
  }
}
