import type { Agent } from 'node:http';
import { contract } from '@gatehouse/contract';
import * as z from 'zod';
import { pause } from './daemon.ts';
import { bearer, http } from './http.ts';
import type { Kind } from './named-things.ts';
import { askWith, holding, looking, nonceOf } from './provider.ts';
import { rpcCall } from './rpc.ts';
import { readBooks } from './delegation-books.ts';

/** One of everything that can have an owner. */
export interface Estate {
  readonly ids: Readonly<Partial<Record<Kind, string>>>;
  /** Occurs in the texts of the estate, along with text that no other principal may see. */
  readonly word: string;
  /** Occurs in those texts only. */
  readonly nonce: string;
}

interface Owner {
  readonly home: string;
  readonly port: number;
  readonly token: string;
  /** Secret of an operator, for things that only operators create. */
  readonly operator: string;
  readonly agent: Agent;
}

const Turn = z.looseObject({ conversationRef: z.string(), sessionKey: z.string() });
const Made = z.looseObject({ id: z.string().optional(), mediaId: z.string().optional() });

export async function makeEstate(owner: Owner, number: number): Promise<Estate> {
  const nonce = nonceOf(['estate', number]);
  const word = 'quarterly';
  const text = `${askWith(nonce)} of the ${word} figures`;
  const turn = Turn.parse(await patiently(() => rpcCall(owner, 'agent.execute', { message: text, sessionKey: `estate-${number}:desk` })));
  const medium = await made(owner, { path: '/media?fileName=figures.txt', body: text, headers: { 'content-type': 'text/plain' } });
  const response = await made(owner, { path: '/v1/responses', body: { model: 'local/test-model', input: text } });
  const receipt = `receipt-key-${number}-of-the-owner`;
  await made(owner, { path: '/api/chat', body: { message: 'Hello', sessionKey: `receipt-${number}:desk` }, headers: { 'idempotency-key': receipt } });
  return {
    word,
    nonce,
    ids: {
      conversation: turn.conversationRef,
      key: turn.sessionKey,
      agent: 'default',
      receipt,
      ...(medium.mediaId !== undefined && { medium: medium.mediaId }),
      ...(response.id !== undefined && { response: response.id }),
      ...(await memoryOf(owner, nonce)),
      approval: await approvalOf(owner, nonce, number),
      job: await jobOf(owner, nonce),
      ...(await runsOf(owner, text)),
      ...(await graphsOf(owner, text)),
    },
  };
}

/** Returns the text that no answer to another principal may contain. */
export function secretsOf({ ids, nonce }: Estate): readonly string[] {
  return [nonce, ...Object.entries(ids).flatMap(([kind, id]) => (isNamedByItself(kind) ? id : []))];
}

/** Generic names: only distinct ids identify something. */
const isNamedByItself = (kind: string): boolean => kind !== 'key' && kind !== 'agent' && kind !== 'receipt';

/** Stops the parts of an estate that never end on their own. */
export async function closeEstate(owner: Owner, { ids }: Estate): Promise<void> {
  const operator = { ...owner, token: owner.operator };
  await rpcCall(operator, 'run.kill', { rootRunId: ids.root }).catch(() => undefined);
  await rpcCall(operator, 'graph.cancel', { graphId: ids['held graph'] }).catch(() => undefined);
}

/** A daemon on a loaded machine refuses what it could not do in time. */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      if (tries === 20 || !String(error).includes('more work than it can do in time')) throw error;
      await pause(250);
    }
  }
}

async function made(
  { port, token, agent }: Owner,
  request: { readonly path: string; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> },
): Promise<z.output<typeof Made>> {
  const text = await patiently(async () => {
    const answer = await http({ port, agent, ...request, headers: { ...bearer(token), ...request.headers } });
    if (answer.status >= 300) throw new Error(`${request.path}: HTTP ${answer.status} ${answer.text.slice(0, 300)}`);
    return answer.text;
  });
  return Made.parse(JSON.parse(text));
}

const Entries = z.looseObject({ entries: z.array(z.looseObject({ id: z.string(), content: z.string(), principalId: z.string().optional() })) });

