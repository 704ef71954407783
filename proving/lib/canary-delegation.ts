import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { Canaries, Scanner } from './canaries.ts';
import { printTo, sayTo, type Target } from './canary-transports.ts';
import { keyHere } from './canary-tools.ts';
import { pause } from './daemon.ts';
import { bearer, http } from './http.ts';
import { askForCall } from './provider.ts';
import { openSocket, rpcCall } from './rpc.ts';

/** A long file of the workspace that rightly holds keys; its text exceeds a row or a line. */
export const ledgerFile = 'workspaces/default/data/ledger.txt';
const leaseFile = 'workspaces/default/data/lease.txt';

/** Lets agents delegate without approval. */
export const delegationSecurity = { agentToAgent: { subAgentToolGroups: ['coding', 'sessions'] } };

const Spawned = z.looseObject({ runId: z.string(), rootRunId: z.string(), conversationRef: z.string() });
const Ended = z.looseObject({
  status: z.string(),
  completion: z.looseObject({ resultRef: z.looseObject({ ref: z.string() }).optional() }).optional(),
});
const Begun = z.looseObject({ graphId: z.string() });
const Saved = z.looseObject({ id: z.string() });
const Graph = z.looseObject({
  isTerminal: z.boolean(),
  nodes: z.record(z.string(), z.looseObject({ status: z.string(), waitsForAnswer: z.boolean().optional() })),
});
const withinMs = 20_000;

/** Prints what a script finds around it and reads, what its socket answers, and a key that it puts in a name field. */
const script = `
import { readFileSync, writeFileSync } from 'node:fs';
writeFileSync('data/lease.txt', process.env.GATEHOUSE_CAP_LEASE);
console.log('around', JSON.stringify({ ...process.env, GATEHOUSE_CAP_LEASE: '' }), process.argv.join());
for (const path of ['notes.txt', 'data/ledger.txt']) console.log('read', JSON.stringify(await tools.call('read', { path })));
const file = (await tools.call('read', { path: 'data/ledger.txt' })).ref.path;
console.log('in the file', readFileSync(file, 'utf8').slice(0, 300));
for (const name of ['capabilities.introspect', 'session.status', 'session.list']) console.log(name, JSON.stringify(await tools.method(name)));
const notes = readFileSync('notes.txt', 'utf8');
for (const key of notes.match(/[A-Za-z0-9-]{40,}/g)) {
  for (const call of [() => tools.call(key), () => tools.method(key), () => tools.method('session.status', { [key]: key })])
    console.log('refused', await call().catch((error) => error.message));
}
console.log(notes);
throw new Error('as it ends: ' + notes);
`;

/**
 * Takes keys through sub-agents, graphs, messages between conversations and scripts, and scans everything that is answered, listed, printed
 * and stored of them. `said` is a key that a model has learned and puts into what it delegates.
 */
