interface Entry<Client> {
  readonly client: Client;
  /** Calls that are running. */
  running: number;
}

/**
 * Clients, each made when it is first called with its settings. Other settings are another client: calls that run when settings are
 * replaced end with the client that they began with, which is closed then.
 */
export class KeptClients<Settings extends object, Client extends AsyncDisposable> implements AsyncDisposable {
  readonly #create: (settings: Settings) => Client;
  readonly #isCurrent: (settings: Settings) => boolean;
  readonly #open = new Map<Settings, Entry<Client>>();
  readonly #closing = new Set<Promise<void>>();

  constructor(create: (settings: Settings) => Client, isCurrent: (settings: Settings) => boolean) {
    this.#create = create;
    this.#isCurrent = isCurrent;
  }

  async use<T>(settings: Settings, run: (client: Client) => Promise<T>): Promise<T> {
    let entry = this.#open.get(settings);
    if (entry === undefined) this.#open.set(settings, (entry = { client: this.#create(settings), running: 0 }));
    entry.running += 1;
    try {
      return await run(entry.client);
    } finally {
      entry.running -= 1;
      this.#closeUnused(settings, entry);
    }
  }

  /** Call when settings were replaced: closes their clients, those with running calls when these have ended. */
  retire(): void {
    for (const [settings, entry] of this.#open) this.#closeUnused(settings, entry);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const open = [...this.#open.values()].map(({ client }) => client[Symbol.asyncDispose]());
    await Promise.all([...open, ...this.#closing]);
  }

  #closeUnused(settings: Settings, { client, running }: Entry<Client>): void {
    if (running > 0 || this.#isCurrent(settings)) return;
    this.#open.delete(settings);
    const closing = Promise.resolve(client[Symbol.asyncDispose]()).finally(() => this.#closing.delete(closing));
    this.#closing.add(closing);
  }
}
