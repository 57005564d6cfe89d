// Whether the built files in the server's crate are those that this source makes.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('..', import.meta.url));
const kept = join(here, '../crates/laneway-server/web');
const made = mkdtempSync(join(tmpdir(), 'laneway-web-'));

function files(root) {
  const names = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return new Map(names.sort().map((path) => [path.slice(root.length + 1), readFileSync(path)]));
}

try {
  execFileSync('npm', ['run', 'build'], { cwd: here, stdio: 'inherit', env: { ...process.env, LANEWAY_WEB_OUT: made } });
  const [now, before] = [files(made), files(kept)];
  const names = new Set([...now.keys(), ...before.keys()]);
  const other = [...names].filter((name) => !now.get(name) || !before.get(name)?.equals(now.get(name)));
  if (other.length > 0) {
    console.error(`not as the source makes them: ${other.join(', ')}\nrun: npm run build`);
    process.exitCode = 1;
  }
} finally {
  rmSync(made, { recursive: true, force: true });
}
