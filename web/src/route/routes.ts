// Every address of the page, typed: from an address to a route and back. Pure.

export const RUN_STATUSES = ['queued', 'running', 'succeeded', 'failed', 'canceled'] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

export type RunFilter = {
  workflow?: string;
  status?: RunStatus[];
  since?: string;
  until?: string;
  q?: string;
};

export const WORKFLOW_TABS = ['graph', 'source', 'versions', 'runs', 'triggers'] as const;
export type WorkflowTab = (typeof WORKFLOW_TABS)[number];

/** What else stands behind the `?`: the page that owns the route reads it. */
export type Query = Readonly<Record<string, string>>;

export type Route =
  | { page: 'overview' }
  | { page: 'workflows' }
  | { page: 'new_workflow' }
  | { page: 'workflow'; name: string; tab: WorkflowTab; query: Query }
  | { page: 'runs'; filter: RunFilter }
  | { page: 'run'; run: string; query: Query }
  | { page: 'task'; run: string; step: string; query: Query }
  | { page: 'nodes' }
  | { page: 'pools' }
  | { page: 'limits'; name?: string }
  | { page: 'triggers' }
  | { page: 'tokens' }
  | { page: 'audit' }
  | { page: 'missing'; path: string };

export type PageName = Route['page'];

function one_of<T extends string>(words: readonly T[], word: string | null | undefined): T | null {
  return words.find((known) => known === word) ?? null;
}

function filter_of(query: URLSearchParams): RunFilter {
  const filter: RunFilter = {};
  const status = (query.get('status') ?? '')
    .split(',')
    .map((word) => one_of(RUN_STATUSES, word))
    .filter((word) => word !== null);
  if (status.length > 0) filter.status = status;
  for (const name of ['workflow', 'since', 'until', 'q'] as const) {
    const value = query.get(name);
    if (value) filter[name] = value;
  }
  return filter;
}

/** A part of a path; what is not valid in one leads to the page that says so. */
function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

export function parse(path: string, search = ''): Route {
  const missing: Route = { page: 'missing', path };
  const parts: string[] = [];
  for (const part of path.split('/').filter((part) => part !== '')) {
    const text = decoded(part);
    if (text === null) return missing;
    parts.push(text);
  }
  const asked = new URLSearchParams(search);
  const query: Query = Object.fromEntries(asked);
  const [first, second, third, fourth] = parts;
  const count = parts.length;
  if (count === 0) return { page: 'overview' };
  if (first === 'workflows') {
    if (count === 1) return { page: 'workflows' };
    const tab = count === 2 ? 'graph' : one_of(WORKFLOW_TABS, third);
    if (second !== undefined && tab !== null && count <= 3) return { page: 'workflow', name: second, tab, query };
  }
  if (first === 'new-workflow' && count === 1) return { page: 'new_workflow' };
  if (first === 'runs') {
    if (count === 1) return { page: 'runs', filter: filter_of(asked) };
    if (count === 2 && second !== undefined) return { page: 'run', run: second, query };
    if (count === 4 && second !== undefined && third === 'tasks' && fourth !== undefined) {
      return { page: 'task', run: second, step: fourth, query };
    }
  }
  if (first === 'limits' && count === 2 && second !== undefined) return { page: 'limits', name: second };
  if (count === 1) {
    switch (first) {
      case 'nodes':
      case 'pools':
      case 'limits':
      case 'triggers':
      case 'tokens':
      case 'audit':
        return { page: first };
    }
  }
  return missing;
}

function with_query(path: string, query: Record<string, string | undefined>): string {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== '') parts.set(name, value);
  const text = parts.toString();
  return text === '' ? path : `${path}?${text}`;
}

export function href(route: Route): string {
  const part = encodeURIComponent;
  switch (route.page) {
    case 'overview':
      return '/';
    case 'new_workflow':
      return '/new-workflow';
    case 'workflow':
      return with_query(`/workflows/${part(route.name)}${route.tab === 'graph' ? '' : `/${route.tab}`}`, route.query);
    case 'runs': {
      const { status, ...rest } = route.filter;
      return with_query('/runs', { ...rest, status: status?.join(',') });
    }
    case 'run':
      return with_query(`/runs/${part(route.run)}`, route.query);
    case 'task':
      return with_query(`/runs/${part(route.run)}/tasks/${part(route.step)}`, route.query);
    case 'limits':
      return route.name === undefined ? '/limits' : `/limits/${part(route.name)}`;
    case 'missing':
      return route.path;
    case 'workflows':
    case 'nodes':
    case 'pools':
    case 'triggers':
    case 'tokens':
    case 'audit':
      return `/${route.page}`;
  }
}

export const run_href = (run: string): string => href({ page: 'run', run, query: {} });
export const task_href = (run: string, step: string): string => href({ page: 'task', run, step, query: {} });
export const workflow_href = (name: string, tab: WorkflowTab = 'graph'): string => href({ page: 'workflow', name, tab, query: {} });
