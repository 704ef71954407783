import { Client, type QueryResult } from 'pg';
import type { Clock } from '../../clock.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import { placeOf } from './place.ts';
import { LostConnection, SilentServer } from './postgres-errors.ts';
import { type ServerAddress, serversOf } from './server-address.ts';
import { valueTypes } from './values.ts';

/** What a connection is for: `lane` writes, `fast` writes without waiting for the disk, `read` reads snapshots, `lease` keeps that of the daemon. */
export type Purpose = 'lane' | 'fast' | 'read' | 'search' | 'lease';

export interface ConnectionOptions {
  readonly address: ServerAddress;
  readonly purpose: Purpose;
  readonly clock: Clock;
}

/**
 * Time limits of the server for one statement, in milliseconds. Those of writes are short, because a frozen owner must not block its
 * successor; searches may take long, because nobody waits for their locks.
 */
const statementMs: Readonly<Record<Purpose, number>> = { lane: 5_000, fast: 5_000, read: 7_000, search: 30_000, lease: 2_000 };
const idleTransactionMs = 5_000;
/** A server that answers nothing for this much longer than it would allow itself is gone, although its connection is still open. */
const graceMs = 1_000;
const connectMs = 3_000;
const keepAliveMs = 2_000;

/** What a new session reports of its server. */
export interface ServerFacts {
  /** A write is refused: a standby, or an operator set `default_transaction_read_only`. */
  readonly readOnly: boolean;
  /** Changes when another server takes over; null on a standby. */
  readonly timeline: string | null;
  /** Changes when the server crashes, which loses its statistics and the newest transaction ids. */
  readonly recoveredAt: string | null;
}

/** The span in which a transaction id names one transaction. */
export type ServerLife = Pick<ServerFacts, 'timeline' | 'recoveredAt'>;

interface Outstanding {
  settle(error: Error | undefined, result?: QueryResult): void;
}

/** One session: statements are sent at once and answered in their order. */
export class Connection {
  readonly facts: ServerFacts;
  /** Names the one server that it leads to. */
  readonly url: string;
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  readonly #outstanding = new Set<Outstanding>();
  #progressAt = 0;
  #heardAt: number;
  #watching = false;
  #lost: Error | undefined;
  #onLost = (_error: Error) => {};

