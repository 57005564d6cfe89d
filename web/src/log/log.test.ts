// The pure parts of the log: colours, lines across pages, a bounded memory, search, and scrolling through millions of lines.
import { describe, expect, it, vi } from 'vitest';
import { Unreachable } from '../api/problem';
import { classes, parse, PLAIN, plain, style_after } from './ansi';
import { bytes_of, cut, LONGEST, PAGE_BYTES, Pages, type Piece } from './pages';
import { ROW, scroll_of, scroll_top_of, top_line } from './scroll';
import { LogStore, type Ask } from './store';

const piece = (text: string, stream = 'stdout'): Piece => ({ time: '2026-01-01T00:00:00Z', stream, text });
const shown = (line: string) => parse(line).spans.map((span) => [span.text, classes(span.style)]);

describe('what a program printed', () => {
  it.each([
    ['plain', [['plain', '']]],
    ['\u001b[31mred\u001b[0m and not', [['red', 'ansi-f1'], [' and not', '']]],
    ['\u001b[1;92mbright\u001b[22;39m', [['bright', 'ansi-f10 ansi-bold']]],
    ['\u001b[38;5;196mof 256\u001b[m', [['of 256', 'ansi-f9']]],
    ['\u001b[38;2;0;0;230mof millions', [['of millions', 'ansi-f4']]],
    ['\u001b[41;37mon red', [['on red', 'ansi-on ansi-b1']]],
    ['\u001b[7mturned', [['turned', 'ansi-on ansi-b7']]],
    // What is no colour goes: a cursor that moves, a screen that is cleared, a title, a link (its text stays).
    ['a\u001b[2Jb\u001b[10;20Hc', [['a', ''], ['b', ''], ['c', '']]],
    ['\u001b]0;title\u0007x', [['x', '']]],
    ['\u001b]8;;https://evil.example\u001b\\text\u001b]8;;\u001b\\', [['text', '']]],
    ['\u001bPdevice\u001b\\x', [['x', '']]],
    // What would not be seen, or would turn the text around, is shown.
    ['a\u0000b\u0008c\u007f', [['a\u2400b\u2408c\u2421', '']]],
    ['user\u202enimda', [['user<U+202E>nimda', '']]],
    // A bar that is drawn over itself.
    ['10%\r50%\r100%', [['100%', '']]],
    ['windows\r', [['windows', '']]],
    ['<img src=x onerror=alert(1)>', [['<img src=x onerror=alert(1)>', '']]],
  ])('%j', (line, expected) => {
    expect(shown(line)).toEqual(expected);
  });

  it('keeps its colour on the next line', () => {
    const { end } = parse('\u001b[33mfrom here');
    expect(classes(parse('on', end).spans[0]!.style)).toBe('ansi-f3');
    expect(style_after('\u001b[33mfrom here', PLAIN)).toEqual(end);
  });

  it('never loops on sequences that do not end', () => {
    for (const open of ['\u001b', '\u001b[', '\u001b[31', '\u001b]8;;x', '\u001b[999999999999m', '\u009b']) {
      expect(plain(`a${open}`).startsWith('a')).toBe(true);
    }
  });
});

