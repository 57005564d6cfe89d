// Who is signed in: the token, kept in the browser, and what the server says of it.
import type { Problem } from './problem';

export type Role = 'viewer' | 'operator' | 'admin' | 'worker';
export type Me = { name: string; role: Role; server_version: string };

const PLACE = 'laneway.token';
const RANK: Record<Role, number> = { worker: 0, viewer: 1, operator: 2, admin: 3 };

export function is_role(word: string): word is Role {
  return word in RANK;
}

class Session {
  #token = $state<string | null>(read());
  me = $state<Me | null>(null);
  /** Why the last token was refused; the sign-in page says it. */
  reason = $state<string | null>(null);
  #is_replacing = false;

  get token(): string | null {
    return this.#token;
  }

  enter(token: string): void {
    this.#token = token.trim();
    this.me = null;
    this.reason = null;
    keep(this.#token);
  }

  leave(reason: string | null = null): void {
    this.#token = null;
    this.me = null;
    this.reason = reason;
    keep(null);
  }

  /** Signs out, unless the refused token is not the one in use, or `replace` is about to replace it. */
  refused(problem: Problem, used: string | null = this.#token): void {
    if (this.#token === null || this.#is_replacing || used !== this.#token) return;
    this.leave(problem.message);
  }

  /** Stays signed in with the token that `rotate` returns. The server may refuse the old one before the response arrives. */
  async replace<T extends { token: string }>(rotate: () => Promise<T>): Promise<T> {
    this.#is_replacing = true;
    try {
      const rotated = await rotate();
      this.#token = rotated.token;
      keep(this.#token);
      return rotated;
    } finally {
      this.#is_replacing = false;
    }
  }

  /** Buttons follow it; the server decides. */
  may(role: Role): boolean {
    return this.me !== null && RANK[this.me.role] >= RANK[role];
  }
}

// A browser may refuse to keep anything; then a token lives as long as the tab.
function read(): string | null {
  try {
    return localStorage.getItem(PLACE);
  } catch {
    return null;
  }
}

function keep(token: string | null): void {
  try {
    if (token === null) localStorage.removeItem(PLACE);
    else localStorage.setItem(PLACE, token);
  } catch {
    // As above.
  }
}

export const session = new Session();
