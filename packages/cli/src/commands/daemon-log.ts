import type { Client, EventsOptions } from '@gatehouse/client';
import type { LogLine } from '@gatehouse/contract';

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

/** Which lines of the daemon's log are shown. */
export interface LogFilter {
  readonly level?: LogLine['level'] | undefined;
  readonly module?: string | undefined;
}

/** Reads the log of the daemon: lines that were missed while the connection was lost are fetched, and none is shown twice. */
export class DaemonLog {
  readonly #client: Client;
  readonly #filter: LogFilter;
  readonly #print: (line: LogLine) => Promise<void>;
  #limit: number;
  #lastId = 0;
  /** One thing at a time: what was missed, then what follows. */
  #work = Promise.resolve();

  constructor(client: Client, filter: LogFilter, { limit, print }: { readonly limit: number; readonly print: (line: LogLine) => Promise<void> }) {
    this.#client = client;
    this.#filter = filter;
    this.#limit = limit;
    this.#print = print;
  }

  static readonly kinds = ['daemon:log'] as const satisfies EventsOptions['kinds'];

  /** Shows the newest lines; later those since the last one. */
  showNewest(): Promise<void> {
    return this.#then(async () => {
      const { lines } = await this.#client.call('daemon.logs', { ...this.#filter, limit: this.#limit, afterId: this.#lastId });
      // Whatever was missed since is shown, however few lines were wanted at first.
      this.#limit = 500;
      for (const line of lines) await this.#show(line);
    });
  }

  /** Shows a line that follows. */
  hear(line: LogLine): Promise<void> {
    return this.#then(() => this.#show(line));
  }

  async #show(line: LogLine): Promise<void> {
    if (line.id <= this.#lastId) return;
    this.#lastId = line.id;
    const { level = 'trace', module } = this.#filter;
    if (levels.indexOf(line.level) < levels.indexOf(level) || (module !== undefined && line.module !== module)) return;
    await this.#print(line);
  }

  #then(work: () => Promise<void>): Promise<void> {
    return (this.#work = this.#work.then(work));
  }
}
