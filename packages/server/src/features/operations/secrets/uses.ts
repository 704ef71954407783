import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat } from '../../../kernel/timers.ts';
import { recordSecretUses } from './store.ts';

export interface UsesDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
}

const saveMs = 60_000;

/** Announces uses of secrets, and stores their counts once a minute: a use must not wait for a disk. */
export class SecretUses implements AsyncDisposable {
  readonly #deps: UsesDeps;
  readonly #saving: AsyncDisposable;
  #pending = new Map<string, { readonly count: number; readonly atMs: number }>();

  constructor(deps: UsesDeps) {
    this.#deps = deps;
    this.#saving = repeat({ clock: deps.clock, everyMs: saveMs, run: () => this.#save(), onError: (error) => this.#warn(error) });
  }

  note(secretName: string, outcome: 'success' | 'denied' | 'not_found'): void {
    const { bus, clock } = this.#deps;
    const atMs = clock.now();
    if (outcome === 'success') this.#pending.set(secretName, { count: (this.#pending.get(secretName)?.count ?? 0) + 1, atMs });
    bus.emit('secret:accessed', { secretName, outcome, timestamp: atMs });
  }

  /** Uses that are not stored yet. */
  pendingOf(name: string): { readonly count: number; readonly atMs: number } | undefined {
    return this.#pending.get(name);
  }

  async #save(): Promise<void> {
    const taken = this.#pending;
    if (taken.size === 0) return;
    this.#pending = new Map();
    await this.#deps.db.write(recordSecretUses, { uses: [...taken].map(([name, use]) => ({ name, ...use })) });
  }

  #warn(error: unknown): void {
    this.#deps.log.warn({ err: error }, 'Failed to store the use of secrets');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#saving[Symbol.asyncDispose]();
    await this.#save().catch((error: unknown) => this.#warn(error));
  }
}
