import { contract, type Method, type Route, routes } from '@gatehouse/contract';
import * as z from 'zod';
import { exampleOf } from './examples.ts';

/** A thing with an owner and an id. `key` is a printed session key, which means another conversation in each partition. */
export const kinds = [
  'conversation',
  'key',
  'agent',
  'medium',
  'response',
  'memory',
  'receipt',
  'summary',
  'approval',
  'job',
  // Sub-agents and graphs: `held` ones run and do not end on their own.
  'run',
  'held run',
  'root',
  'lease',
  'graph',
  'held graph',
  'loaded graph',
  'saved graph',
] as const;
export type Kind = (typeof kinds)[number];

/** One input of the interface where a caller names a thing by its id. */
export interface NamedInput {
  /** Method, or verb and path. */
  readonly name: string;
  readonly param: string;
  readonly kind: Kind;
  readonly risk: 'read' | 'mutate' | 'destructive';
  /** The call with this id, everything else as in the example of the declaration. */
  ask(id: string): Ask;
}

export interface Ask {
  readonly method?: string;
  readonly params?: object;
  readonly verb?: string;
  readonly path?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

const methods: Readonly<Record<string, Method>> = contract;
const table: Readonly<Record<string, Route>> = routes;

const kindOfName: Readonly<Record<string, Kind>> = {
  conversationRef: 'conversation',
  sessionKey: 'key',
  agentId: 'agent',
  mediaId: 'medium',
  previous_response_id: 'response',
  'GET /v1/responses/:id id': 'response',
  'DELETE /v1/responses/:id id': 'response',
  'GET /v1/responses/:id/input_items id': 'response',
  'GET /media/:id id': 'medium',
  'GET /media/:id/meta id': 'medium',
  'DELETE /media/:id id': 'medium',
  'memory.inspect id': 'memory',
  'memory.delete ids': 'memory',
  'idempotency-key': 'receipt',
  summaryId: 'summary',
  requestId: 'approval',
  jobId: 'job',
  runId: 'run',
  runIds: 'run',
  'subagent.kill target': 'held run',
  'subagent.steer target': 'held run',
  rootRunId: 'root',
  leaseId: 'lease',
  graphId: 'graph',
  'graph.cancel graphId': 'held graph',
  'graph.answer graphId': 'held graph',
  'graph.execute graphId': 'loaded graph',
  'graph.save id': 'saved graph',
  'graph.load id': 'saved graph',
  'graph.delete id': 'saved graph',
  'session.spawn announceChannelId': 'conversation',
  'graph.execute announceChannelId': 'conversation',
};

const oneNode = { node_id: 'only', task: 'Look' };
/** Further parameters where the example of the method does not suffice; not changed. */
const companions: Readonly<Record<string, Record<string, unknown>>> = {
  'cron.backfill jobId': {},
  'cron.run jobId': {},
  'cron.runs jobId': {},
  'graph.answer graphId': { nodeId: 'gate', answer: 'yes' },
  'graph.execute graphId': {},
  'graph.retry graphId': { nodeId: 'look' },
  'graph.execute announceChannelId': { nodes: [oneNode], announceChannelType: 'gateway' },
  // The example names the requested agent in its nodes too.
  'graph.save agentId': { label: 'Report', nodes: [{ ...oneNode, agent: 'elsewhere' }] },
  'session.spawn announceChannelId': { task: 'Look', announceChannelType: 'gateway' },
};

/** Names that look like ids but have no foreign owner, by input or by name, each with the reason. */
const exempt: Readonly<Record<string, string>> = {
  'agents.create agentId': 'names what does not exist yet',
  'knowledge.read fileId': 'names a file of an agent; sources.rpc.test.ts shows that foreign ones are answered like unknown ones',
  'session.fork forkKey': 'names what does not exist yet, among the caller’s own',
  'tokens.create id': 'names what does not exist yet',
  'background.screen id': 'names a jailed process; terminal.rpc.test.ts shows that foreign ones are answered like unknown ones',
  'background.type id': 'names a jailed process; terminal.rpc.test.ts shows that foreign ones are answered like unknown ones',
  'background.stop id': 'names a jailed process; stops.rpc.test.ts shows that foreign ones are answered like unknown ones',
  recordingId: 'names a recording of the browser of an agent; browser.rpc.test.ts shows that foreign ones are answered like unknown ones',
  startRef: 'a thing in a page of the browser of the agent that is named with it',
  endRef: 'a thing in a page of the browser of the agent that is named with it',
  tabId: 'a tab of the browser of the agent that is named with it',
  targetId: 'a tab of the browser of the agent that is named with it',
  'graph.retry announceChannelId': 'found by the function that finds that of graph.execute, after the graph',
  'providers.set id': 'providers are configuration; who may name them is shown by R23',
  'tokens.revoke id': 'tokens belong to the installation, not to a caller; who may name them is shown by R23',
  'tokens.rotate id': 'tokens belong to the installation, not to a caller; who may name them is shown by R23',
  'GET /v1/models/*id id': 'models are configuration',
  'POST /rpc id': 'number of the request',
  'POST /mcp id': 'number of the request',
  deliveryId:
    'webhooks belong to the installation; limited-tokens.rpc.test.ts shows that foreign messages to platforms are answered like unknown ones',
  channel_instance_id: 'channels of foreign agents are answered like unknown ones; limited-tokens.rpc.test.ts shows it',
  'channels.retry messageId': 'messages to foreign agents are answered like unknown ones; limited-tokens.rpc.test.ts shows it',
  channel_id:
    'a conversation of a platform, compared with the endpoint that is named with it; whose it may be is shown by E13 (outgoing.rpc.test.ts)',
  message_id: 'a message of the endpoint that is named with it; whose that may be is shown by E13 (outgoing.rpc.test.ts)',
  operation_id: 'a name that the caller makes for its own call, known among its own alone',
  'notification.send agent_id': 'foreign agents are answered like unknown ones; the tests of notifications show it',
  guild_id: 'a thing of the platform, which decides who may name it',
  role_id: 'a thing of the platform, which decides who may name it',
  thread_id: 'a thing of the platform, which decides who may name it',
  parent_id: 'a thing of the platform, which decides who may name it',
  user_ids: 'people of the platform',
  chat_id: 'a conversation of a platform, compared with the endpoint that is named with it',
  sticker_id: 'a thing of the platform, which decides who may name it',
  icon_custom_emoji_id: 'a thing of the platform, which decides who may name it',
  message_thread_id: 'a thing of the platform, which decides who may name it',
  'agents.create target': 'a conversation of a platform for heartbeats, for administrators',
  pairingId: 'pairings of channels of foreign agents are answered like unknown ones; limited-tokens.rpc.test.ts shows it',
  'POST /hooks/*path path': 'names a mapping of the configuration; who may reach it is shown by R28',
  serverId: 'servers belong to the installation, not to a caller; who may name them is shown by R23',
  'cron.add conversationRef':
    'a conversation to deliver to is named with its whole scope, whose digest it must be; whose it may be is shown by the tests of cron',
  'cron.add sessionKey':
    'a conversation to deliver to is named with its whole scope, whose digest it must be; whose it may be is shown by the tests of cron',
  'cron.update conversationRef':
    'a conversation to deliver to is named with its whole scope, whose digest it must be; whose it may be is shown by the tests of cron',
  'cron.update sessionKey':
    'a conversation to deliver to is named with its whole scope, whose digest it must be; whose it may be is shown by the tests of cron',
  tenantId: 'names the one tenant there is; another one is refused before anything is looked for',
  channelInstanceId: 'label of the built-in channel, compared with itself',
  conversationId: 'target in the built-in channel, checked against the conversation that is named with it',
  threadId: 'part of a target in the built-in channel, checked with it',
  'inbox.markRead ids': 'foreign ids are skipped like unknown ones, and not counted; the tests of the inbox show it',
  principalId: 'narrows the list for operators; a token that is bound to agents sees only its own',
  channelId: 'the conversation of the token itself on this channel',
  call_id: 'label inside the request',
  tool_call_id: 'label inside the request',
  'POST /v1/chat/completions id': 'label of a call inside the request',
  'POST /v1/responses/:id/cancel id': 'refused whatever it names, before anything is looked for: no response runs in the background',
  tool_use_id: 'label inside the request',
  user_id: 'label that is sent to the provider',
  'POST /v1/messages id': 'label of a block inside the request',
  'POST /v1/messages/count_tokens id': 'label of a block inside the request',
  node_id: 'label inside the request',
  type_id: 'kind of a node, from a closed list',
  'daemon.logs afterId': 'number of a line of the log, which is for administrators',
  evalId: 'foreign evaluations are answered like unknown ones; the tests of evaluations show it',
  'obs.trace.search messageId': 'narrows the search, whose rows are filtered by permission',
  'obs.trace.search traceId': 'narrows the search, whose rows are filtered by permission',
  'obs.trace.search chatId': 'narrows the search, whose rows are filtered by permission',
  'obs.explain traceId': 'for administrators; the report of a session that is not theirs is that of an unknown one, which its tests show',
  'session.feedback turnId': 'looked up in the conversation that is named with it, whose owner is checked before',
  'session.feedback traceId': 'looked up in the conversation that is named with it, whose owner is checked before',
  'cron.reset target': 'a word of a closed list',
  'scheduler.wake target': 'a word of a closed list',
  'obs.audit.query target': 'narrows the audit, whose rows are filtered by permission',
  nodeId: 'name of a node of the graph that is named with it',
  operationId: 'a name that the caller makes for its own call, known among its own alone',
  artifactRefs: 'text of a task; the sub-agent reads what it names with its own tools',
  prompt_cache_key: 'label that is returned',
  'POST /v1/responses id': 'label of an item inside the request; items are taken from the request alone',
  'POST /v1/responses/compact id': 'label of an item inside the request; items are taken from the request alone',
  'POST /v1/responses/input_tokens id': 'label of an item inside the request; items are taken from the request alone',
};

/** Every input of the registry and the routes that takes an id; `unlisted` are those in neither table, and stale exemptions. */
export function namedThings(): { readonly inputs: readonly NamedInput[]; readonly unlisted: readonly string[] } {
  const inputs: NamedInput[] = [];
  const unlisted: string[] = [];
  const idle = new Set(Object.keys(exempt));
  const sort = (name: string, param: string, make: (kind: Kind) => NamedInput): void => {
    const exemption = [`${name} ${param}`, param].find((one) => exempt[one] !== undefined);
    if (exemption !== undefined) {
      idle.delete(exemption);
      return;
    }
    const kind = kindOfName[`${name} ${param}`] ?? kindOfName[param];
    if (kind === undefined) unlisted.push(`${name} takes ${param}, which is in neither table of named-things.ts`);
    else inputs.push(make(kind));
  };
  for (const [name, method] of Object.entries(methods)) {
    for (const path of idsIn(method.params)) {
      const param = nameOf(path);
      sort(name, param, (kind) => ({
        name,
        param,
        kind,
        risk: method.risk,
        ask: (id) => ({ method: name, params: withId(exampleOf(name), path, id, companions[`${name} ${param}`]) }),
      }));
    }
  }
  for (const route of Object.values(table)) {
    const name = `${route.method} ${route.path}`;
    const risk = route.method === 'GET' ? 'read' : route.method === 'DELETE' ? 'destructive' : 'mutate';
    const body = sampleBodies[route.path];
    for (const [, star, param = ''] of route.path.matchAll(/([:*])(\w+)/g)) {
      if (star === '*' && param === 'file') continue;
      sort(name, param, (kind) => ({
        name,
        param,
        kind,
        risk,
        ask: (id) => ({ verb: route.method, path: route.path.replace(`:${param}`, encodeURIComponent(id)) }),
      }));
    }
    for (const param of Object.keys(route.query ?? {}).filter(looksLikeId)) {
      sort(name, param, (kind) => ({
        name,
        param,
        kind,
        risk,
        ask: (id) => ({ verb: route.method, path: `${route.path}?${param}=${encodeURIComponent(id)}` }),
      }));
    }
    for (const path of route.body === undefined ? [] : idsIn(route.body())) {
      const param = nameOf(path);
      sort(name, param, (kind) => ({
        name,
        param,
        kind,
        risk,
        ask: (id) => ({ verb: route.method, path: route.path, body: withId(body, path, id) }),
      }));
    }
    if (route.headers?.['Idempotency-Key'] !== undefined)
      sort(name, 'idempotency-key', (kind) => ({
        name,
        param: 'idempotency-key',
        kind,
        risk,
        ask: (id) => ({ verb: route.method, path: route.path, ...(body !== undefined && { body }), headers: { 'idempotency-key': id } }),
      }));
  }
  return { inputs, unlisted: [...new Set(unlisted), ...[...idle].map((one) => `${one} is exempt and does not exist`)] };
}

/** Calls that name nothing and only read: they return only the caller's own data. `query` is what is searched for. */
export function readsWithoutIds(query: string): readonly Ask[] {
  const asks: Ask[] = [];
  for (const [name, method] of Object.entries(methods)) {
    if (method.risk !== 'read') continue;
    const params = withoutIds(exampleOf(name));
    asks.push({ method: name, params: 'query' in params ? { ...params, query } : params });
    if (Object.keys(params).length > 0 && method.params.safeParse({}).success) asks.push({ method: name, params: {} });
  }
  for (const route of Object.values(table)) {
    if (route.method !== 'GET' || /[:*]/.test(route.path) || route.path === '/ws' || route.path === '/v1/responses' || route.path === '/api/events')
      continue;
    const asked = Object.keys(route.query ?? {}).includes('q')
      ? `?q=${query}`
      : Object.keys(route.query ?? {}).includes('query')
        ? `?query=${query}`
        : '';
    asks.push({ verb: 'GET', path: route.path + asked });
  }
  return asks;
}

/** Bodies that a route accepts; those without an id in them need none. */
const sampleBodies: Readonly<Record<string, object>> = {
  '/api/chat': { message: 'Hello' },
  '/api/chat/stream': { message: 'Hello' },
  '/v1/responses': { model: 'local/test-model', input: 'Hello' },
  '/v1/responses/compact': { model: 'local/test-model', input: 'Hello' },
  '/v1/responses/input_tokens': { model: 'local/test-model', input: 'Hello' },
};

const looksLikeId = (name: string): boolean => /(?:^ids?|Ids?|Ref|Refs|Key|_ids?|_key|^target)$/.test(name);
const addresses: readonly string[] = ['conversationRef', 'sessionKey', 'agentId'];
const nameOf = (path: readonly string[]): string => path.findLast((part) => part !== '[]') ?? '';

/** Returns the paths of the properties of a shape that look like ids; `[]` means an element. */
function idsIn(schema: z.ZodType): string[][] {
  const whole = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const defs = Part.parse(whole.$defs ?? {});
  const found = new Map<string, string[]>();
  const walk = (raw: unknown, path: readonly string[], seen: readonly string[]): void => {
    const { success, data: part } = Shape.safeParse(raw);
    if (!success) return;
    if (part.$ref !== undefined) {
      if (!seen.includes(part.$ref)) walk(defs[part.$ref.replace('#/$defs/', '')], path, [...seen, part.$ref]);
      return;
    }
    for (const option of [...(part.anyOf ?? []), ...(part.oneOf ?? []), ...(part.allOf ?? [])]) walk(option, path, seen);
    if (part.items !== undefined) walk(part.items, [...path, '[]'], seen);
    for (const [name, inner] of Object.entries(part.properties ?? {})) {
      if (looksLikeId(name)) found.set([...path, name].join('.'), isList(inner) ? [...path, name, '[]'] : [...path, name]);
      else walk(inner, [...path, name], seen);
    }
  };
  walk(whole, [], []);
  return [...found.values()];
}

const Part = z.record(z.string(), z.unknown());
const Shape = z.looseObject({
  $ref: z.string().optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  allOf: z.array(z.unknown()).optional(),
  items: z.unknown().optional(),
  properties: Part.optional(),
});
const isList = (raw: unknown): boolean => Shape.safeParse(raw).data?.items !== undefined;

/** Returns the parameters with this id alone: other names are left out. */
function withId(params: unknown, path: readonly string[], id: string, rest: Record<string, unknown> = withoutIds(params)): object {
  const put = (at: Record<string, unknown>, [part = '', ...more]: readonly string[]): Record<string, unknown> => {
    if (more.length === 0) return { ...at, [part]: id };
    if (more[0] === '[]') return { ...at, [part]: [more.length === 1 ? id : put({}, more.slice(1))] };
    return { ...at, [part]: put(Part.safeParse(at[part]).data ?? {}, more) };
  };
  return put(rest, path);
}

function withoutIds(params: unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(Part.safeParse(params).data ?? {}).filter(([name]) => !addresses.includes(name) && !looksLikeId(name)));
}
