import { readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { contract } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { askBackup } from './lib/backup.ts';
import { type Daemon, operatorToken, pause, spawnDaemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { answerTo, askWith, nonceOf, proofConfig, startEchoProvider } from './lib/provider.ts';
import { randomFrom } from './lib/random.ts';
import { RpcFailure, rpcCall } from './lib/rpc.ts';

/**
 * R39: a backup that is made while clients write holds everything that was acknowledged before it was requested, nothing in
 * part and nothing out of order, and no secret; the daemon continues from the restored state.
 */
export interface R39Report {
  readonly rounds: number;
  /** Writes that were acknowledged before a backup was requested, and while it was made. */
  readonly before: number;
  readonly meanwhile: number;
  readonly megabytes: number;
  readonly wrong: readonly string[];
}

export async function proveBackup(options: {
  readonly rounds: number;
  readonly seed: number;
  /** Initial content of the database, so that a copy takes time. */
  readonly fillMb: number;
  readonly broken?: string;
}): Promise<R39Report> {
  const random = randomFrom(options.seed);
  const report = { rounds: 0, before: 0, meanwhile: 0, megabytes: 0, wrong: [] as string[] };
  const provider = await startEchoProvider();
  const home = await makeHome();
  const port = await freePort();
  await writeConfig(home, proofConfig(provider.url));
  const start = (): Promise<Daemon> => startDaemon({ home, port, ...(options.broken !== undefined && { broken: options.broken }) });
  let daemon = await start();
  try {
    await fill(daemon, options.fillMb);
    for (let round = 0; round < options.rounds; round += 1) {
      const file = join(home, 'backups', `round-${round}.db`);
      const writers = startWriters(daemon, round);
      const enough = 3 + random.int(8);
      for (const until = performance.now() + 20_000; performance.now() < until && writers.some(({ acked }) => acked < enough);) await pause(5);
      const before = writers.map(({ acked }) => acked);
      await askBackup(home, file);
      const sent = writers.map((writer) => writer.sent);
      report.meanwhile += writers.reduce((sum, { acked }, index) => sum + acked - (before[index] ?? 0), 0);
      report.before += before.reduce((sum, count) => sum + count, 0);
      await pause(100);
      await Promise.all(writers.map((writer) => writer.stop()));
      await daemon.stop();
      const found = lookInto(file, writers, report.wrong);
      for (const [index, writer] of writers.entries()) {
        const count = found[index] ?? 0;
        const [least, most] = [before[index] ?? 0, sent[index] ?? 0];
        if (count < least || count > most)
          report.wrong.push(`round ${round}, ${writer.name}: ${count} writes, ${least} were acknowledged before and ${most} sent by its end`);
      }
      report.megabytes = Math.max(report.megabytes, await lookForSecrets(file, home, writers, report.wrong));
      await restore(home, port, file);
      daemon = await start();
      await verify(daemon, writers, found, (fault) => report.wrong.push(`round ${round}: ${fault}`));
      report.rounds += 1;
    }
    return report;
  } catch (error) {
    report.wrong.push(`round ${report.rounds}: ${String(error)}`);
    return report;
  } finally {
    await daemon.kill();
    await provider.close();
    await removeHome(home);
  }
}

/** Writes long messages, each in a new conversation. */
async function fill(daemon: Daemon, megabytes: number): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  for (let n = 0; n < megabytes * 2; n += 1)
    await rpcCall({ ...daemon, agent }, 'agent.execute', { message: `${n} ${'x'.repeat(500_000)}`, sessionKey: `fill-${n}:backup` });
  agent.destroy();
}

interface Writer {
  readonly name: string;
  readonly kind: 'turn' | 'token' | 'agent' | 'memory';
  readonly round: number;
  acked: number;
  sent: number;
  readonly secrets: string[];
  stop(): Promise<void>;
}

const nonceOfWrite = (writer: Pick<Writer, 'name' | 'round'>, n: number): string => nonceOf([writer.name, writer.round, n]);
const keyOf = ({ name, round }: Pick<Writer, 'name' | 'round'>): string => `${name}-${round}:backup`;
const Created = z.looseObject({ secret: z.string().optional() });

/** Each writes one thing after the other; the next one when the last is acknowledged. */
function startWriters(daemon: Daemon, round: number): readonly Writer[] {
  const kinds = ['turn', 'turn', 'turn', 'token', 'agent', ...('memory.store' in contract ? (['memory'] as const) : [])] as const;
  return kinds.map((kind, index) => {
    const agent = new Agent({ keepAlive: true });
    let stopped = false;
    const writer = { name: `${kind}-${index}`, kind, round, acked: 0, sent: 0, secrets: [] as string[], stop };
    const write = async (): Promise<void> => {
      while (!stopped) {
        const nonce = nonceOfWrite(writer, writer.sent);
        writer.sent += 1;
        const [method, params] = {
          turn: ['agent.execute', { message: askWith(nonce), sessionKey: keyOf(writer) }] as const,
          token: ['tokens.create', { id: nonce, scopes: ['rpc'] }] as const,
          agent: ['agents.create', { agentId: nonce, config: { model: 'local/test-model' } }] as const,
          memory: ['memory.store', { content: `Remember ${nonce}` }] as const,
        }[kind];
        const { secret } = Created.parse(await rpcCall({ ...daemon, agent }, method, params));
        if (secret !== undefined) writer.secrets.push(secret);
        writer.acked += 1;
        // Two every hundred milliseconds: each token and agent is checked again afterwards.
        if (kind !== 'turn') await pause(20);
      }
    };
    const writing = write();
    async function stop(): Promise<void> {
      stopped = true;
      await writing;
      agent.destroy();
    }
    return writer;
  });
}

/** Counts the writes of each writer in the file; reports what is incomplete or out of order. */
function lookInto(file: string, writers: readonly Writer[], wrong: string[]): number[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const check = db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check'];
    if (check !== 'ok') wrong.push(`${file}: ${String(check)}`);
    const texts = (sql: string, ...params: string[]): string[] =>
      db
        .prepare(sql)
        .all(...params)
        .map((row) => String(row['text']));
    const counted = db
      .prepare('SELECT count(*) AS n FROM conversation c WHERE message_count <> (SELECT count(*) FROM message m WHERE m.conversation_id = c.id)')
      .get()?.['n'];
    if (counted !== 0) wrong.push(`${String(counted)} conversations hold another number of messages than they count`);
    const [turns, calls] = ['turn', 'model_call'].map((table) =>
      Number(
        db
          .prepare(`SELECT count(*) AS n FROM ${table} ${table === 'turn' ? "WHERE state = 'completed'" : "WHERE operation = 'interactive'"}`)
          .get()?.['n'],
      ),
    );
    if (turns !== calls) wrong.push(`${turns} turns and ${calls} model calls are booked`);
    return writers.map((writer) => {
      const found = {
        turn: () =>
          texts(
            'SELECT m.content AS text FROM message m JOIN conversation c ON c.id = m.conversation_id WHERE c.session_key = ? ORDER BY m.seq',
            keyOf(writer),
          ),
        token: () => texts('SELECT id AS text FROM token'),
        agent: () => texts("SELECT key AS text FROM config_version WHERE section = 'agents'"),
        memory: () => texts('SELECT content AS text FROM memory'),
      }[writer.kind]();
      const has = new Set(found);
      const whole = (n: number): boolean => {
        const nonce = nonceOfWrite(writer, n);
        if (writer.kind === 'turn') return found[2 * n] === askWith(nonce) && found[2 * n + 1] === answerTo(nonce);
        return has.has(writer.kind === 'memory' ? `Remember ${nonce}` : nonce);
      };
      let count = 0;
      while (count < writer.sent && whole(count)) count += 1;
      const later = Array.from({ length: writer.sent - count }, (_, index) => count + index).filter((n) =>
        [...has].some((text) => text.includes(nonceOfWrite(writer, n))),
      );
      if (later.length > 0) wrong.push(`${writer.name}: write ${count} is missing or incomplete, and ${later.length} after it are`);
      return count;
    });
  } catch (error) {
    wrong.push(`${file}: ${String(error)}`);
    return writers.map(() => 0);
  } finally {
    db.close();
  }
}

