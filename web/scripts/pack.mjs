// Behind `vite build`: stores every built asset compressed (the server sends it as it lies there), and refuses a first
// load of script that is too large. The header of gzip is made the same on every host, so that builds can be compared.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

/** What the page may load before it shows something, in bytes of gzipped script. */
const FIRST_LOAD_LIMIT = 60_000;

const out = process.env.LANEWAY_WEB_OUT ?? fileURLToPath(new URL('../../crates/laneway-server/web', import.meta.url));
const assets = join(out, 'assets');

let all = 0;
const sizes = new Map();
for (const name of readdirSync(assets).sort()) {
  const bytes = gzipSync(readFileSync(join(assets, name)), { level: 9 });
  bytes.fill(0, 4, 8); // no time
  bytes[9] = 255; // no system
  writeFileSync(join(assets, `${name}.gz`), bytes);
  rmSync(join(assets, name));
  sizes.set(name, bytes.length);
  all += bytes.length;
}

// What the entry names is loaded at once: itself and all that it imports statically.
const page = readFileSync(join(out, 'index.html'), 'utf8');
const first = [...page.matchAll(/assets\/([\w.-]+\.js)/g)].map((match) => match[1]);
if (first.length === 0) throw new Error('index.html names no script');
const bytes = [...new Set(first)].reduce((sum, name) => sum + (sizes.get(name) ?? NaN), 0);
console.log(`first load: ${bytes} bytes of gzipped script; ${all} bytes in ${sizes.size} files`);
if (!(bytes < FIRST_LOAD_LIMIT)) throw new Error(`more than ${FIRST_LOAD_LIMIT} bytes of script on first load`);
if (/<style|\sstyle=|<script(?![^>]*\ssrc=)/.test(page)) throw new Error('index.html has something inline; the CSP forbids it');
