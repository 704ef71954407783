import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { findCommand } from '../tools/system-packages.mjs';
import { logOf, pause } from './lib/daemon.ts';
import { http } from './lib/http.ts';
import { type Node, type Nodes, openNodes } from './lib/nodes.ts';
import { askForCall, makeAskedCall, proofConfig } from './lib/provider.ts';
import { rpcCall } from './lib/rpc.ts';

export interface TakeoverFrozenOptions {
  /** How long the active daemon is frozen, at least until the standby has taken over. */
  readonly frozenMs: number;
  readonly broken?: string;
}

export interface TakeoverFrozenReport {
  /** Bytes that the command had written when the standby took over. */
  readonly written: number;
  /** Writes that were sent to the daemon when it woke up, all of which must fail. */
  readonly late: number;
  /** Kinds of work whose model answers when the daemon wakes up. */
  readonly kinds: readonly string[];
  readonly wrong: readonly string[];
}

/** Turns whose model answers when the daemon wakes up. */
const turns = 10;
const lateMs = 5_000;
const goneMs = 10_000;
/** Kinds of work with such turns. */
const lateKinds = ['turn', 'sub-agent', 'graph', 'message', 'webhook', 'job'] as const;
const lateTask = (kind: (typeof lateKinds)[number]) => `late work: ${kind}.`;

/**
 * The active daemon is frozen while a background command of an agent writes to a file ten times a second, and turns of every kind of work
 * wait for their model. The standby takes over when the lease has ended; from then on the command writes nothing, and nothing of the
 * first one is kept when it wakes up. Terminal sessions and browsers end with their daemon, frozen or killed.
 */
export async function proveTakeoverFrozen({ frozenMs, broken }: TakeoverFrozenOptions): Promise<TakeoverFrozenReport> {
  // A build with a fault is caught by its writes.
  const hasBrowser = broken === undefined && findCommand('chromium') !== undefined;
  const wakes = Promise.withResolvers<void>();
  const kinds = new Set<string>();
  let isFrozen = false;
  const provider = await startFakeProvider({
    journal: 0,
    answer: (request) => {
      const kind = /late work: ([a-z-]+)\./.exec(JSON.stringify(request.body))?.[1];
      if (kind === undefined) return makeAskedCall(request);
      if (isFrozen) return { text: 'a new answer' };
      kinds.add(kind);
      return { text: 'a late answer', after: wakes.promise };
    },
  });
  await using nodes = await openNodes(
    {
      ...proofConfig(provider.url, {
        agents: { default: { model: 'local/test-model', maxConcurrentRuns: 1000, tools: { profile: 'full' } } },
        approvals: { rules: [{ tools: ['group:fs', 'exec', 'terminal'], action: 'auto', tainted: true }] },
        browser: { enabled: true },
        webhooks: { mappings: [{ id: 'late', messageTemplate: lateTask('webhook'), allowUnauthenticated: true }] },
      }),
    },
    { broken },
  );
  const wrong: string[] = [];
  try {
    const first = await nodes.start(0);
    await nodes.ready(first);
    const second = await nodes.start(1);
    await nodes.standsBy(second);
    const argv = ['sh', '-c', 'while true; do echo x >>out/written; sleep 0.1; done'];
    const run = (tool: string, args: object, node = first) =>
      rpcCall(node, 'agent.execute', { message: askForCall(tool, args), sessionKey: `${tool}:proof` });
    const made = await run('write', { path: 'out/written', content: '' });
    const begun = await run('exec', { argv, background: true });
    const typing = ['sh', '-c', 'while true; do echo x >>out/typed; sleep 0.1; done'];
    const opened = await run('terminal', { action: 'open', argv: typing });
    const file = await fileOf(nodes, JSON.stringify([made, begun]));
    const typed = join(file, '..', 'typed');
    if (hasBrowser) await openBrowser(first);
    const programs = programsOf(first);
    const pending = Array.from({ length: turns }, (_, n) =>
      rpcCall(first, 'agent.execute', { message: lateTask('turn'), sessionKey: `late-${n}:proof` }, { timeoutMs: frozenMs + 60_000 }).then(
        () => true,
        () => false,
      ),
    );
    await acceptLate(first);
    for (const deadline = performance.now() + lateMs; kinds.size < lateKinds.length && performance.now() < deadline;) await pause(20);
    await pause(500);
    first.child.kill('SIGSTOP');
    isFrozen = true;
    const frozenAt = performance.now();
    await nodes.ready(second);
    const written = (await stat(file)).size;
    if (written === 0) wrong.push('the command never wrote');
    const typedBytes = await sizeOf(typed);
    if (typedBytes === 0) wrong.push(`the terminal never wrote: ${JSON.stringify(opened)}`);
    await pause(Math.max(2_000, frozenAt + frozenMs - performance.now()));
    const grown = (await stat(file)).size - written;
    if (grown > 0) wrong.push(`the command wrote ${grown} bytes after the take-over`);
    if ((await sizeOf(typed)) > typedBytes) wrong.push('the terminal wrote after the take-over');
    wakes.resolve();
    first.child.kill('SIGCONT');
    const late = await writeLate(first, wrong);
    for (const answered of await Promise.all(pending)) if (answered) wrong.push('a turn of the frozen daemon was answered');
    for (const { name } of await nodes.query<{ name: string }>(`SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()`)) {
      const [kept] = await nodes.query<{ count: string }>(`SELECT count(*) AS count FROM "${name}" t WHERE t::text LIKE '%a late answer%'`);
      if (Number(kept?.count) > 0) wrong.push(`${kept?.count} late answers were kept in ${name}`);
    }
    // A broken build that was caught runs on.
    if (broken !== undefined && wrong.length > 0) return { written, late, kinds: [...kinds], wrong };
    const exit = await Promise.race([first.exited, pause(lateMs).then(() => undefined)]);
    if (exit?.code !== 76)
      wrong.push(exit === undefined ? 'the daemon that was taken for dead still runs' : `it ended with ${exit.code ?? exit.signal}`);
    if (!logOf(first).includes('Another node took over')) wrong.push('it did not say why it ended');
    wrong.push(...(await leftOf(programs, 'the frozen daemon')));
    if (hasBrowser) wrong.push(...(await takeUpBrowser(second)));
    await run('terminal', { action: 'open', argv: typing }, second);
    const later = programsOf(second);
    await second.kill();
    wrong.push(...(await leftOf(later, 'a killed daemon')));
    if (kinds.size < lateKinds.length) wrong.push(`only ${[...kinds].join(', ')} waited for their model`);
    return { written, late, kinds: [...kinds], wrong };
  } finally {
    wakes.resolve();
    await provider.close();
  }
}

