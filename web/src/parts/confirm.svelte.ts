// One question at a time: what is to be done, and what will follow from it.
export type Question = {
  title: string;
  /** What follows: a sentence a person can decide by. */
  consequence: string;
  /** Word on the button that does it. */
  act: string;
  danger?: boolean;
  /** Asks for a text too, such as a reason; handed to whoever asked. */
  text?: { label: string; required: boolean };
};
export type Reply = { text: string };

class Confirming {
  question = $state.raw<Question | null>(null);
  #reply: ((reply: Reply | null) => void) | null = null;

  /** Null if nothing is to be done. */
  ask(question: Question): Promise<Reply | null> {
    this.reply(null);
    this.question = question;
    return new Promise((resolve) => (this.#reply = resolve));
  }

  reply(reply: Reply | null): void {
    this.question = null;
    this.#reply?.(reply);
    this.#reply = null;
  }
}

export const confirming = new Confirming();
export const confirm = (question: Question): Promise<Reply | null> => confirming.ask(question);
