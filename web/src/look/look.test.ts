import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { RUN_STATUSES } from '../route/routes';
import { en } from '../words/en';
import { SHAPES, TASK_STATUSES } from './states';

const css = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8');
const colours = new Map([...css.matchAll(/--(light|dark)-([\w-]+):\s*(#[0-9a-f]{6})/g)].map((match) => [`${match[1]}-${match[2]}`, match[3] ?? '']));

function luminance(hex: string): number {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  const [r = 0, g = 0, b = 0] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(one: string, other: string): number {
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

test('text and states can be read on every ground, in both themes', () => {
  const inks = ['text', 'soft', 'accent', 'waiting', 'ready', 'running', 'parked', 'succeeded', 'failed', 'canceled', 'skipped'];
  for (const theme of ['light', 'dark']) {
    const colour = (name: string) => {
      const found = colours.get(`${theme}-${name}`);
      if (!found) throw new Error(`${theme} lacks ${name}`);
      return found;
    };
    for (const ink of inks) {
      for (const ground of ['ground', 'raised', 'sunken']) {
        expect(contrast(colour(ink), colour(ground)), `${theme}: ${ink} on ${ground}`).toBeGreaterThanOrEqual(4.5);
      }
    }
    expect(contrast(colour('on-accent'), colour('accent')), theme).toBeGreaterThanOrEqual(4.5);
    expect(contrast(colour('edge'), colour('ground')), `${theme}: edges of fields`).toBeGreaterThanOrEqual(3);
  }
});

test('every state has a word, and no two states of a task look alike but for colour', () => {
  for (const state of [...TASK_STATUSES, ...RUN_STATUSES]) {
    expect(SHAPES[state], state).toBeDefined();
    expect(`state.${state}` in en, state).toBe(true);
  }
  const drawn = TASK_STATUSES.map((state) => {
    const shape = SHAPES[state];
    return `${shape?.outline}|${shape?.sign}|${shape?.filled}|${shape?.dashed ?? false}`;
  });
  expect(new Set(drawn).size).toBe(TASK_STATUSES.length);
});
