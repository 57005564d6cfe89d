// What the server refuses, and that it cannot be reached, as errors that a page can show.
import type { components } from './schema';

export type Code = components['schemas']['Code'];

/** A refusal: RFC 9457, with a stable word and, often, what to do instead. */
export class Problem extends Error {
  readonly status: number;
  readonly code: Code | 'unknown';
  readonly title: string;
  readonly hint: string | null;

  constructor(status: number, body: Partial<components['schemas']['Problem']> | null) {
    super(body?.detail ?? body?.title ?? `HTTP ${status}`);
    this.name = 'Problem';
    this.status = status;
    this.code = body?.code ?? 'unknown';
    this.title = body?.title ?? `HTTP ${status}`;
    this.hint = body?.hint ?? null;
  }
}

/** Nobody answered. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the server does not answer', { cause });
    this.name = 'Unreachable';
  }
}

export async function problem_of(answer: Response): Promise<Problem> {
  try {
    return new Problem(answer.status, (await answer.json()) as components['schemas']['Problem']);
  } catch {
    return new Problem(answer.status, null);
  }
}
