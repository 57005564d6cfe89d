// Makes src/api/schema.d.ts from the API's description. LANEWAY_OPENAPI names another file than the reference.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('..', import.meta.url));
const from = process.env.LANEWAY_OPENAPI ?? '../docs/reference/openapi.json';
const made = 'src/api/schema.d.ts';
execFileSync('npx', ['openapi-typescript', from, '-o', made, '--empty-objects-unknown'], { cwd: here, stdio: 'inherit' });

// Where the description says less than is so: a point is a pair, and a choice is any value.
const EXACT = [
  ['points: number[][];', 'points: [number, number][];'],
  ['choices: Record<string, unknown>[];', 'choices: unknown[];'],
];
let text = readFileSync(here + made, 'utf8');
for (const [said, meant] of EXACT) {
  if (!text.includes(said) && !text.includes(meant)) throw new Error(`the description says no more: ${said}`);
  text = text.replaceAll(said, meant);
}
writeFileSync(here + made, text);
