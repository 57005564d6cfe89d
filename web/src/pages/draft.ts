// What somebody writes into the document of a workflow and has not applied: kept for this tab, by the workflow's name. A document that is
// not known yet has none.

const place = (name: string | null): string => `laneway.draft.${name === null ? 'new' : `of ${name}`}`;

export function draft_of(name: string | null): string | null {
  try {
    return sessionStorage.getItem(place(name));
  } catch {
    return null;
  }
}

export function keep_draft(name: string | null, text: string): void {
  try {
    sessionStorage.setItem(place(name), text);
  } catch {
    // There is no room, or nothing may be kept: then it is there for as long as the page is.
  }
}

export function forget_draft(name: string | null): void {
  try {
    sessionStorage.removeItem(place(name));
  } catch {
    // Nothing is kept.
  }
}