  private constructor(client: Client, url: string, facts: ServerFacts, deadlineMs: number, clock: Clock) {
    this.#client = client;
    this.url = url;
    this.facts = facts;
    this.#deadlineMs = deadlineMs;
    this.#clock = clock;
    this.#heardAt = clock.monotonic();
    client.on('error', (error) => this.#lose(error));
    client.on('end', () => this.#lose(new LostConnection('The connection to the database ended')));
  }

  /** Connects to the server of the address; when it lists several, to the one that accepts writes. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const [first = '', ...others] = serversOf(options.address.url);
    if (others.length === 0) return Connection.#openAt(first, options);
    const attempts = await Promise.allSettled([first, ...others].map((url) => Connection.#openAt(url, options)));
    const opened = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []));
    // A former primary that came back accepts writes as well: the newest timeline is that of its successor.
    const chosen = opened
      .filter(({ facts }) => !facts.readOnly)
      .reduce<Connection | undefined>((best, next) => ((next.facts.timeline ?? '') > (best?.facts.timeline ?? '') ? next : best), undefined);
    await Promise.all(opened.filter((connection) => connection !== chosen).map((connection) => connection.close()));
    if (chosen !== undefined) return chosen;
    if (opened.length > 0) throw new LostConnection('none of the database servers accepts writes');
    throw (attempts[0] as PromiseRejectedResult).reason;
  }

  static async #openAt(url: string, { address, purpose, clock }: ConnectionOptions): Promise<Connection> {
    const client = new Client({
      connectionString: url,
      ...(address.ssl !== undefined && { ssl: address.ssl }),
      application_name: `gatehouse ${purpose}`,
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      types: valueTypes,
      pipeline: true,
    });
    // Errors before the constructor below listens are those of `connect`.
    client.on('error', () => {});
    const late = Promise.withResolvers<never>();
    // The limit of the client ends with the socket; a server that accepts it and then says nothing would not be noticed.
    const cancel = clock.after(connectMs, () => late.reject(new LostConnection('The database server did not answer in time')));
    try {
      await Promise.race([client.connect(), late.promise]);
      const { rows } = await Promise.race([
        client.query<Omit<ServerFacts, 'readOnly'> & { readOnly: number; mark: string | null }>(sessionSettings(purpose)),
        late.promise,
      ]);
      const [found] = rows;
      if (found === undefined) throw new LostConnection('The database server did not describe itself');
      // With the settings of another connection a commit might not wait for the disk.
      if (found.mark === 'used')
        throw new StartError(
          'unusable',
          `Connections to ${placeOf(url)} share their sessions, as those of PgBouncer do in transaction mode: connect directly, or by PgBouncer in session mode.`,
        );
      const facts = { readOnly: found.readOnly === 1, timeline: found.timeline, recoveredAt: found.recoveredAt };
      return new Connection(client, url, facts, statementMs[purpose] + graceMs, clock);
    } catch (error) {
      void client.end().catch(() => {});
      destroy(client);
      throw error;
    } finally {
      cancel();
    }
  }

  get isOpen(): boolean {
    return this.#lost === undefined;
  }

  /** Time of the last answer, by the monotonic clock. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** Called once, when the connection ends without `close`. */
  onLost(listener: (error: Error) => void): void {
    this.#onLost = listener;
  }

  /** Sends statements without parameters; several, separated by `;`, answer with a list of results. */
  send(text: string): Promise<QueryResult> {
    return this.#query({ text });
  }

  /** Sends a statement that is prepared once under `name`, or each time without a name. */
  execute(name: string | undefined, text: string, values: unknown[]): Promise<QueryResult> {
    return this.#query({ ...(name !== undefined && { name }), text, values });
  }

  /** Ends the connection at once; whatever is not answered yet fails. */
  drop(error: Error): void {
    this.#lose(error);
  }

  async close(): Promise<void> {
    this.#onLost = () => {};
    if (this.#lost !== undefined) return;
    await Promise.race([this.#client.end(), new Promise<void>((resolve) => this.#clock.after(graceMs, resolve))]);
    this.#lose(new LostConnection('The connection to the database is closed'));
  }

  #query(config: { readonly text: string; readonly name?: string; readonly values?: unknown[] }): Promise<QueryResult> {
    if (this.#lost !== undefined) return Promise.reject(this.#lost);
    return new Promise((resolve, reject) => {
      const entry: Outstanding = {
        settle: (error, result) => {
          if (!this.#outstanding.delete(entry)) return;
          this.#progressAt = this.#heardAt = this.#clock.monotonic();
          if (error !== undefined) reject(error);
          else resolve(result as QueryResult);
        },
      };
      if (this.#outstanding.size === 0) this.#progressAt = this.#clock.monotonic();
      this.#outstanding.add(entry);
      if (!this.#watching) this.#watch(this.#deadlineMs);
      void this.#client.query(config as never, ((error: Error | null, result: QueryResult) => entry.settle(error ?? undefined, result)) as never);
    });
  }

  #watch(ms: number): void {
    this.#watching = true;
    this.#clock.after(ms, () => {
      this.#watching = false;
      if (this.#lost !== undefined || this.#outstanding.size === 0) return;
      const leftMs = this.#progressAt + this.#deadlineMs - this.#clock.monotonic();
      if (leftMs <= 0) this.#lose(new SilentServer(this.#progressAt));
      else this.#watch(leftMs);
    });
  }

  #lose(error: Error): void {
    if (this.#lost !== undefined) return;
    this.#lost = error;
    destroy(this.#client);
    for (const entry of this.#outstanding) entry.settle(error);
    this.#onLost(error);
  }
}

/** Returns the address of the one server that accepts writes, when an address lists several. */
export async function findServer(address: ServerAddress, clock: Clock): Promise<ServerAddress> {
  if (serversOf(address.url).length === 1) return address;
  const connection = await Connection.open({ address, purpose: 'read', clock });
  await connection.close();
  return { ...address, url: connection.url };
}

/** A setting that only sessions of this program have: one that has it before it is set belongs to another connection, too. */
const usedMark = 'gatehouse.session';

function destroy(client: Client): void {
  // Its `end` waits for answers, which may never come.
  (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream.destroy();
}

function sessionSettings(purpose: Purpose): string {
  const reads = purpose === 'read' || purpose === 'search';
  const settings = {
    statement_timeout: String(statementMs[purpose]),
    lock_timeout: String(statementMs[purpose]),
    idle_in_transaction_session_timeout: String(idleTransactionMs),
    bytea_output: 'hex',
    standard_conforming_strings: 'on',
    ...(reads && { default_transaction_read_only: 'on', default_transaction_isolation: 'repeatable read' }),
    ...(purpose === 'fast' && { synchronous_commit: 'off' }),
    [usedMark]: 'used',
  };
  const list = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`);
  // A commit is acknowledged when it is on the disk, and on that of a synchronous standby: `off`, `local` and `remote_write` promise less.
  if (purpose === 'lane' || purpose === 'lease')
    list.push(
      `CASE WHEN current_setting('synchronous_commit') IN ('on', 'remote_apply') THEN '' ELSE set_config('synchronous_commit', 'on', false) END`,
    );
  return `SELECT current_setting('${usedMark}', true) AS mark, current_setting('transaction_read_only') = 'on' AS "readOnly",
    CASE WHEN pg_is_in_recovery() THEN NULL ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline,
    (SELECT stats_reset::text FROM pg_stat_wal) AS "recoveredAt",
    ${list.join(', ')}`;
}
