// How high the bars of the last outcomes are. Pure.
import type { Outcome } from '../api/types';

const LOWEST = 4;
/** Room above it is for the sign of a failure. */
const HIGHEST = 14;

/** Oldest first. Heights are by the root of the time taken: what took long shows, what was short stays visible. */
export function bars(outcomes: readonly Outcome[]): { outcome: Outcome; height: number }[] {
  const sorted = [...outcomes].sort((a, b) => a.at.localeCompare(b.at) || a.run.localeCompare(b.run));
  const longest = Math.max(1, ...sorted.map((outcome) => outcome.took_ms ?? 0));
  return sorted.map((outcome) => {
    const part = Math.sqrt((outcome.took_ms ?? 0) / longest);
    return { outcome, height: Math.round(LOWEST + part * (HIGHEST - LOWEST)) };
  });
}