describe('lines', () => {
  it('end at newlines and where another stream speaks', () => {
    const found = cut([piece('a\nb'), piece('c\n'), piece('d'), piece('!\n', 'stderr'), piece('e')], null);
    expect(found.lines.map((line) => `${line.stream}:${line.text}`)).toEqual(['stdout:a', 'stdout:bc', 'stdout:d', 'stderr:!', 'stdout:e']);
    expect(found.open).toBe('stdout');
  });

  it('go on in the next page, if that is of the same stream', () => {
    expect(cut([piece('rest\nnext\n')], 'stdout')).toMatchObject({ head: 'rest', open: null, lines: [{ text: 'next' }] });
    expect(cut([piece('other\n', 'stderr')], 'stdout')).toMatchObject({ head: '', lines: [{ text: 'other' }] });
  });

  it('count bytes as they were printed', () => {
    for (const text of ['abc', 'Grüße', '中文', '😀!', '\u0000']) {
      expect(bytes_of(piece(text))).toBe(new TextEncoder().encode(text).length);
    }
    expect(bytes_of({ ...piece('\ufffd'), hex: 'ff' })).toBe(1);
  });

  it('are the same, however the log was cut', { timeout: 30_000 }, () => {
    const text = Array.from({ length: 30_000 }, (_, n) => `line ${n} ${'x'.repeat(n % 70)}\n`).join('');
    const whole = text.split('\n').slice(0, -1);
    for (const size of [1000, 65_537, 300_000]) {
      const [pages, given] = [new Pages(), [] as Piece[][]];
      for (let at = 0; at < text.length; at += size) {
        const pieces = [piece(text.slice(at, at + size))];
        const number = pages.add(pieces, at + size);
        (given[number] ??= []).push(...pieces);
      }
      const lines = pages.list.flatMap((_, number) => pages.lines_of(number, given[number]!).map((line) => line.text));
      expect(lines).toEqual(whole);
      expect(pages.lines).toBe(whole.length);
      for (const line of [0, 1, 777, 29_999]) {
        const page = pages.list[pages.page_of(line)]!;
        expect(page.first_line <= line && line < page.first_line + page.lines).toBe(true);
      }
    }
  });

  it('that never end are cut, and take no more memory than that', () => {
    const pages = new Pages();
    for (let turn = 0; turn < 8; turn++) pages.add([piece('y'.repeat(PAGE_BYTES))], (turn + 1) * PAGE_BYTES);
    pages.add([piece('\nlast')], 9 * PAGE_BYTES);
    expect(pages.lines).toBe(2);
    expect(pages.list[0]!.rest.length).toBeLessThanOrEqual(LONGEST);
    expect(pages.page_of(0)).toBe(0);
    expect(pages.lines_of(0, [piece('y'.repeat(PAGE_BYTES))])[0]!.is_cut).toBe(true);
  });
});

/** A log as the server gives it: frames with something around them, so that offsets are not bytes of text. */
function server(frames: string[], is_over = true) {
  const asked: number[] = [];
  const ask: Ask = (offset, limit) => {
    asked.push(offset);
    const pieces: Piece[] = [];
    let [at, bytes, place] = [0, 0, 0];
    for (; place < frames.length && at < offset; place++) at += frames[place]!.length + 13;
    if (at !== offset) throw new Error(`nothing of the log begins at ${offset}`);
    for (; place < frames.length && bytes < limit; place++) {
      pieces.push(piece(frames[place]!));
      bytes += frames[place]!.length;
      at += frames[place]!.length + 13;
    }
    return Promise.resolve({ pieces, next_offset: at, is_over: is_over && place === frames.length, may_lack_end: false });
  };
  return { ask, asked };
}

describe('a log of 64 MiB', () => {
  const line = (n: number) => `${n} ${'.'.repeat(120)}`;
  const count = 550_000;
  const frames: string[] = [];
  for (let n = 0; n < count; n += 64) {
    frames.push(Array.from({ length: Math.min(64, count - n) }, (_, place) => `${line(n + place)}\n`).join(''));
  }
  const { ask, asked } = server(frames);

  it('is read once, keeps few pages, and brings others back', { timeout: 60_000 }, async () => {
    let changes = 0;
    const store = new LogStore(ask, () => changes++);
    await store.read();
    expect(store.is_over).toBe(true);
    expect(store.pages.bytes).toBeGreaterThan(64 * 1024 * 1024);
    expect(store.pages.lines).toBe(count);
    expect(store.kept).toBeLessThanOrEqual(32);
    expect(asked.length).toBeLessThan(300);
    expect(store.line(count - 1)?.text).toBe(line(count - 1));
    for (const number of [0, 100_000, 300_000]) {
      expect(store.line(number)).toBeUndefined();
      await new Promise((resolve) => setTimeout(resolve));
      expect(store.line(number)?.text).toBe(line(number));
    }
    expect(store.line(count)).toBeUndefined();
    expect(changes).toBeGreaterThan(0);
  });

  it('is searched through all its pages, and memory stays bounded', { timeout: 60_000 }, async () => {
    const store = new LogStore(ask, () => undefined);
    await store.read();
    let [found, share]: [number[], number] = [[], 0];
    await store.search('54999', new AbortController().signal, (lines, done) => ([found, share] = [lines, done]));
    expect(found).toEqual([54_999, 154_999, 254_999, 354_999, 454_999, 549_990, 549_991, 549_992, 549_993, 549_994, 549_995, 549_996, 549_997, 549_998, 549_999]);
    expect(share).toBe(1);
    expect(store.kept).toBeLessThanOrEqual(32);
  });
});

