// Lifetimes that the forms of tokens offer, in seconds, and their words. Pure but for the words.
import { t } from '../words';

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;

/** How long a secret may be accepted. */
export const LIFETIMES_S = [DAY_S, 7 * DAY_S, 30 * DAY_S, 90 * DAY_S, 365 * DAY_S];
export const DEFAULT_LIFETIME_S = 90 * DAY_S;

/** How long the old secret of a rotated token may still be accepted. */
export const GRACES_S = [HOUR_S, DAY_S, 7 * DAY_S];

/** `1 hour`, `90 days`. */
export function lifetime(seconds: number): string {
  return seconds < DAY_S ? t('tokens.hours', { n: seconds / HOUR_S }) : t('tokens.days', { n: seconds / DAY_S });
}
