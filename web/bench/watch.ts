// What is put into a page before anything else runs there: when something was first drawn, when news came, when they were painted.
import type { Page } from 'playwright-core';

export interface Watch {
  /** Milliseconds since the navigation began, when the graph's first boxes had been painted. */
  first: number | null;
  /** Of each piece of news that a graph was drawn for: from its arrival to its paint. */
  updates: number[];
}

/** Told of every change below `paper` (a selector), and of every piece of an event stream. */
export async function watch(page: Page, paper: string, drawn: string): Promise<void> {
  await page.addInitScript(
    ([paper, drawn]) => {
      const seen: { first: number | null; updates: number[]; arrived: number | null; observed: Element | null } = { first: null, updates: [], arrived: null, observed: null };
      (window as unknown as { seen: typeof seen }).seen = seen;
      // A task of its own behind the frame in which something changed: by then the page has been painted.
      const painted = (then: () => void): void => {
        requestAnimationFrame(() => {
          const channel = new MessageChannel();
          channel.port1.onmessage = then;
          channel.port2.postMessage(null);
        });
      };
      let is_due = false;
      const changed = new MutationObserver(() => {
        if (is_due) return;
        is_due = true;
        const arrived = seen.arrived;
        painted(() => {
          is_due = false;
          if (seen.first === null && document.querySelector(drawn!) !== null) seen.first = performance.now();
          if (arrived !== null) {
            seen.updates.push(performance.now() - arrived);
            seen.arrived = null;
          }
        });
      });
      const look = new MutationObserver(() => {
        const found = document.querySelector(paper!);
        if (found === null || found === seen.observed) return;
        seen.observed = found;
        changed.observe(found, { subtree: true, childList: true, attributes: true });
      });
      look.observe(document, { subtree: true, childList: true });
      const read = ReadableStreamDefaultReader.prototype.read;
      ReadableStreamDefaultReader.prototype.read = async function (this: ReadableStreamDefaultReader) {
        const got = await read.call(this);
        const value = got.value as Uint8Array | undefined;
        if (value instanceof Uint8Array && value.length > 0) {
          const text = new TextDecoder().decode(value);
          if (text.includes('task_') || text.includes('run_paused')) seen.arrived = performance.now();
        }
        return got;
      } as typeof read;
    },
    [paper, drawn],
  );
}

export const seen = (page: Page): Promise<Watch> => page.evaluate(() => (window as unknown as { seen: Watch }).seen);

/** Frames a second, and how long the slow ones took. */
export interface Frames {
  fps: number;
  p95_ms: number;
  longest_ms: number;
}

/** While something is done. */
export async function frames(page: Page, act: () => Promise<void>): Promise<Frames> {
  await page.evaluate(() => {
    const times: number[] = [];
    const state = { on: true, times };
    (window as unknown as { frames: typeof state }).frames = state;
    const count = (at: number): void => {
      times.push(at);
      if (state.on) requestAnimationFrame(count);
    };
    requestAnimationFrame(count);
  });
  await act();
  const times = await page.evaluate(() => {
    const state = (window as unknown as { frames: { on: boolean; times: number[] } }).frames;
    state.on = false;
    return state.times;
  });
  const gaps = times.slice(1).map((at, place) => at - times[place]!);
  const sorted = [...gaps].sort((a, b) => a - b);
  const span = times.at(-1)! - times[0]!;
  return { fps: (gaps.length * 1000) / span, p95_ms: sorted[Math.floor(sorted.length * 0.95)] ?? 0, longest_ms: sorted.at(-1) ?? 0 };
}

/** Drags a box to and fro for some seconds. */
export async function drag(page: Page, selector: string, seconds: number): Promise<void> {
  const box = (await page.locator(selector).first().boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  const begun = Date.now();
  for (let turn = 0; Date.now() - begun < seconds * 1000; turn++) {
    const angle = turn / 18;
    await page.mouse.move(x + Math.cos(angle) * box.width * 0.4, y + Math.sin(angle) * box.height * 0.4);
    await page.waitForTimeout(8);
  }
  await page.mouse.up();
}

/** Bytes of the script heap after a collection. */
export async function heap(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize;
}