describe('a log that grows', () => {
  it('joins what comes to few pages, and a line that comes in parts to one', async () => {
    const frames = ['one\ntw'];
    const { ask } = server(frames, false);
    let turns = 0;
    const store: LogStore = new LogStore(async (...asked) => {
      if (turns++ > 0 && frames.length < 3) frames.push(['o\n', 'three\n'][frames.length - 1]!);
      const found = await ask(...asked);
      return { ...found, is_over: turns > 4 };
    }, () => undefined);
    await store.read();
    expect(store.pages.list).toHaveLength(1);
    expect([0, 1, 2].map((number) => store.line(number)?.text)).toEqual(['one', 'two', 'three']);
  });
});

/** A log that grows by the test's hand: a question that waits is answered by `say` or `end`. */
function growing(first: string[]) {
  const frames = [...first];
  const { ask: at_once } = server(frames, false);
  let is_over = false;
  let answer: (() => void) | null = null;
  const ask: Ask = async (offset, limit, wait, signal) => {
    const found = await at_once(offset, limit, wait, signal);
    if (found.pieces.length === 0 && wait > 0 && !is_over) {
      await new Promise<void>((resolve) => (answer = resolve));
      return ask(offset, limit, 0, signal);
    }
    const size = frames.reduce((sum, frame) => sum + frame.length + 13, 0);
    return { ...found, size, is_over: is_over && found.next_offset === size };
  };
  const say = (...more: string[]) => {
    frames.push(...more);
    answer?.();
  };
  const end = () => {
    is_over = true;
    answer?.();
  };
  return { ask, say, end };
}

describe('a search of a log that grows', () => {
  it('goes on with it, in lines that come in parts and in new pages, and ends with it', async () => {
    const log = growing(['one\n', 'two need']);
    const store = new LogStore(log.ask, () => undefined);
    void store.read();
    let [found, share]: [number[], number] = [[], -1];
    let is_done = false;
    void store.search('needle', new AbortController().signal, (lines, done) => ([found, share] = [lines.slice(), done])).then(() => (is_done = true));
    await vi.waitFor(() => expect([found, share]).toEqual([[], 1]));
    log.say('le here\nthree\n');
    await vi.waitFor(() => expect(found).toEqual([1]));
    const wide = `${'.'.repeat(1000)}\n`.repeat(400);
    log.say(wide, 'a needle again\n', wide, 'and a needle');
    await vi.waitFor(() => expect([found, share]).toEqual([[1, 403, 804], 1]));
    expect(store.pages.list.length).toBeGreaterThan(2);
    expect(is_done).toBe(false);
    log.end();
    await vi.waitFor(() => expect(is_done).toBe(true));
    expect([found, share]).toEqual([[1, 403, 804], 1]);
  });

  it('has not found none before the log was read to its end', async () => {
    const wide = `${'.'.repeat(1000)}\n`.repeat(300);
    const log = growing([wide, wide, 'the needle\n']);
    let let_go: (() => void) | null = null;
    let is_held = true;
    const store = new LogStore(
      async (...asked) => {
        if (asked[0] > 0 && is_held) await new Promise<void>((resolve) => (let_go = resolve));
        return log.ask(...asked);
      },
      () => undefined,
    );
    const told: [number, number][] = [];
    void store.search('needle', new AbortController().signal, (lines, share) => told.push([lines.length, share]));
    void store.read();
    // Caught up with what was read, which is half of it.
    await vi.waitFor(() => expect([told.length > 1, let_go !== null]).toEqual([true, true]));
    expect(told.every(([found, share]) => found === 0 && share < 1)).toBe(true);
    is_held = false;
    let_go!();
    await vi.waitFor(() => expect(told.at(-1)).toEqual([1, 1]));
    store.close();
  });
});

