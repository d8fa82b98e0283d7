/** Fewer items are not worth a look. */
const SIEVE_FROM = 1024;

/** A queue whose ends are both cheap. */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;
  #sieveAt = SIEVE_FROM;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    // Moving the rest once it is the smaller half costs one move for each item.
    if (this.#head > 64 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Puts items before all others, in their order. */
  unshiftAll(items: readonly T[]): void {
    this.#items = [...items, ...this.toArray()];
    this.#head = 0;
  }

  /** Takes an item out, wherever it is. */
  remove(item: T): void {
    const at = this.#items.indexOf(item, this.#head);
    if (at >= 0) this.#items.splice(at, 1);
  }

  /** Drops items that are not to be kept, once there are twice as many as the last time left: so it costs little. */
  sieve(keep: (item: T) => boolean): void {
    if (this.length < this.#sieveAt) return;
    this.#items = this.toArray().filter(keep);
    this.#head = 0;
    this.#sieveAt = Math.max(SIEVE_FROM, 2 * this.length);
  }

  clear(): T[] {
    const items = this.toArray();
    this.#items = [];
    this.#head = 0;
    return items;
  }

  toArray(): T[] {
    return this.#items.slice(this.#head) as T[];
  }
}
