// Why a button cannot be pressed by this role; null if it can.
import { t } from '../words';
import { session, type Role } from './session.svelte';

export function needs_role(role: Role): string | null {
  if (session.may(role)) return null;
  return t('fault.not_allowed', { role, mine: session.me?.role ?? '?' });
}
