// Makes src/api/schema.d.ts from the API's description, or says with `--check` whether it is what the description makes.
// LANEWAY_OPENAPI names another file than the reference.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('..', import.meta.url));
const from = process.env.LANEWAY_OPENAPI ?? '../docs/reference/openapi.json';
const kept = here + 'src/api/schema.d.ts';
const is_check = process.argv.includes('--check');
const made = join(mkdtempSync(join(tmpdir(), 'laneway-types-')), 'schema.d.ts');
execFileSync('npx', ['openapi-typescript', from, '-o', made, '--empty-objects-unknown'], { cwd: here, stdio: 'inherit' });

// Where the description says less than is so: a point is a pair.
const EXACT = [
  ['points: number[][];', 'points: [number, number][];'],
];
let text = readFileSync(made, 'utf8');
rmSync(dirname(made), { recursive: true });
for (const [said, meant] of EXACT) {
  if (!text.includes(said) && !text.includes(meant)) throw new Error(`the description says no more: ${said}`);
  text = text.replaceAll(said, meant);
}
if (!is_check) {
  writeFileSync(kept, text);
} else if (readFileSync(kept, 'utf8') !== text) {
  console.error('src/api/schema.d.ts is not what the description makes\nrun: npm run types');
  process.exitCode = 1;
}