/** Returns the size of the file in MiB. */
async function lookForSecrets(file: string, home: string, writers: readonly Writer[], wrong: string[]): Promise<number> {
  const bytes = await readFile(file);
  const installKey = (await readFile(join(home, 'install.key'), 'utf8')).trim();
  const secrets = [operatorToken, 'sk-of-the-fake-provider', installKey, ...writers.flatMap((writer) => writer.secrets)];
  const leaked = secrets.filter((secret) => bytes.includes(secret)).length + (bytes.includes(Buffer.from(installKey, 'hex')) ? 1 : 0);
  if (leaked > 0) wrong.push(`${leaked} secrets are in the backup`);
  return Math.round(bytes.length / 2 ** 20);
}

async function restore(home: string, port: number, file: string): Promise<void> {
  const job = spawnDaemon({ home, port, args: ['--restore', file], token: null });
  await job.exited;
  if (!job.stdout().includes('"result"')) throw new Error(`the restore failed: ${job.stdout()} ${job.stderr()}`);
}

const Sizes = z.looseObject({ total: z.number() });

/** Checks that the interfaces return what the backup holds, no more and no less, and that work continues from there. */
async function verify(daemon: Daemon, writers: readonly Writer[], found: readonly number[], say: (fault: string) => void): Promise<void> {
  for (const [index, writer] of writers.entries()) {
    const count = found[index] ?? 0;
    if (writer.kind === 'turn') {
      const sessionKey = keyOf(writer);
      const { total } = await rpcCall(daemon, 'session.history', { sessionKey }).then(
        (result) => Sizes.parse(result),
        (error: unknown) => {
          if (error instanceof RpcFailure && error.code === -32001) return { total: 0 };
          throw error;
        },
      );
      if (total !== 2 * count) say(`${writer.name}: ${total} messages are there, the backup holds ${2 * count}`);
      await rpcCall(daemon, 'agent.execute', { message: 'Go on', sessionKey });
    }
    const opens = (secret: string): Promise<boolean> =>
      rpcCall({ ...daemon, token: secret }, 'system.ping', {}).then(
        () => true,
        () => false,
      );
    if (writer.kind === 'token' && count > 0 && !(await opens(writer.secrets[count - 1] ?? ''))) say('a token of the backup opens nothing');
    if (writer.kind === 'token' && writer.secrets[count] !== undefined && (await opens(writer.secrets[count])))
      say('a token that came after the backup opens');
  }
}
