// Signing in: by the code of a link that works once, or by a token. Nothing is kept but the token.
import { get, post, Problem } from '../api/client';
import { is_role, session } from '../api/session.svelte';
import { t } from '../words';

class Entering {
  is_busy = $state(false);
  /** Why the code of the link was refused. */
  refusal = $state<string | null>(null);
}

export const entering = new Entering();

/** The code in the address (`#code=…`) is taken out of it at once and changed for a token. */
export async function take_code(): Promise<void> {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  entering.is_busy = true;
  try {
    const made = await post('/v1/sign-in', { body: { code } });
    session.enter(made.token);
  } catch (error) {
    // Whoever is signed in already, and opens an old link, stays so.
    entering.refusal = error instanceof Error ? error.message : String(error);
  } finally {
    entering.is_busy = false;
  }
}

/** Asks who this is; the role decides which buttons can be pressed. */
export async function learn_me(): Promise<void> {
  try {
    const { role, ...me } = await get('/v1/me');
    session.me = { ...me, role: is_role(role) ? role : 'viewer' };
  } catch (error) {
    // A refused token has led back to the sign-in page already; anything else is asked again with the next change.
    if (!(error instanceof Problem)) return;
    if (error.status === 403) session.leave(t('sign_in.refused', { why: error.message }));
  }
}
