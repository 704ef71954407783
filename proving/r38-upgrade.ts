import { readdir, readFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { contract } from '@gatehouse/contract';
import { freePort } from '@gatehouse/testkit/free-port';
import * as z from 'zod';
import { migrations } from '../packages/server/src/transactions/registry.ts';
import type { FakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, type Exit, pause, spawnDaemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { bearer, http } from './lib/http.ts';
import { faultsOfFile, makeOldHome, numberOf, readRelease, type Release, type Row, schemaOf } from './lib/old-home.ts';
import { proofConfig } from './lib/provider.ts';
import { type Random, randomFrom } from './lib/random.ts';
import { rpcCall } from './lib/rpc.ts';

/**
 * R38: the data of earlier releases are opened, kept whole and copied before they are changed; a kill inside a migration leaves the old
 * state or the new one; data of a newer program are refused with a clear message and not changed.
 */
export interface R38Options {
  /** Schemas that upgrades start from. */
  readonly from: readonly number[];
  /** The schema in whose pending migrations it is killed, at so many random points; at each one by default. */
  readonly killFrom: number;
  readonly kills?: number;
  /** After the first statement alone; at all three points of a migration by default. */
  readonly begun?: boolean;
  readonly seed: number;
  readonly broken?: string;
}

export interface R38Report {
  readonly upgrades: number;
  readonly rows: number;
  readonly kills: number;
  readonly backups: number;
  readonly wrong: readonly string[];
}

/** Newest schemas of releases, oldest first. Homes of earlier schemas are derived from a release that has left its rows. */
const released = [17, 24];
const newest = Math.max(...migrations.map(({ id }) => numberOf(id)));
const points = ['begun', 'run', 'recorded'] as const;

export async function proveUpgrade(options: R38Options): Promise<R38Report> {
  const random = randomFrom(options.seed);
  const releases = await Promise.all(released.map(async (schema) => ({ schema, release: await readRelease(schema) })));
  const provider = await startFakeProvider();
  const wrong = [...new Set(releases.flatMap(({ release }) => changedMigrations(release)))];
  const report = { upgrades: 0, rows: 0, kills: 0, backups: 0, wrong };
  const one = async (schema: number, name: string, run: (old: Old) => Promise<void>): Promise<void> => {
    const home = await makeHome();
    try {
      const { release } =
        releases.find((one) => one.schema === schema || (one.schema > schema && one.release.database === undefined)) ??
        fail(`there is no release of schema ${schema}`);
      const rows = await makeOldHome(home, release, schema);
      const tokens = [{ id: 'keeper', secret: release.tokens.keeper, scopes: ['*'] }];
      await writeConfig(home, proofConfig(provider.url, { gateway: { tokens } }));
      await run({ home, schema, rows, release, provider, port: await freePort(), say: (fault) => wrong.push(`${name}: ${fault}`) });
    } catch (error) {
      wrong.push(`${name}: ${String(error).slice(0, 600)}`);
    } finally {
      await removeHome(home);
    }
  };
  try {
    for (const schema of options.from)
      await one(schema, `from schema ${schema}`, async (old) => {
        const daemon = await startDaemon(old);
        report.upgrades += 1;
        report.rows += Object.values(old.rows).reduce((sum, rows) => sum + rows.length, 0);
        await verify(old, daemon);
        report.backups += await verifyBackup(old);
        if (schema === options.from.at(-1)) await verifyDowngrade(old);
      });
    for (const at of killPoints(options, random))
      await one(options.killFrom, `killed in ${at}`, async (old) => {
        const exit = await dieIn(old, at, options.broken);
        report.kills += 1;
        if (exit.signal !== 'SIGKILL') old.say(`it was not killed there, it ended with ${exit.code ?? exit.signal}`);
        const daemon = await startDaemon(old);
        await verify(old, daemon);
      });
    return report;
  } finally {
    await provider.close();
  }
}

function fail(why: string): never {
  throw new Error(why);
}

interface Old {
  readonly home: string;
  readonly port: number;
  readonly schema: number;
  readonly rows: Readonly<Record<string, readonly Row[]>>;
  readonly release: Release;
  readonly provider: FakeProvider;
  readonly say: (fault: string) => void;
}

/** A migration that a release has run never changes: the statements would differ between an old database and a new one. */
function changedMigrations({ checksums }: Release): string[] {
  const now = new Map(migrations.map(({ id, up }) => [id, createHash('sha256').update(JSON.stringify(up)).digest('hex')]));
  return Object.entries(checksums).flatMap(([id, checksum]) => (now.get(id) === checksum ? [] : [`migration ${id} differs from the released one`]));
}

function killPoints({ killFrom, kills, begun }: R38Options, random: Random): string[] {
  const pending = migrations.map(({ id }) => numberOf(id)).filter((number) => number > killFrom);
  const all = pending.flatMap((number) => (begun === true ? (['begun'] as const) : points).map((point) => `${number} ${point}`));
  while (all.length > (kills ?? all.length)) all.splice(random.int(all.length), 1);
  return all;
}

async function dieIn(old: Old, at: string, broken: string | undefined): Promise<Exit> {
  const daemon = spawnDaemon({ ...old, broken: ['killed-in-migration', ...(broken === undefined ? [] : [broken])], env: { KILL_AT: at } });
  const patience = setTimeout(() => void daemon.kill(), 15_000);
  try {
    const exit = await daemon.exited;
    if (!daemon.stderr().includes('broken build: killed-in-migration'))
      throw new Error(`it ended before its storage was opened: ${daemon.stderr().slice(-400)}`);
    return exit;
  } finally {
    clearTimeout(patience);
  }
}

/** Checks that everything is in the file as before, and that the interfaces return what was stored. */
async function verify(old: Old, daemon: Daemon): Promise<void> {
  try {
    const file = join(old.home, 'data/gatehouse.db');
    for (const fault of faultsOfFile(file, old.rows, 'meaning')) old.say(fault);
    const main = Math.max(...migrations.filter(({ database }) => database !== 'telemetry').map(({ id }) => numberOf(id)));
    if (schemaOf(file) !== main) old.say(`it has schema ${schemaOf(file)} instead of ${main}`);
    await verifyInterfaces(old);
  } finally {
    await daemon.kill();
  }
}

const History = z.looseObject({ messages: z.array(z.looseObject({ content: z.string() })), total: z.number() });
const Stats = z.looseObject({ providers: z.array(z.looseObject({ callCount: z.number() })) });
const Remembered = z.looseObject({ results: z.array(z.looseObject({ content: z.string() })) });
const AgentView = z.looseObject({ config: z.record(z.string(), z.unknown()) });
/** Values of agents that a form of today shows as they were stored. */
const AgentValues = z.object({ name: z.string().optional(), model: z.string().optional(), maxSteps: z.int().optional() });
const Found = z.looseObject({ results: z.array(z.looseObject({ sessionKey: z.string() })) });

async function verifyInterfaces(old: Old): Promise<void> {
  const { port, release, rows, say, schema, provider } = old;
  const keeper = { port, token: release.tokens.keeper };
  const stored = (rows['message'] ?? []).filter(
    ({ conversation_id: id }) => id === rows['conversation']?.find(({ session_key: key }) => key === 'ada:desk')?.['id'],
  );
  const history = History.parse(await rpcCall(keeper, 'session.history', { sessionKey: 'ada:desk' }));
  if (JSON.stringify(history.messages.map(({ content }) => content)) !== JSON.stringify(stored.map(({ content }) => content)))
    say('session.history of ada:desk is another one');
  if (schema >= 11) {
    const { providers } = Stats.parse(await rpcCall(keeper, 'agent.cacheStats', {}));
    const calls = providers.reduce((sum, { callCount }) => sum + callCount, 0);
    if (calls !== rows['model_call']?.length) say(`${calls} model calls are counted, ${rows['model_call']?.length} were stored`);
  }
  if (schema >= 12) {
    for (const { id, config_json: json } of rows['agent'] ?? []) {
      const { config } = AgentView.parse(await rpcCall(keeper, 'agents.get', { agentId: id }));
      for (const [key, value] of Object.entries(AgentValues.parse(JSON.parse(String(json)))))
        if (value !== undefined && config[key] !== value) say(`the agent ${String(id)} has another ${key}: ${String(config[key])}`);
    }
    const spoke = await rpcCall(keeper, 'agent.execute', { message: 'Wake up', agentId: 'sleeper', sessionKey: 'ada:night' }).then(
      () => true,
      () => false,
    );
    if (spoke) say('a suspended agent is not suspended any more');
  }
  if (schema >= 13) await rpcCall({ port, token: release.tokens.minted }, 'system.ping', {});
  const send = async (path: string, body?: object, headers?: Record<string, string>): Promise<string> => {
    const { status, text } = await http({ port, path, headers: { ...bearer(keeper.token), ...headers }, ...(body !== undefined && { body }) });
    if (status !== 200) say(`${path}: HTTP ${status} ${text.slice(0, 200)}`);
    return text;
  };
  if (schema >= 15) {
    const before = provider.served();
    const again = await send('/api/chat', { message: 'Once only', sessionKey: 'cleo:desk' }, { 'idempotency-key': 'earlier-key-1' });
    if (!again.includes('Kept.') || provider.served() !== before) say(`a key of an earlier release is not known any more: ${again.slice(0, 200)}`);
  }
  if (schema >= 16) {
    const last = String(rows['response']?.find(({ previous_id: previous }) => previous !== null)?.['id']);
    await send(`/v1/responses/${last}`);
    await send('/v1/responses', { model: 'local/test-model', input: 'Continue', previous_response_id: last });
    if (!sent(provider).includes('Keep this')) say('a response of an earlier release is not continued');
  }
  if ('session.search' in contract) {
    const search = async (): Promise<boolean> =>
      Found.parse(await rpcCall(keeper, 'session.search', { query: 'between clients' })).results.some(({ sessionKey }) => sessionKey === 'ada:desk');
    let found = await search();
    for (const until = performance.now() + 5_000; !found && performance.now() < until; found = await search()) await pause(50);
    if (!found) say('messages from before the upgrade are not found');
  }
  if (schema >= 24) {
    const { results } = Remembered.parse(await rpcCall(keeper, 'memory.search', { query: 'tea' }));
    if (!results.some(({ content }) => content.includes('tea without sugar'))) say('a memory of an earlier release is not found');
  }
  await rpcCall(keeper, 'agent.execute', { message: 'Do you remember?', sessionKey: 'ada:desk' });
  if (!sent(provider).includes('What is a gateway?')) say('a conversation of an earlier release is not continued');
}

const sent = (provider: FakeProvider): string => JSON.stringify(provider.requests.at(-1)?.body);

/** The copy that was made before the first change: the old schema and every row. */
async function verifyBackup(old: Old): Promise<number> {
  const due = migrations.some(({ id, database }) => database !== 'telemetry' && numberOf(id) > old.schema);
  const copies = (await readdir(join(old.home, 'backups')).catch(() => [])).filter((name) => name.startsWith('gatehouse-before-schema-'));
  if (copies.length !== (due ? 1 : 0)) old.say(`${copies.length} copies were made before the change`);
  for (const name of copies) {
    const file = join(old.home, 'backups', name);
    for (const fault of faultsOfFile(file, old.rows, 'all')) old.say(`copy: ${fault}`);
    // The number of the event log belongs to the other file.
    const before = Math.max(
      ...migrations.filter(({ id, database }) => database !== 'telemetry' && numberOf(id) <= old.schema).map(({ id }) => numberOf(id)),
    );
    if (schemaOf(file) !== before) old.say(`the copy has schema ${schemaOf(file)} instead of ${before}`);
  }
  return copies.length;
}

/** A schema newer than this program: it says so, with both versions and what to do, and changes nothing. */
async function verifyDowngrade(old: Old): Promise<void> {
  const file = join(old.home, 'data/gatehouse.db');
  const db = new DatabaseSync(file);
  db.prepare('INSERT INTO schema_migration VALUES (?, ?, ?, ?, ?)').run(newest + 1, 'from-the-future', 'x', 0, '99.0.0');
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  db.close();
  const digest = async (): Promise<string> => {
    const bytes = await readFile(file);
    // SQLite counts each query of the journal mode here.
    for (const at of [24, 92]) bytes.fill(0, at, at + 4);
    return createHash('sha256').update(bytes).digest('hex');
  };
  const before = await digest();
  const daemon = spawnDaemon(old);
  const exit = await daemon.exited;
  const said = daemon.stdout() + daemon.stderr();
  if (exit.code !== 74) old.say(`data of a newer program: it ended with ${exit.code ?? exit.signal}`);
  if (!said.includes(`schema ${newest + 1}, written by version 99.0.0`) || !/restore a backup/.test(said))
    old.say(`data of a newer program: it said ${said.slice(-400)}`);
  if (before !== (await digest())) old.say('data of a newer program: the file was changed');
}
