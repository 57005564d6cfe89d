// What a program printed, made safe to show: colours of SGR sequences become classes, every other sequence is dropped (so no links, no
// moved cursor), and characters that cannot be seen or that turn text around are shown as signs. Never HTML. Pure.

/** Indices of the sixteen colours of a theme; `null` is the theme's own. */
export interface Style {
  foreground: number | null;
  background: number | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
}

export interface Span {
  text: string;
  style: Style;
}

export const PLAIN: Style = Object.freeze({
  foreground: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
});

// One alternative for each kind: CSI; OSC, DCS, SOS, PM and APC with their text up to their end; a lone escape with its letter.
const SEQUENCE =
  /\u001b\[([0-?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?|\u009b([0-?]*)[ -/]*([@-~])/g;

/** Signs for what would not be seen. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

export function visible(text: string): string {
  return text.replace(UNSEEN, (found) => {
    const code = found.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return '\u2421';
    return `<U+${code.toString(16).toUpperCase().padStart(4, '0')}>`;
  });
}

/** A line as spans of one style each, and the style in which the next line begins. */
export function parse(line: string, start: Style = PLAIN): { spans: Span[]; end: Style } {
  const text = last_written(line);
  const spans: Span[] = [];
  let style = start;
  let from = 0;
  const put = (up_to: number): void => {
    if (up_to > from) spans.push({ text: visible(text.slice(from, up_to)), style });
  };
  if (text.includes('\u001b') || text.includes('\u009b')) {
    for (const found of text.matchAll(SEQUENCE)) {
      put(found.index);
      from = found.index + found[0].length;
      style = after(found, style);
    }
  }
  put(text.length);
  return { spans, end: style };
}

/** Only the style that follows a line: what an index of many lines needs. */
export function style_after(line: string, start: Style): Style {
  if (!line.includes('\u001b') && !line.includes('\u009b')) return start;
  let style = start;
  for (const found of line.matchAll(SEQUENCE)) style = after(found, style);
  return style;
}

/** What can be searched: the text as it is shown. */
export function plain(line: string): string {
  const text = last_written(line);
  return visible(text.includes('\u001b') || text.includes('\u009b') ? text.replace(SEQUENCE, '') : text);
}

/** A program that draws a bar writes over its line: what it wrote last is what a terminal shows. */
function last_written(line: string): string {
  const text = line.endsWith('\r') ? line.replace(/\r+$/, '') : line;
  const last = text.lastIndexOf('\r');
  return last === -1 ? text : text.slice(last + 1);
}

function after(found: RegExpMatchArray, style: Style): Style {
  const is_colour = (found[2] ?? found[4]) === 'm';
  return is_colour ? sgr(found[1] ?? found[3] ?? '', style) : style;
}

function sgr(parameters: string, before: Style): Style {
  const codes = parameters.split(/[;:]/).map((code) => (code === '' ? 0 : Number(code)));
  let style: Style = { ...before };
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at]!;
    if (code === 38 || code === 48) {
      const [colour, used] = extended(codes, at + 1);
      if (code === 38) style.foreground = colour;
      else style.background = colour;
      at += used;
      continue;
    }
    style = one(code, style);
  }
  return style;
}

function one(code: number, style: Style): Style {
  if (code >= 30 && code <= 37) return { ...style, foreground: code - 30 };
  if (code >= 90 && code <= 97) return { ...style, foreground: code - 90 + 8 };
  if (code >= 40 && code <= 47) return { ...style, background: code - 40 };
  if (code >= 100 && code <= 107) return { ...style, background: code - 100 + 8 };
  switch (code) {
    case 0:
      return { ...PLAIN };
    case 1:
      return { ...style, bold: true };
    case 2:
      return { ...style, dim: true };
    case 3:
      return { ...style, italic: true };
    case 4:
      return { ...style, underline: true };
    case 7:
      return { ...style, inverse: true };
    case 22:
      return { ...style, bold: false, dim: false };
    case 23:
      return { ...style, italic: false };
    case 24:
      return { ...style, underline: false };
    case 27:
      return { ...style, inverse: false };
    case 39:
      return { ...style, foreground: null };
    case 49:
      return { ...style, background: null };
    default:
      return style;
  }
}

/** `5;N` and `2;R;G;B` become the nearest of the sixteen: those can be read in both themes. */
function extended(codes: number[], at: number): [number | null, number] {
  if (codes[at] === 5) return [of_palette(codes[at + 1] ?? 0), 2];
  if (codes[at] === 2) return [nearest(codes[at + 1] ?? 0, codes[at + 2] ?? 0, codes[at + 3] ?? 0), 4];
  return [null, 0];
}

function of_palette(number: number): number {
  if (number < 16) return Math.max(0, number);
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return nearest(grey, grey, grey);
  }
  const cube = number - 16;
  const level = (value: number): number => (value === 0 ? 0 : 55 + value * 40);
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

const SIXTEEN: readonly [number, number, number][] = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
];

function nearest(red: number, green: number, blue: number): number {
  let best = 0;
  let distance = Infinity;
  SIXTEEN.forEach(([r, g, b], index) => {
    const found = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
    if (found < distance) [best, distance] = [index, found];
  });
  return best;
}

/** Names of classes; the theme says what they look like. */
export function classes(style: Style): string {
  const [foreground, background] = style.inverse
    ? [style.background, style.foreground ?? 7]
    : [style.foreground, style.background];
  const names: string[] = [];
  if (background !== null) names.push('ansi-on', `ansi-b${background}`);
  else if (foreground !== null) names.push(`ansi-f${foreground}`);
  if (style.bold) names.push('ansi-bold');
  if (style.dim) names.push('ansi-dim');
  if (style.italic) names.push('ansi-italic');
  if (style.underline) names.push('ansi-underline');
  return names.join(' ');
}