describe('a log whose server goes away', () => {
  it('is read on when it is back, after pauses that grow, and at once if somebody asks', async () => {
    vi.useFakeTimers();
    try {
      const { ask } = server(['one\n', 'two\n']);
      let is_away = true;
      let asked = 0;
      const store = new LogStore(
        async (...of) => {
          asked += 1;
          if (is_away) throw new Unreachable(null);
          return ask(...of);
        },
        () => undefined,
      );
      void store.read();
      await vi.advanceTimersByTimeAsync(60_000);
      expect(store.error).toBeInstanceOf(Unreachable);
      expect(asked).toBeGreaterThan(5);
      expect(asked).toBeLessThan(12);
      is_away = false;
      void store.read();
      await vi.advanceTimersByTimeAsync(0);
      expect([store.error, store.is_over, store.pages.lines]).toEqual([null, true, 2]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is not asked again after a refusal', async () => {
    let asked = 0;
    const store = new LogStore(
      () => {
        asked += 1;
        return Promise.reject(new Error('refused'));
      },
      () => undefined,
    );
    await store.read();
    expect([asked, (store.error as Error).message]).toEqual([1, 'refused']);
  });
});

describe('a log that nobody sees', () => {
  it('asks for nothing, and goes on where it was', async () => {
    const log = growing(['one\n']);
    let waiting = 0;
    const store = new LogStore(
      async (...of) => {
        waiting += 1;
        try {
          return await Promise.race([log.ask(...of), new Promise<never>((_, fail) => of[3].addEventListener('abort', () => fail(new Error('cut'))))]);
        } finally {
          waiting -= 1;
        }
      },
      () => undefined,
    );
    void store.read();
    await vi.waitFor(() => expect([store.pages.lines, waiting]).toEqual([1, 1]));
    store.rest();
    await vi.waitFor(() => expect(waiting).toBe(0));
    log.say('two\n');
    expect([store.pages.lines, store.error]).toEqual([1, null]);
    void store.read();
    await vi.waitFor(() => expect(store.pages.lines).toBe(2));
    expect([store.line(0)?.text, store.line(1)?.text, store.pages.lines]).toEqual(['one', 'two', 2]);
    store.close();
  });
});

describe('scrolling', () => {
  it('is exact for what a browser can hold', () => {
    expect(scroll_of(1000)).toEqual({ height: 1000 * ROW, is_scaled: false });
    expect(top_line(scroll_top_of(700, 1000, 500), 1000, 500)).toBe(700);
  });

  it('does the same for rows of another height', () => {
    expect(scroll_of(1_048_576, 32).is_scaled).toBe(true);
    expect(top_line(scroll_top_of(1_000_000, 1_048_576, 640, 32), 1_048_576, 640, 32)).toBeCloseTo(1_000_000, 3);
    expect(top_line(320, 100, 640, 32)).toBe(10);
  });

  it('reaches the first and the last of three million lines', () => {
    const [lines, room] = [3_000_000, 540];
    expect(scroll_of(lines).is_scaled).toBe(true);
    expect(top_line(0, lines, room)).toBe(0);
    expect(top_line(scroll_of(lines).height - room, lines, room)).toBeCloseTo(lines - room / ROW);
    expect(top_line(scroll_top_of(1_234_567, lines, room), lines, room)).toBeCloseTo(1_234_567, 3);
  });
});
