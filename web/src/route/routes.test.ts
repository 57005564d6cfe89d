import { expect, test } from 'vitest';
import { href, parse, type Route } from './routes';

const ROUTES: Route[] = [
  { page: 'overview' },
  { page: 'workflows' },
  { page: 'new_workflow' },
  { page: 'workflow', name: 'nightly', tab: 'graph', query: {} },
  { page: 'workflow', name: 'a/b c%?#ü<script>', tab: 'versions', query: { from: '1', to: '3' } },
  { page: 'runs', filter: {} },
  { page: 'runs', filter: { status: ['failed', 'running'], workflow: 'a&b=c', since: '2026-01-01T00:00:00Z', q: '01 99' } },
  { page: 'run', run: '0199f2a0-0000-7000-8000-1a2b3c4d5e6f', query: { tab: 'timeline', at: '12' } },
  { page: 'task', run: 'last', step: 'parse[3]/x', query: { attempt: '2' } },
  { page: 'nodes' },
  { page: 'pools' },
  { page: 'limits' },
  { page: 'limits', name: 'ware house' },
  { page: 'triggers' },
  { page: 'tokens' },
  { page: 'audit' },
];

test('every route comes back from its own address', () => {
  for (const route of ROUTES) {
    const url = new URL(href(route), 'http://here');
    expect(parse(url.pathname, url.search), href(route)).toEqual(route);
  }
});

test('what is no address is missing, and never a throw', () => {
  for (const path of ['/x', '/runs/a/b', '/runs/a/tasks', '/workflows/a/nothing', '/nodes/a', '/%E0%A4%A', '/workflows/a/graph/more']) {
    expect(parse(path).page, path).toBe('missing');
  }
});

test('states that are none are left out of a filter', () => {
  expect(parse('/runs', '?status=failed,nonsense,&q=')).toEqual({ page: 'runs', filter: { status: ['failed'] } });
});
