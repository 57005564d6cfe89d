// The pages that can be gone to from everywhere, with their keys (`g` and one more).
import type { Key } from '../words';
import type { Route } from '../route/routes';

export type PlaceOfPage = { key: string; word: Key; route: Route; admins?: boolean };

export const PLACES: PlaceOfPage[] = [
  { key: 'o', word: 'nav.overview', route: { page: 'overview' } },
  { key: 'w', word: 'nav.workflows', route: { page: 'workflows' } },
  { key: 'r', word: 'nav.runs', route: { page: 'runs', filter: {} } },
  { key: 'n', word: 'nav.nodes', route: { page: 'nodes' } },
  { key: 'p', word: 'nav.pools', route: { page: 'pools' } },
  { key: 'l', word: 'nav.limits', route: { page: 'limits' } },
  { key: 't', word: 'nav.triggers', route: { page: 'triggers' } },
  { key: 'k', word: 'nav.tokens', route: { page: 'tokens' }, admins: true },
  { key: 'a', word: 'nav.audit', route: { page: 'audit' }, admins: true },
];

/** The place that a route belongs to. */
export function place_of(route: Route): Route['page'] {
  switch (route.page) {
    case 'workflow':
    case 'new_workflow':
      return 'workflows';
    case 'run':
    case 'task':
      return 'runs';
    default:
      return route.page;
  }
}
