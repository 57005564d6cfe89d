// Which component shows which route; each is loaded when it is first needed.
import type { Component } from 'svelte';
import type { PageName } from '../route/routes';

// A page knows its own route; here any route is handed to any page, and App chooses both by the same name.
export type Shown = Component<{ route: any }>;
type Load = () => Promise<{ default: Component<never> }>;

const PAGES: Record<PageName, Load> = {
  overview: () => import('./Overview.svelte'),
  workflows: () => import('./Workflows.svelte'),
  new_workflow: () => import('./NewWorkflow.svelte'),
  workflow: () => import('./Workflow.svelte'),
  runs: () => import('./Runs.svelte'),
  run: () => import('../run/RunPage.svelte'),
  task: () => import('../run/TaskPage.svelte'),
  nodes: () => import('./Nodes.svelte'),
  pools: () => import('./Pools.svelte'),
  limits: () => import('./Limits.svelte'),
  triggers: () => import('./Triggers.svelte'),
  tokens: () => import('./Tokens.svelte'),
  audit: () => import('./Audit.svelte'),
  missing: () => import('./Missing.svelte'),
};

const TRIES = 4;
const PAUSE_MS = 700;
const PATIENCE_MS = 2_000;

/** A script that was lost on its way is fetched again, a few times. */
async function loading<T>(load: () => Promise<T>): Promise<T> {
  let lost: string | undefined;
  for (let tries = 1; ; tries += 1) {
    try {
      return lost ? ((await import(/* @vite-ignore */ `${lost}?again=${tries}`)) as T) : await load();
    } catch (error) {
      if (tries === TRIES) throw error;
      lost ??= script_of(error);
      await new Promise((done) => setTimeout(done, PAUSE_MS));
      await style_again();
    }
  }
}

/** A browser may remember that a script did not come, and never ask for it again under the same address. What it stands on is shared all the same. */
function script_of(error: unknown): string | undefined {
  const named = error instanceof Error ? /https?:\/\/\S+\.js\b/.exec(error.message)?.[0] : undefined;
  return named?.startsWith(`${location.origin}/assets/`) ? named : undefined;
}

/** Of a style that did not come, some browsers have no sheet, and others one that cannot be read. */
function is_lost(link: HTMLLinkElement): boolean {
  try {
    return link.sheet === null || link.sheet.cssRules === null;
  } catch {
    return true;
  }
}

/** Styles that were lost too: nobody asks for those a second time. */
async function style_again(): Promise<void> {
  const lost = [...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')].filter(is_lost);
  await Promise.all(
    lost.map((link) => {
      const again = link.cloneNode() as HTMLLinkElement;
      const ended = new Promise((done) => {
        again.onload = done;
        again.onerror = done;
      });
      link.replaceWith(again);
      return Promise.race([ended, new Promise((done) => setTimeout(done, PATIENCE_MS))]);
    }),
  );
}

const loaded = new Map<PageName, Promise<Shown>>();

export function load_page(name: PageName): Promise<Shown> {
  let page = loaded.get(name);
  if (!page) {
    page = loading(PAGES[name]).then((module) => module.default as unknown as Shown);
    // What could not be loaded (the server was away) is tried again with the next visit.
    page.catch(() => loaded.delete(name));
    loaded.set(name, page);
  }
  return page;
}
