interface Leased {
  readonly owner: object;
  readonly queue: string;
  readonly leaseId: string;
  readonly ids: Set<string>;
  /** How many times `due` has seen it. */
  age: number;
}

/** Messages of one lease, to be extended together. */
export interface Due {
  readonly queue: string;
  readonly leaseId: string;
  readonly ids: readonly string[];
}

/** The messages of a client that were delivered and not settled, by lease. */
export class InFlight {
  readonly #leases = new Map<string, Leased>();

  add(owner: object, queue: string, leaseId: string, id: string): void {
    const name = `${queue}\n${leaseId}`;
    const leased = this.#leases.get(name);
    if (leased === undefined) this.#leases.set(name, { owner, queue, leaseId, ids: new Set([id]), age: 0 });
    else leased.ids.add(id);
  }

  /** Whether this client still has the message: it is not settled, and its lease has not ended as far as is known. */
  has(queue: string, leaseId: string, id: string): boolean {
    return this.#leases.get(`${queue}\n${leaseId}`)?.ids.has(id) ?? false;
  }

  /** Drops messages that are settled or lost. Without a lease id, under whichever lease of the queue they are. */
  forget(queue: string, leaseId: string, ids: readonly string[]): void {
    const leases = leaseId === '' ? [...this.#leases.values()] : [this.#leases.get(`${queue}\n${leaseId}`)];
    for (const leased of leases) {
      if (leased === undefined || leased.queue !== queue) continue;
      for (const id of ids) leased.ids.delete(id);
      if (leased.ids.size === 0) this.#leases.delete(`${leased.queue}\n${leased.leaseId}`);
    }
  }

  forgetOwner(owner: object): void {
    for (const [name, leased] of this.#leases) if (leased.owner === owner) this.#leases.delete(name);
  }

  holds(owner: object): boolean {
    for (const leased of this.#leases.values()) if (leased.owner === owner) return true;
    return false;
  }

  /** What to extend now. What is new since the last call is left out: it has two more chances in its time. */
  due(owner: object): Due[] {
    const found: Due[] = [];
    for (const leased of this.#leases.values()) {
      if (leased.owner === owner && leased.age++ > 0) {
        found.push({ queue: leased.queue, leaseId: leased.leaseId, ids: [...leased.ids] });
      }
    }
    return found;
  }
}