export async function useDelegation(
  target: Target,
  {
    canaries,
    key,
    said,
    home,
    scan,
    unprovoked,
  }: {
    readonly canaries: Canaries;
    /** A live key. */
    readonly key: string;
    readonly said: string;
    readonly home: string;
    readonly scan: Scanner['scan'];
    readonly unprovoked: string[];
  },
): Promise<void> {
  const say = sayTo(target, scan);
  /** Scans surfaces that show the text of agents. */
  const listen = sayTo(target, scan, said);
  const expectIn = (text: string, words: string, what: string): void => {
    if (!text.includes(words)) unprovoked.push(`${what}: ${text.slice(0, 300)}`);
  };
  const until = async (isDone: () => Promise<boolean>, what: string): Promise<void> => {
    for (const end = performance.now() + withinMs; performance.now() < end; await pause(50)) if (await isDone()) return;
    unprovoked.push(what);
  };
  await writeFile(join(home, ledgerFile), `${`${'An entry of the ledger. '.repeat(40)}\nIts key is ${key}.\n`.repeat(60)}`);
  const read = (path: string): string => askForCall('read', { path });
  let turns = 0;
  const use = (tool: string, args: object): Promise<string> =>
    listen('agent.execute', { message: askForCall(tool, args), sessionKey: `delegation-${(turns += 1)}:desk` }, { timeoutMs: 60_000 });

  // Sub-agents: one that repeats much of what it reads, one whose model repeats keys in its refusal, one that is stopped.
  const spawn = async (task: string): Promise<z.output<typeof Spawned>> => Spawned.parse(JSON.parse(await say('session.spawn', { task })));
  const [reads, fails, held] = [await spawn(read('data/ledger.txt')), await spawn('Please fail by echo'), await spawn('Please hold on')];
  await say('subagent.steer', { target: held.runId, message: 'Go on holding on' });
  await say('subagent.wait', { runIds: [reads.runId, fails.runId], timeoutMs: withinMs }, { timeoutMs: withinMs + 5_000 });
  await say('autonomy.evict', { rootRunId: held.rootRunId });
  await say('lease.revoke', { rootRunId: held.rootRunId });
  await say('run.kill', { rootRunId: held.rootRunId });
  const { completion } = Ended.parse(JSON.parse(await say('session.run_status', { runId: reads.runId })));
  if (completion?.resultRef === undefined) unprovoked.push('no sub-agent has kept its result in a file');
  else {
    const file = await http({ ...target, path: completion.resultRef.ref, headers: bearer(target.token) });
    scan('the file of a result of a sub-agent', file.text);
    expectIn(file.text, 'An entry of the ledger', 'the file of a result holds something else');
  }
  expectIn(await say('session.run_status', { runId: fails.runId }), '"failed"', 'no sub-agent has failed');
  for (const { conversationRef } of [reads, fails, held]) await say('session.export', { conversationRef });

  // An agent that puts a key into what it delegates, and reads the result.
  const delegated = await use('sessions_spawn', { task: `Remember ${keyHere}` });
  expectIn(delegated, 'Sub-agent sr_', 'no agent has started a sub-agent');
  const runId = /sr_[0-9a-f-]{36}/.exec(delegated)?.[0] ?? '';
  await say('subagent.wait', { runIds: [runId], timeoutMs: withinMs }, { timeoutMs: withinMs + 5_000 });
  await use('subagents', { action: 'list' });
  const { conversationRef: desk } = Spawned.pick({ conversationRef: true }).parse(
    await rpcCall(target, 'agent.execute', { message: read('notes.txt'), sessionKey: 'post:desk' }),
  );
  expectIn(
    await use('sessions_send', { conversationRef: desk, text: `Remember ${keyHere}`, mode: 'wait' }),
    'UNTRUSTED-TEXT',
    'no agent was answered a message',
  );
  for (const mode of ['wait', 'ping-pong', 'fire-and-forget'])
    expectIn(
      await say('session.send', { conversationRef: desk, text: 'Please use your tools', mode }),
      '"sent":true',
      `no message was sent (${mode})`,
    );
  await say('session.send', { conversationRef: desk, text: 'Please fail by echo', mode: 'wait' });

  // Graphs: nodes that read, pass on, fail and ask.
  const nodes = [
    { node_id: 'reads', task: read('data/ledger.txt') },
    { node_id: 'fenced', task: 'Sum up {{reads.result}} for ${WHO}', depends_on: ['reads'] },
    { node_id: 'fails', task: 'Please fail by echo' },
    { node_id: 'votes', task: read('notes.txt'), type_id: 'vote', type_config: { voters: ['default', 'default'] } },
    { node_id: 'gate', task: 'Is it well?', depends_on: ['reads'], type_id: 'approval-gate' },
  ];
  const settings = { on_failure: 'continue', label: 'Keys' };
  await say('graph.define', { nodes, ...settings });
  const { id } = Saved.parse(JSON.parse(await say('graph.save', { nodes, ...settings })));
  const { graphId: loaded } = Begun.parse(JSON.parse(await say('graph.load', { id })));
  const announce = { announceChannelType: 'gateway', announceChannelId: 'inbox', node_progress: true };
  const { graphId } = Begun.parse(JSON.parse(await say('graph.execute', { graphId: loaded, variables: { WHO: 'the gardener' }, ...announce })));
  await until(async () => Graph.parse(await rpcCall(target, 'graph.status', { graphId })).nodes['gate']?.waitsForAnswer === true, 'no gate asks');
  await say('graph.answer', { graphId, nodeId: 'gate', answer: 'yes' });
  const isOver = (of: string) => async () => Graph.parse(await rpcCall(target, 'graph.status', { graphId: of })).isTerminal;
  await until(isOver(graphId), 'a graph does not end');
  const written = await use('pipeline', { action: 'execute', nodes: [{ node_id: 'only', task: `Remember ${keyHere}` }] });
  const other = /gr_[0-9a-f-]{36}/.exec(written)?.[0];
  if (other === undefined) unprovoked.push(`no agent has run a graph: ${written.slice(0, 300)}`);
  else await until(isOver(other), 'the graph of an agent does not end');
  expectIn(await say('graph.outputs', { graphId }), 'An entry of the ledger', 'no node has read the ledger');
  expectIn(await say('graph.status', { graphId }), '"status":"failed"', 'no node has failed');

  // A script, which has the socket, a lease and whatever else is around it.
  const ran = await use('orchestrate', { script, timeoutMs: 15_000 });
  if (!ran.includes('Commands run in a jail or not at all') && !ran.includes('There is no tool')) {
    for (const [words, what] of [
      ['around {', 'no script has looked around'],
      ['in the file', 'no script was given a file'],
      ['session.list {', 'no script has asked a method'],
      ['Capability denied', 'no script was refused'],
      ['as it ends', 'no script has failed with its notes'],
    ] as const)
      expectIn(ran.replaceAll('\\', ''), words, what);
    canaries.known('the lease of a script', (await readFile(join(home, leaseFile), 'utf8')).trim());
    await rm(join(home, leaseFile));
  }

  // Lists of all that: as answers, on the pages Runs and Graphs, and by the commands.
  await until(async () => JSON.stringify(await rpcCall(target, 'inbox.list', {})).includes('An entry of the ledger'), 'no inbox received a result');
  for (const method of ['inbox.list', 'subagent.status', 'capabilities.introspect', 'obs.audit.query', 'graph.runs', 'graph.list']) await say(method);
  await listen('subagent.list', { recentMinutes: 60 });
  await listen('run.list', {});
  const page = await openSocket({ port: target.port, token: target.token });
  const pages: readonly (readonly [page: string, method: string, params: object])[] = [
    ['Runs', 'run.list', { limit: 50, state: 'active' }],
    ['Runs', 'run.list', { limit: 50 }],
    ['Runs', 'subagent.status', {}],
    ...[reads, fails, held].map(({ rootRunId }) => ['Runs', 'subagent.list', { recentMinutes: 10_080, rootRunId }] as const),
    ['Graphs', 'graph.list', {}],
    ['Graphs', 'graph.load', { id }],
    ['Graphs', 'graph.runs', {}],
    ...['graph.status', 'graph.outputs', 'graph.runDetail'].map((method) => ['Graphs', method, { graphId }] as const),
  ];
  // The page names runs by the tasks that agents assigned.
  for (const [name, method, params] of pages)
    scan(`data of the page ${name}`, JSON.stringify(await page.call(method, params)), method === 'run.list' ? said : undefined);
  page.close();
  const print = printTo(target, home, scan, unprovoked);
  for (const words of [
    ['runs', 'show', reads.runId],
    ['runs', 'show', fails.runId],
    ['graph', 'list'],
    ['graph', 'runs'],
    ['graph', 'status', graphId],
    ['graph', 'outputs', graphId],
    ['graph', 'show', id],
    ['graph', 'draw', id],
  ])
    print(words);
  print(['runs', 'list'], { said });
}
