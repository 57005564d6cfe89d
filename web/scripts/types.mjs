// Makes src/api/schema.d.ts from the API's description. LANEWAY_OPENAPI names another file than the reference.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('..', import.meta.url));
const from = process.env.LANEWAY_OPENAPI ?? '../docs/reference/openapi.json';
execFileSync('npx', ['openapi-typescript', from, '-o', 'src/api/schema.d.ts', '--empty-objects-unknown'], { cwd: here, stdio: 'inherit' });
