// The page as it was built last, in front of a program that has an older one in it: the same headers as the server's, and
// everything under /v1 handed on. Used with LANEWAY_PAGE=built, so that a change of the page needs no build of the program.
import { existsSync, readFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const built = process.env['LANEWAY_WEB_OUT'] ?? fileURLToPath(new URL('../../../crates/laneway-server/web', import.meta.url));
const TYPES: Record<string, string> = { '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.html': 'text/html' };
export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export async function front(target: string): Promise<{ url: string; close: () => Promise<void> }> {
  const to = new URL(target);
  const sockets = new Set<Socket>();
  const server: Server = createServer((asked, answer) => {
    const path = new URL(asked.url ?? '/', 'http://here').pathname;
    if (path.startsWith('/v1') || path === '/openapi.json') {
      const headers = { ...asked.headers, host: to.host };
      if (headers.origin) headers.origin = to.origin;
      const handed = request({ host: to.hostname, port: to.port, method: asked.method, path: asked.url, headers }, (got) => {
        answer.writeHead(got.statusCode ?? 502, got.headers);
        got.pipe(answer);
        got.on('error', () => answer.destroy());
        got.on('close', () => answer.destroy());
      });
      // Nobody there: the browser is to see what it would see without us.
      handed.on('error', () => asked.socket.destroy());
      answer.on('close', () => handed.destroy());
      asked.pipe(handed);
      return;
    }
    const file = join(built, normalize(path));
    const is_file = path !== '/' && file.startsWith(built) && existsSync(file);
    if (!is_file && path.startsWith('/assets/')) {
      answer.writeHead(404).end();
      return;
    }
    const shown = is_file ? file : join(built, 'index.html');
    answer.writeHead(200, {
      'content-type': TYPES[extname(shown)] ?? 'application/octet-stream',
      'content-security-policy': CSP,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    answer.end(readFileSync(shown));
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise((done) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => done());
      }),
  };
}
