// Questions and changes, typed by the API's description: get('/v1/runs/{run}', { path: { run } }).
// The token goes with each of them; a refused one leads back to the sign-in page.
import { Problem, problem_of, Unreachable } from './problem';
import type { paths } from './schema';
import { session } from './session.svelte';

type Method = 'get' | 'post' | 'put' | 'delete';
type WithMethod<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: { responses: unknown } } ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P] extends { [K in M]: infer O } ? O : never;

type Body<A> = A extends { content: infer C }
  ? C extends { 'application/json': infer J }
    ? J
    : string
  : never;
type Answer<O> = O extends { responses: infer R }
  ? R extends { 200: infer A }
    ? Body<A>
    : R extends { 201: infer A }
      ? Body<A>
      : never
  : never;
type PathPart<O> = O extends { parameters: { path: infer P } } ? { path: P } : object;
type QueryPart<O> = O extends { parameters: { query: infer Q } }
  ? { query: Q }
  : O extends { parameters: { query?: infer Q } }
    ? { query?: Q }
    : object;
type BodyPart<O> = O extends { requestBody: { content: { 'application/json': infer B } } }
  ? { body: B }
  : O extends { requestBody?: { content: { 'application/json': infer B } } }
    ? { body?: B }
    : object;
type Common = { signal?: AbortSignal | undefined; key?: string };
type Ask<O> = PathPart<O> & QueryPart<O> & BodyPart<O> & Common;
/** `{}` may be left out where nothing is required. */
type Rest<A> = object extends A ? [ask?: A] : [ask: A];

type Loose = {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
} & Common;

/** An address with its parts filled in; names may have any sign in them. */
export function address(path: string, parts: Record<string, string | number> = {}, query: Record<string, unknown> = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const part = parts[name];
    if (part === undefined) throw new Error(`${path} lacks ${name}`);
    return encodeURIComponent(String(part));
  });
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') asked.append(name, String(value));
  }
  const text = asked.toString();
  return text === '' ? filled : `${filled}?${text}`;
}

/** The answer as it came: for logs and artifacts. Refusals and silence are thrown. */
export async function ask(method: string, path: string, init: RequestInit & { key?: string } = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = session.token;
  if (token !== null) headers.set('authorization', `Bearer ${token}`);
  if (init.key !== undefined) headers.set('idempotency-key', init.key);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, method, headers, credentials: 'omit', cache: 'no-store' });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Unreachable(error);
  }
  if (!answer.ok) {
    const problem = await problem_of(answer);
    if (problem.status === 401) session.refused(problem, token);
    throw problem;
  }
  return answer;
}

async function json(method: Method, path: string, loose: Loose = {}): Promise<unknown> {
  const init: RequestInit & { key?: string } = {};
  if (loose.signal) init.signal = loose.signal;
  if (loose.key !== undefined) init.key = loose.key;
  if (loose.body !== undefined) {
    init.body = JSON.stringify(loose.body);
    init.headers = { 'content-type': 'application/json' };
  }
  const answer = await ask(method.toUpperCase(), address(path, loose.path, loose.query), init);
  const is_json = answer.headers.get('content-type')?.includes('json') ?? false;
  try {
    return await (is_json ? answer.json() : answer.text());
  } catch (error) {
    // The connection broke in the middle of the answer, which browsers call so.
    throw error instanceof TypeError ? new Unreachable(error) : error;
  }
}

export function get<P extends WithMethod<'get'>>(
  path: P,
  ...rest: Rest<Ask<Operation<P, 'get'>>>
): Promise<Answer<Operation<P, 'get'>>> {
  return json('get', path, rest[0] as Loose) as Promise<Answer<Operation<P, 'get'>>>;
}

export function post<P extends WithMethod<'post'>>(
  path: P,
  ...rest: Rest<Ask<Operation<P, 'post'>>>
): Promise<Answer<Operation<P, 'post'>>> {
  return json('post', path, rest[0] as Loose) as Promise<Answer<Operation<P, 'post'>>>;
}

export function put<P extends WithMethod<'put'>>(
  path: P,
  ...rest: Rest<Ask<Operation<P, 'put'>>>
): Promise<Answer<Operation<P, 'put'>>> {
  return json('put', path, rest[0] as Loose) as Promise<Answer<Operation<P, 'put'>>>;
}

export function remove<P extends WithMethod<'delete'>>(
  path: P,
  ...rest: Rest<Ask<Operation<P, 'delete'>>>
): Promise<Answer<Operation<P, 'delete'>>> {
  return json('delete', path, rest[0] as Loose) as Promise<Answer<Operation<P, 'delete'>>>;
}

export { Problem, Unreachable };
