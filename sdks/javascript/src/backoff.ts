const FIRST_MS = 20;
const MOST_MS = 1000;

/** Exponential backoff. Jitter keeps clients from coming back at the same moment. */
export class Backoff {
  #next = FIRST_MS;

  reset(): void {
    this.#next = FIRST_MS;
  }

  nextMs(): number {
    const wait = this.#next;
    this.#next = Math.min(MOST_MS, wait * 2);
    return wait * (0.5 + Math.random() / 2);
  }
}
