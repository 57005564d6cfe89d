// How the page is built: into the server's crate, with hashed names, nothing inline (the page's CSP forbids it).
// `npm run dev` serves the page and hands questions on to a server: LANEWAY_SERVER=http://127.0.0.1:PORT.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

const server = process.env.LANEWAY_SERVER ?? 'http://127.0.0.1:7878';
// The server answers only to itself: the address of the development server is none of its names.
const hand_on = {
  target: server,
  changeOrigin: true,
  headers: { origin: server },
};
const proxy = { '/v1': hand_on, '/openapi.json': hand_on };

export default defineConfig({
  plugins: [svelte()],
  server: { proxy },
  preview: { proxy },
  build: {
    outDir: process.env.LANEWAY_WEB_OUT ?? '../crates/laneway-server/web',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
