import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { askBackup } from './lib/backup.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { type Holdings, holdingsHook, holdingsOf } from './lib/holdings.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';
import { readSqlLog, sqlHook, type SqlLine } from './lib/sql-hook.ts';

/** R14: the storage never delays the event loop, while answers stream and conversations are searched, backed up and deleted. */
export interface R14Report {
  readonly streams: number;
  readonly searches: number;
  readonly backups: number;
  readonly deletions: number;
  readonly loopMs: Holdings['loopMs'];
  /** Statements on the thread of the event loop, when they are recorded. */
  readonly onMain: readonly string[];
  readonly failed: readonly string[];
}

export interface R14Options {
  /** Open at the same time; each restarts when it is over. */
  readonly streams: number;
  readonly forMs: number;
  /** Existing conversations to be searched, backed up and deleted. */
  readonly conversations: number;
  /** Records each statement, which takes time itself. */
  readonly watched: boolean;
  readonly broken?: string;
}

type Counted = { streams: number; searches: number; backups: number; deletions: number };

export async function proveLoopDelay(options: R14Options): Promise<R14Report> {
  const text = Array.from({ length: 20 }, (_, n) => `harbour ${n} `);
  const provider = await startFakeProvider({
    journal: 0,
    answer: ({ path }) => (path.endsWith('/chat/completions') ? { text, paceMs: 10 } : undefined),
  });
  const home = await makeHome();
  const log = join(home, 'statements.jsonl');
  let daemon: Daemon | undefined;
  try {
    await writeConfig(home, proofConfig(provider.url));
    const watch = options.watched ? sqlHook({ log }) : { hooks: [], env: {} };
    daemon = await startDaemon({
      home,
      port: await freePort(),
      readyTimeoutMs: 60_000,
      hooks: [...watch.hooks, holdingsHook],
      env: watch.env,
      ...(options.broken !== undefined && { broken: options.broken }),
    });
    const failed: string[] = [];
    const statements = (): SqlLine[] => (options.watched ? readSqlLog(log) : []);
    // A start locks its home with a statement, before anything waits for the loop.
    const from = statements().length;
    const counted = await soak(daemon, options, failed);
    const onMain = statements()
      .slice(from)
      .filter(({ role }) => role === 'main');
    return { ...counted, onMain: onMain.map(({ sql }) => sql), failed };
  } finally {
    await daemon?.kill();
    await provider.close();
    await removeHome(home);
  }
}

async function soak(daemon: Daemon, options: R14Options, failed: string[]): Promise<Counted & Pick<Holdings, 'loopMs'>> {
  const done: Counted = { streams: 0, searches: 0, backups: 0, deletions: 0 };
  const converse = (n: number): Promise<unknown> => rpcCall(daemon, 'agent.execute', { message: `lantern ${n}`, sessionKey: `soak:${n}` });
  // A build that is held up refuses some of them: that is reported, and the soak continues.
  const note = (error: unknown): void => void failed.push(String(error));
  for (let n = 0; n < options.conversations; n += 1) await converse(n).catch(note);
  // Excludes the cost of the start and of the first of each kind.
  await holdingsOf(daemon);
  let over = false;
  const again = async (pauseMs: number, one: (n: number) => Promise<void>): Promise<void> => {
    for (let n = 0; !over || n === 0; n += 1) {
      await one(n).catch(note);
      if (!over) await sleep(pauseMs);
    }
  };
  const body = { model: 'local/test-model', stream: true, messages: [{ role: 'user', content: 'Describe the harbour' }] };
  const work = [
    ...Array.from({ length: options.streams }, () =>
      again(0, async () => {
        const { status } = await http({ port: daemon.port, path: '/v1/chat/completions', headers: bearer(daemon.token), body });
        if (status === 200) done.streams += 1;
        else failed.push(`a stream ended with ${status}`);
      }),
    ),
    again(20, async () => {
      await rpcCall(daemon, 'session.search', { query: 'harbour lantern' });
      await rpcCall(daemon, 'memory.search', { query: 'harbour' });
      done.searches += 2;
    }),
    again(500, async (n) => {
      await askBackup(daemon.home, join(daemon.home, 'backups', `soak-${n}.db`));
      done.backups += 1;
    }),
    again(100, async (n) => {
      await rpcCall(daemon, 'session.delete', { sessionKey: `soak:${n % options.conversations}` });
      done.deletions += 1;
      await converse(n % options.conversations);
    }),
  ];
  await sleep(options.forMs);
  over = true;
  await Promise.all(work);
  return { ...done, loopMs: (await holdingsOf(daemon)).loopMs };
}
