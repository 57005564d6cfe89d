// The page in Chromium against the real program. Each file starts a server and a browser of its own; they mostly wait.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/**/*.e2e.ts'],
    environment: 'node',
    maxWorkers: Number(process.env['LANEWAY_WEB_WORKERS'] ?? 3),
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