/** What a review finds in a conversation belongs to the owner of the conversation; see `reviewingProvider`. */
async function memoryOf(owner: Owner, nonce: string): Promise<{ readonly memory?: string }> {
  if (!('memory.review' in contract)) return {};
  const operator = { ...owner, token: owner.operator };
  await patiently(() => rpcCall(operator, 'memory.review', {}));
  const { entries } = Entries.parse(await rpcCall(operator, 'memory.browse', { limit: 100 }));
  const entry = entries.find(({ content }) => content.includes(nonce));
  if (entry === undefined) throw new Error(`no memory of ${nonce} was made`);
  return { memory: entry.id };
}

const Job = z.looseObject({ jobId: z.string() });

/** A pending job. */
async function jobOf(owner: Owner, nonce: string): Promise<string> {
  const schedule = { kind: 'every', everyMs: 86_400_000 };
  const job = { name: nonce, agentId: 'default', schedule, payload: { kind: 'agent_turn', message: askWith(nonce) } };
  return Job.parse(await patiently(() => rpcCall(owner, 'cron.add', job))).jobId;
}

const Waiting = z.looseObject({ requests: z.array(z.looseObject({ requestId: z.string(), params: z.unknown() })) });

/** A tool call that is pending approval although its requester has left; the configuration makes `ls` ask. */
async function approvalOf(owner: Owner, nonce: string, number: number): Promise<string> {
  const leave = new AbortController();
  const params = { message: `${askWith(nonce)} ${looking}`, sessionKey: `approval-${number}:desk` };
  const asked = rpcCall(owner, 'agent.execute', params, { signal: leave.signal }).catch(() => undefined);
  for (const until = performance.now() + 20_000; performance.now() < until; await pause(20)) {
    const { requests } = Waiting.parse(await patiently(() => rpcCall({ ...owner, token: owner.operator }, 'admin.approval.pending', {})));
    const request = requests.find((one) => JSON.stringify(one.params).includes(nonce));
    if (request === undefined) continue;
    leave.abort();
    await asked;
    return request.requestId;
  }
  throw new Error(`no approval of ${nonce} was requested`);
}

const Spawned = z.looseObject({ runId: z.string(), rootRunId: z.string() });
const Status = z.looseObject({ status: z.string() });

/** A run that has ended, and one that never ends. */
async function runsOf(owner: Owner, text: string) {
  const spawn = async (task: string) => Spawned.parse(await patiently(() => rpcCall(owner, 'session.spawn', { task })));
  const { runId: run } = await spawn(text);
  const { runId: held, rootRunId: root } = await spawn(`${text} ${holding}`);
  await until(async () => Status.parse(await rpcCall(owner, 'session.run_status', { runId: run })).status === 'completed');
  const { leases } = await readBooks(owner.home);
  const lease = leases.find((one) => one.run_id === held)?.id;
  return { run, 'held run': held, root, ...(lease !== undefined && { lease }) };
}

const Graph = z.looseObject({ graphId: z.string() });
const Saved = z.looseObject({ id: z.string() });
const View = z.looseObject({ status: z.string(), nodes: z.record(z.string(), z.looseObject({ waitsForAnswer: z.boolean().optional() })) });

/** A graph that has ended, one with a pending answer, one that is saved, and one that was loaded and not started. */
async function graphsOf(owner: Owner, text: string) {
  const nodes = [{ node_id: 'look', task: text, agent: 'default' }];
  const gate = { node_id: 'gate', task: text, type_id: 'approval-gate', type_config: { message: text } };
  const call = (method: string, params: object) => patiently(() => rpcCall(owner, method, params));
  const { graphId: graph } = Graph.parse(await call('graph.execute', { nodes }));
  const asking = { nodes: [gate], announceChannelType: 'gateway', announceChannelId: 'inbox' };
  const { graphId: held } = Graph.parse(await call('graph.execute', asking));
  const { id: saved } = Saved.parse(await call('graph.save', { nodes, label: text, agentId: 'default' }));
  const { graphId: loaded } = Graph.parse(await call('graph.load', { id: saved }));
  await until(async () => View.parse(await call('graph.status', { graphId: graph })).status === 'completed');
  await until(async () => View.parse(await call('graph.status', { graphId: held })).nodes['gate']?.waitsForAnswer === true);
  return { graph, 'held graph': held, 'saved graph': saved, 'loaded graph': loaded };
}

async function until(is: () => Promise<boolean>): Promise<void> {
  for (const deadline = performance.now() + 20_000; !(await is()); await pause(10))
    if (performance.now() > deadline) throw new Error('an estate was not made in time');
}
