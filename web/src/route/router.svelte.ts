// Where the page is. Links are plain <a href>; a click on one that stays here does not load the page again.
import { href, parse, type Route } from './routes';

class Router {
  route = $state.raw<Route>(parse(location.pathname, location.search));

  /** `replace`: without a step for the back button (filters, tabs, sliders). */
  go(to: Route | string, replace = false): void {
    const address = typeof to === 'string' ? to : href(to);
    if (replace) history.replaceState(null, '', address);
    else if (address !== location.pathname + location.search + location.hash) history.pushState(null, '', address);
    this.#follow(!replace);
  }

  start(): void {
    addEventListener('popstate', () => this.#follow(false));
    document.addEventListener('click', (event) => {
      const to = here(event);
      if (to === null) return;
      event.preventDefault();
      this.go(to.pathname + to.search + to.hash);
    });
  }

  #follow(is_new: boolean): void {
    const before = href(this.route).split('?')[0];
    this.route = parse(location.pathname, location.search);
    if (is_new && href(this.route).split('?')[0] !== before) scrollTo(0, 0);
  }
}

/** Where the link that was clicked leads, if it is to be followed here. A link may be one of a drawing. */
function here(event: MouseEvent): URL | null {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return null;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  const address = link?.getAttribute('href');
  if (!link || !address || link.hasAttribute('download') || (link.getAttribute('target') ?? '_self') !== '_self') return null;
  const to = new URL(address, location.href);
  if (to.origin !== location.origin) return null;
  // A place on the same page is the browser's.
  if (to.hash !== '' && to.pathname === location.pathname && to.search === location.search) return null;
  return to;
}

export const router = new Router();
