// Text of an event stream, cut anywhere, into messages. Pure.

export type Message = { id: string | null; event: string; data: string };

/** Feeds on pieces and hands out whole messages; `ID` stays until another one comes, as the standard has it. */
export class Reader {
  #rest = '';
  #id: string | null = null;
  #event = '';
  #data: string[] = [];

  push(piece: string): Message[] {
    const messages: Message[] = [];
    let text = this.#rest + piece;
    // A CR at the end may be half of a CRLF: it waits for the next piece.
    let held = '';
    if (text.endsWith('\r')) {
      held = '\r';
      text = text.slice(0, -1);
    }
    const lines = text.split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? '') + held;
    for (const line of lines) {
      const message = this.#line(line);
      if (message) messages.push(message);
    }
    return messages;
  }

  #line(line: string): Message | null {
    if (line === '') {
      const message = this.#data.length > 0 ? { id: this.#id, event: this.#event || 'message', data: this.#data.join('\n') } : null;
      this.#event = '';
      this.#data = [];
      return message;
    }
    if (line.startsWith(':')) return null;
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#event = value;
    else if (field === 'id') this.#id = value;
    return null;
  }
}
