// Chromium of the system, and pages in it that remember everything that went wrong: errors, refused content, questions that
// were answered with a fault of the server.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core';
import { front } from './front';
import type { Program } from './program';

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

export type Theme = 'dark' | 'light';
export type Looks = { theme?: Theme; width?: number; height?: number; language?: string; token?: string | null; reduced?: boolean; expected?: RegExp };

/** Chromium of the system: `LANEWAY_TEST_CHROMIUM`, or the one on the path. */
export function launch(): Promise<Browser> {
  const path = process.env['LANEWAY_TEST_CHROMIUM'] ?? execFileSync('which', ['chromium'], { encoding: 'utf8' }).trim();
  return chromium.launch({ executablePath: path, args: ARGS });
}

export class Chromium {
  readonly #browser: Browser;
  readonly #base: string;
  readonly #token: string;
  readonly #close: () => Promise<void>;

  private constructor(browser: Browser, base: string, token: string, close: () => Promise<void>) {
    this.#browser = browser;
    this.#base = base;
    this.#token = token;
    this.#close = close;
  }

  /** `LANEWAY_PAGE=built` looks at the files that were built last instead of those in the program. */
  static async start(program: Program): Promise<Chromium> {
    const browser = await launch();
    const fronted = process.env['LANEWAY_PAGE'] === 'built' ? await front(program.url) : null;
    return new Chromium(browser, fronted?.url ?? program.url, program.token, async () => {
      await browser.close();
      await fronted?.close();
    });
  }

  get url(): string {
    return this.#base;
  }

  get version(): string {
    return this.#browser.version();
  }

  /** A tab of its own, signed in as admin unless told otherwise (`token: null` is signed out). */
  async open(path: string, looks: Looks = {}): Promise<Tab> {
    const context = await this.#browser.newContext({
      viewport: { width: looks.width ?? 1280, height: looks.height ?? 800 },
      colorScheme: looks.theme ?? 'light',
      locale: looks.language ?? 'en',
      reducedMotion: looks.reduced === false ? 'no-preference' : 'reduce',
      baseURL: this.#base,
    });
    const token = looks.token === undefined ? this.#token : looks.token;
    if (token !== null) {
      // Once: whoever signs out stays so.
      await context.addInitScript((kept) => {
        if (sessionStorage.getItem('test.entered') === null) {
          sessionStorage.setItem('test.entered', '1');
          localStorage.setItem('laneway.token', kept);
        }
      }, token);
    }
    const page = await context.newPage();
    const tab = new Tab(context, page);
    if (looks.expected) tab.expected.push(looks.expected);
    await page.goto(path);
    return tab;
  }

  async end(): Promise<void> {
    await this.#close();
  }
}

export class Tab {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Errors of scripts, on the console, and of the CSP. */
  readonly faults: string[] = [];
  /** Texts of the console and addresses that a test brings about on purpose. */
  readonly expected: RegExp[] = [];

  constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
    page.on('pageerror', (error) => this.#fault(`error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error' || /content security policy/i.test(message.text())) {
        this.#fault(`console: ${message.text()} (${message.location().url})`);
      }
    });
    page.on('dialog', (dialog) => {
      this.#fault(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  #fault(text: string): void {
    if (!this.expected.some((pattern) => pattern.test(text))) this.faults.push(text);
  }

  /** Fails with all that went wrong in this tab. */
  expect_clean(): void {
    if (this.faults.length > 0) throw new Error(`the page complained:\n${this.faults.join('\n')}`);
  }

  /** Violations of WCAG 2.2 AA and of axe's good practice, as text; empty is good. */
  async axe(): Promise<string[]> {
    const found = await new AxeBuilder({ page: this.page }).analyze();
    return found.violations.map(
      (violation) => `${violation.id}: ${violation.help}\n  ${violation.nodes.map((node) => `${node.target.join(' ')} ${node.failureSummary}`).join('\n  ')}`,
    );
  }

  /** By how many pixels the page is wider than the window. */
  overflow(): Promise<number> {
    return this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  }

  /** Into LANEWAY_SHOTS, if that is set. */
  async shot(name: string): Promise<void> {
    const folder = process.env['LANEWAY_SHOTS'];
    if (!folder) return;
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  }

  async close(): Promise<void> {
    await this.context.close();
  }
}