/** A browser that does not answer for a while, on a machine that does much else, is ended; the next call starts another. */
function openBrowser(node: Node): Promise<unknown> {
  const open = () => rpcCall(node, 'browser.open', { url: 'about:blank' }, { timeoutMs: 60_000 });
  return open().catch(open);
}

const Status = z.looseObject({ running: z.boolean() });

/** The browser of an agent belongs to its daemon: another one starts its own. */
async function takeUpBrowser(node: Node): Promise<readonly string[]> {
  const isRunning = async () => Status.parse(await rpcCall(node, 'browser.status', {})).running;
  const wrong = (await isRunning()) ? ['the browser runs before anybody has used it'] : [];
  await openBrowser(node);
  return [...wrong, ...((await isRunning()) ? [] : ['the browser does not start after the take-over'])];
}

/** Returns the processes below a daemon. */
function programsOf({ child }: Node): readonly number[] {
  const below = (pid: number): number[] => {
    try {
      const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
        readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
      );
      return [...children, ...children.flatMap(below)];
    } catch {
      return [];
    }
  };
  return child.pid === undefined ? [] : below(child.pid);
}

/** Names programs of a daemon that are left some seconds after its end. */
async function leftOf(programs: readonly number[], whose: string): Promise<readonly string[]> {
  const left = () => programs.filter((pid) => existsSync(`/proc/${pid}/exe`));
  for (const until = performance.now() + goneMs; left().length > 0 && performance.now() < until;) await pause(50);
  return [...(programs.length < 2 ? [`${whose} had no programs`] : []), ...left().map((pid) => `the process ${pid} of ${whose} is left`)];
}

const sizeOf = (file: string): Promise<number> =>
  stat(file).then(
    ({ size }) => size,
    () => 0,
  );

const Turn = z.looseObject({ conversationRef: z.string() });

/** Starts work of each kind that does not belong to a request. */
async function acceptLate(node: Node): Promise<void> {
  await rpcCall(node, 'session.spawn', { task: lateTask('sub-agent') });
  await rpcCall(node, 'graph.execute', { nodes: [{ node_id: 'only', task: lateTask('graph'), agent: 'default' }] });
  const { conversationRef } = Turn.parse(await rpcCall(node, 'agent.execute', { message: 'Hello', sessionKey: 'message:proof' }));
  await rpcCall(node, 'session.send', { conversationRef, text: lateTask('message'), mode: 'fire-and-forget' });
  await rpcCall(node, 'cron.add', {
    name: 'late',
    schedule: { kind: 'every', everyMs: 86_400_000 },
    payload: { kind: 'agent_turn', message: lateTask('job') },
  });
  await rpcCall(node, 'cron.run', { jobName: 'late' });
  const { status } = await http({ port: node.port, path: '/hooks/late', body: {} });
  if (status !== 200) throw new Error(`the webhook was answered ${status}`);
}

/** Waits until the command writes to the workspace, which is on the shared path. */
async function fileOf(nodes: Nodes, answers: string): Promise<string> {
  for (const deadline = performance.now() + 30_000; performance.now() < deadline; await pause(50)) {
    for (const agent of await readdir(join(nodes.shared, 'workspaces')).catch(() => [])) {
      const file = join(nodes.shared, 'workspaces', agent, 'out', 'written');
      if (((await stat(file).catch(() => undefined))?.size ?? 0) > 0) return file;
    }
  }
  throw new Error(`the command does not write: ${answers}`);
}

/** Calls that write, as long as the daemon answers, until one succeeds: none may. */
async function writeLate(node: Node, wrong: string[]): Promise<number> {
  let sent = 0;
  let kept = false;
  for (const deadline = performance.now() + lateMs; !kept && performance.now() < deadline && node.child.exitCode === null; await pause(20)) {
    sent += 1;
    kept = await rpcCall(node, 'tokens.create', { id: `late-${randomUUID()}`, scopes: ['rpc'] }, { timeoutMs: 2_000 }).then(
      () => true,
      () => false,
    );
    if (kept) wrong.push('a write of the frozen daemon was acknowledged after the take-over');
  }
  return sent;
}
