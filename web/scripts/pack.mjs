// Behind `vite build`: refuses a first load of script that is too large, and anything inline, which the page's CSP forbids.
// The server's build compresses the files; here it is only measured.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

/** What is loaded before the page shows something, in bytes of gzipped script. The promise to readers is 120 kB. */
const FIRST_LOAD_LIMIT = 60_000;

const out = process.env.LANEWAY_WEB_OUT ?? fileURLToPath(new URL('../../crates/laneway-server/web', import.meta.url));
const assets = join(out, 'assets');
const size = (name) => gzipSync(readFileSync(join(assets, name)), { level: 9 }).length;

// What index.html names is loaded at once: the entry and all that it imports statically. Then comes the overview, and what
// that imports; plots come behind what can be read.
const page = readFileSync(join(out, 'index.html'), 'utf8');
const first = new Set([...page.matchAll(/assets\/([\w.-]+\.js)/g)].map((match) => match[1]));
if (first.size === 0) throw new Error('index.html names no script');
const names = readdirSync(assets);
const overview = names.find((name) => /^Overview-.*\.js$/.test(name));
if (!overview) throw new Error('there is no script of the overview');
const waiting = [overview];
for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
  if (first.has(name)) continue;
  first.add(name);
  const text = readFileSync(join(assets, name), 'utf8');
  for (const [, other] of text.matchAll(/from\s*["']\.\/([\w.-]+\.js)["']/g)) waiting.push(other);
}
const bytes = [...first].reduce((sum, name) => sum + size(name), 0);
const all = names.filter((name) => name.endsWith('.js')).reduce((sum, name) => sum + size(name), 0);
console.log(`first load: ${bytes} bytes of gzipped script in ${first.size} files; all pages: ${all}`);
if (!(bytes < FIRST_LOAD_LIMIT)) throw new Error(`more than ${FIRST_LOAD_LIMIT} bytes of script on first load`);
if (/<style|\sstyle=|<script(?![^>]*\ssrc=)/.test(page)) throw new Error('index.html has something inline; the CSP forbids it');
