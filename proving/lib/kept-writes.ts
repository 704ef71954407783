import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { answerTo, askWith, nonceOf } from './provider.ts';
import { RpcFailure, rpcCall, type RpcTarget } from './rpc.ts';

/** Writes of several kinds, one after the other per kind, and which of them were acknowledged. */
export interface Writers {
  readonly acked: ReadonlyMap<string, Kind>;
  /** Answered with an error. */
  readonly refused: number;
  /** Failures other than errors of the protocol. */
  readonly broken: readonly string[];
  /** Resolves when each kind was written so many more times. */
  readonly done: Promise<void>;
}

export type Kind = 'turn' | 'token' | 'agent' | 'memory';
const kinds: readonly Kind[] = ['turn', 'token', 'agent', 'memory'];

const callOf = (kind: Kind, nonce: string): readonly [string, object] =>
  ({
    turn: ['agent.execute', { message: askWith(nonce), sessionKey: 'kept:writes' }] as const,
    token: ['tokens.create', { id: nonce, scopes: ['rpc'] }] as const,
    agent: ['agents.create', { agentId: nonce, config: { model: 'local/test-model' } }] as const,
    memory: ['memory.store', { content: `Remember ${nonce}` }] as const,
  })[kind];

/** Writes while `more` holds; `paceMs` between two of a kind. Each run on the same home needs its own `mark`. */
export function startWriters(
  target: RpcTarget,
  more: (asked: number) => boolean,
  { paceMs = 0, mark = 'only' }: { readonly paceMs?: number; readonly mark?: string } = {},
): Writers {
  const acked = new Map<string, Kind>();
  const broken: string[] = [];
  let refused = 0;
  const write = async (kind: Kind): Promise<void> => {
    for (let n = 0; more(n); n += 1) {
      const nonce = nonceOf([kind, mark, n]);
      try {
        await rpcCall(target, ...callOf(kind, nonce), { timeoutMs: 10_000 });
        acked.set(nonce, kind);
      } catch (error) {
        if (error instanceof RpcFailure) refused += 1;
        else broken.push(`${kind} ${n}: ${String(error)}`);
      }
      if (paceMs > 0) await new Promise((resolve) => setTimeout(resolve, paceMs));
    }
  };
  const done = Promise.all(kinds.map(write)).then(() => undefined);
  return {
    acked,
    broken,
    done,
    get refused() {
      return refused;
    },
  };
}

/** Returns what is wrong with the database of a home whose daemon is gone: damage, and acknowledged rows that are missing. */
export function lookForAcked(home: string, acked: ReadonlyMap<string, Kind>): string[] {
  const wrong: string[] = [];
  // Not read-only: what the dead process left in the log is part of the database.
  const db = new DatabaseSync(join(home, 'data', 'gatehouse.db'));
  try {
    const check = db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check'];
    if (check !== 'ok') wrong.push(`the database is damaged: ${String(check)}`);
    const texts = (sql: string): Set<string> =>
      new Set(
        db
          .prepare(sql)
          .all()
          .map((row) => String(row['text'])),
      );
    const messages = texts('SELECT content AS text FROM message WHERE length(content) < 200');
    const stored = {
      token: texts('SELECT id AS text FROM token'),
      agent: texts("SELECT key AS text FROM config_version WHERE section = 'agents'"),
      memory: texts('SELECT content AS text FROM memory'),
    };
    for (const [nonce, kind] of acked) {
      const isThere =
        kind === 'turn'
          ? messages.has(askWith(nonce)) && messages.has(answerTo(nonce))
          : stored[kind].has(kind === 'memory' ? `Remember ${nonce}` : nonce);
      if (!isThere) wrong.push(`acknowledged and not there: ${kind} ${nonce}`);
    }
    return wrong;
  } catch (error) {
    return [...wrong, `the database cannot be read: ${String(error)}`];
  } finally {
    db.close();
  }
}
