// From what somebody typed into the run form to the parameters of a run. Pure.
import type { Param } from '../api/types';

export type Typed = Record<string, string>;
export type FormFault = { name: string; key: 'form.lacks' | 'form.not_integer' | 'form.not_number' | 'form.not_json'; why?: string };

/** A value as the field shows it. */
export function text_of(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** A field that is left empty is not given: the default counts, or nothing. */
export function values_of(params: readonly Param[], typed: Typed): { values: Record<string, unknown>; faults: FormFault[] } {
  const values: Record<string, unknown> = {};
  const faults: FormFault[] = [];
  for (const param of params) {
    const text = typed[param.name] ?? '';
    if (text.trim() === '' && !(param.type === 'string' && text !== '')) {
      if (param.required && (param.default === undefined || param.default === null)) faults.push({ name: param.name, key: 'form.lacks' });
      continue;
    }
    const read = value_of(param, text);
    if ('fault' in read) faults.push(read.fault);
    else values[param.name] = read.value;
  }
  return { values, faults };
}

function value_of(param: Param, text: string): { value: unknown } | { fault: FormFault } {
  const { name } = param;
  const trimmed = text.trim();
  switch (param.type) {
    case 'string':
      return { value: text };
    case 'integer':
      return /^[+-]?\d+$/.test(trimmed) && Number.isSafeInteger(Number(trimmed)) ? { value: Number(trimmed) } : { fault: { name, key: 'form.not_integer' } };
    case 'number':
      return trimmed !== '' && Number.isFinite(Number(trimmed)) ? { value: Number(trimmed) } : { fault: { name, key: 'form.not_number' } };
    case 'boolean':
      return { value: trimmed === 'true' };
    default:
      try {
        return { value: JSON.parse(trimmed) as unknown };
      } catch (error) {
        return { fault: { name, key: 'form.not_json', why: error instanceof Error ? error.message : String(error) } };
      }
  }
}
