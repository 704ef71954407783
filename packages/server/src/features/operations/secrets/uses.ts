import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import { recordSecretUses } from './store.ts';

export interface UsesDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
}

const saveMs = 60_000;

/** Announces uses of secrets, and stores their counts within a minute: a use must not wait for a disk. */
export class SecretUses implements AsyncDisposable {
  readonly #deps: UsesDeps;
  #pending = new Map<string, { readonly count: number; readonly atMs: number }>();
  /** Set while uses wait to be stored. */
  #cancel: (() => void) | undefined;
  #saving: Promise<void> = Promise.resolve();

  constructor(deps: UsesDeps) {
    this.#deps = deps;
  }

  note(secretName: string, outcome: 'success' | 'denied' | 'not_found'): void {
    const { bus, clock } = this.#deps;
    const atMs = clock.now();
    if (outcome === 'success') {
      this.#pending.set(secretName, { count: (this.#pending.get(secretName)?.count ?? 0) + 1, atMs });
      this.#cancel ??= clock.after(saveMs, () => {
        this.#saving = this.#save();
      });
    }
    bus.emit('secret:accessed', { secretName, outcome, timestamp: atMs });
  }

  /** Uses that are not stored yet. */
  pendingOf(name: string): { readonly count: number; readonly atMs: number } | undefined {
    return this.#pending.get(name);
  }

  async #save(): Promise<void> {
    const { db, log } = this.#deps;
    const taken = this.#pending;
    this.#pending = new Map();
    this.#cancel = undefined;
    if (taken.size === 0) return;
    try {
      await db.write(recordSecretUses, { uses: [...taken].map(([name, use]) => ({ name, ...use })) });
    } catch (error) {
      log.warn({ err: error }, 'Failed to store the use of secrets');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cancel?.();
    await this.#saving;
    await this.#save();
  }
}
