// Moments, durations and sizes as text. Pure.

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** `3 minutes ago`, `in 2 hours`; `now` for less than two seconds. */
export function relative(at: number, now: number, language: string): string {
  const seconds = (at - now) / 1000;
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  if (Math.abs(seconds) < 2) return format.format(0, 'second');
  for (const [unit, size] of STEPS) {
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit);
  }
  return format.format(0, 'second');
}

/** `840 ms`, `3.2 s`, `4 m 05 s`, `2 h 03 m`, `3 d 4 h`. */
export function duration(ms: number): string {
  const value = Math.max(0, ms);
  if (value < 1000) return `${Math.round(value)} ms`;
  const seconds = value / 1000;
  if (seconds < 59.5) return `${seconds < 9.95 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const two = (part: number) => String(part).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${two(whole % 60)} s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} m`;
  return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3600)} h`;
}

/** What is left until a moment: `0:09`, `4:05`, `2:03:09`, `3 d 04:00:00`. Never shorter than it is. */
export function countdown(ms: number): string {
  const whole = Math.max(0, Math.ceil(ms / 1000));
  const two = (part: number) => String(part).padStart(2, '0');
  const [days, hours, minutes, seconds] = [Math.floor(whole / 86_400), Math.floor((whole % 86_400) / 3600), Math.floor((whole % 3600) / 60), whole % 60];
  if (days > 0) return `${days} d ${two(hours)}:${two(minutes)}:${two(seconds)}`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let value = count / 1024;
  let unit = 0;
  while (value >= 1023.95 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** The end of a run's id tells runs apart: its beginning is the time. */
export function short_run(run: string): string {
  return run.slice(-12);
}

/** The moment to the second in the reader's own time zone. */
export function exact(at: number, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(at);
}
