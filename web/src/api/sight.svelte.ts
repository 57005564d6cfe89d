// Whether somebody can see this tab. A browser has six connections to a server, for all its tabs together: one that nobody sees must not hold
// any for longer than a question takes, or the seventh that is opened waits for ever.
class Sight {
  is_seen = $state(!document.hidden);

  start(): void {
    document.addEventListener('visibilitychange', () => (this.is_seen = !document.hidden));
  }
}

export const sight = new Sight();
