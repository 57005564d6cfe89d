// What the agreed API has and the generated description lacks as yet. To be emptied when it comes.
import type { components } from './schema';
import type { GraphLayout } from './types';

type Ok<B> = { responses: { 200: { content: { 'application/json': B } } } };
type RunRow = components['schemas']['RunSummary'];

export type Overview = {
  observed_at: string;
  runs: { running: number; waiting: number; paused: number };
  ended: { window_s: number; succeeded: number; failed: number; canceled: number };
  minutes: { at: string; started: number; succeeded: number; failed: number; p50_ms: number | null; p95_ms: number | null }[];
  failing: RunRow[];
  waiting: { run: string; workflow: string; step: string; status: string; since: string; text: string }[];
};
export type Fault = { line: number; column: number; end_line: number; end_column: number; message: string; help: string | null };
export type Validated = { ok: boolean; problems: Fault[]; graph: GraphLayout | null };
export type Hold = { run: string; workflow: string; step: string; since: string | null };
export type LimitDetail = components['schemas']['Limit'] & { holders: Hold[]; queue: Hold[] };
export type Lock = { lock: string; holder: Hold | null; waiting: number; queue: Hold[] };
export type Outcome = { run: string; status?: string | null; took_ms?: number | null; at: string };
export type Param = { name: string; type: string; required: boolean; default?: unknown; choices: unknown[]; description?: string | null };
export type WorkflowRow = components['schemas']['WorkflowSummary'] & { outcomes: Outcome[]; params: Param[]; next_at?: string | null };

export interface Ahead {
  '/v1/sign-in': {
    post: {
      requestBody: { content: { 'application/json': { code: string } } };
      responses: { 201: { content: { 'application/json': { token: string; name: string; role: string } } } };
    };
  };
  '/v1/workflows': { get: Ok<{ workflows: WorkflowRow[] }> };
  '/v1/workflows/{name}/document': {
    get: { parameters: { path: { name: string }; query?: { version?: number } }; responses: { 200: { content: { 'application/yaml': string } } } };
  };
  '/v1/me': { get: Ok<{ name: string; role: 'viewer' | 'operator' | 'admin' | 'worker'; server_version: string }> };
  '/v1/overview': { get: Ok<Overview> };
  '/v1/validate': { post: Ok<Validated> & { requestBody: { content: { 'application/json': { document: string; name?: string } } } } };
  '/v1/runs/{run}/graph': { get: Ok<GraphLayout> & { parameters: { path: { run: string } } } };
  '/v1/workflows/{name}/graph': { get: Ok<GraphLayout> & { parameters: { path: { name: string }; query?: { version?: number } } } };
  '/v1/limits/{name}': { get: Ok<LimitDetail> & { parameters: { path: { name: string } } } };
  '/v1/locks': { get: Ok<{ locks: Lock[] }> };
}
