import * as z from 'zod';
import { pause } from './daemon.ts';
import { bearer, http } from './http.ts';
import { openSocket, rpcCall, type RpcTarget } from './rpc.ts';
import { duties } from './stop-model.ts';

/** The scene of a stop: a separate agent, token and nonce. */
export interface Scene {
  readonly daemon: RpcTarget;
  readonly agentId: string;
  readonly nonce: string;
  readonly holder: { readonly port: number; readonly token: string };
}

/** Work that has started. */
export interface Begun {
  /** Settles when its caller is answered, with the answer. */
  readonly answered?: Promise<string>;
  readonly conversationRef?: string;
  readonly rootRunId?: string;
  readonly runId?: string;
}

export interface Work {
  /** Starts it; resolves without waiting for its end. */
  readonly begin: (scene: Scene) => Promise<Begun>;
  /** Processes of the work while it runs. */
  readonly processes: number;
  /** It waits for its model provider. */
  readonly waits?: true;
  /** The tool calls of its agent continue in the background after a moment. */
  readonly promotes?: true;
  /** The answer to the caller whose token was revoked. */
  readonly refusal?: RegExp;
}

const Turn = z.looseObject({ conversationRef: z.string() });
const Spawned = z.looseObject({ runId: z.string(), rootRunId: z.string() });
const Rooted = z.looseObject({ rootRunId: z.string() });
const longMs = 60_000;

const answerOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    (value) => (typeof value === 'string' ? value : JSON.stringify(value)),
    (error: unknown) => String(error),
  );

/** The conversation of a session key, which exists after one short turn. */
async function conversation({ holder, agentId }: Scene, sessionKey: string): Promise<string> {
  return Turn.parse(await rpcCall(holder, 'agent.execute', { agentId, sessionKey, message: 'Hello' })).conversationRef;
}

async function post({ holder }: Scene, path: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const reply = await http({ port: holder.port, path, headers: { ...bearer(holder.token), ...headers }, body, timeoutMs: longMs });
  return `${reply.status} ${reply.text}`;
}

const key = ({ agentId }: Scene) => `${agentId}:desk`;

/** A turn that is requested over a route of conversations. */
const chat = (send: (scene: Scene, message: string) => Promise<unknown>, refusal: RegExp): Work => ({
  processes: 0,
  refusal,
  async begin(scene) {
    const conversationRef = await conversation(scene, key(scene));
    return { conversationRef, answered: answerOf(send(scene, `${duties.loop} ${scene.nonce}`)) };
  },
});

const completion = (path: string, bodyOf: (scene: Scene, message: string) => object, refusal: RegExp): Work => ({
  processes: 0,
  refusal,
  begin: async (scene) => ({ answered: answerOf(post(scene, path, bodyOf(scene, `${duties.loop} ${scene.nonce}`))) }),
});

/** A turn over `/rpc` that does not loop. */
const turn = (duty: keyof typeof duties, processes: number, more: Pick<Work, 'promotes'> & { readonly ends?: true } = {}): Work => ({
  processes,
  ...(more.promotes && { promotes: true }),
  ...(more.ends === undefined && { refusal: /revoked/ }),
  async begin(scene) {
    const conversationRef = await conversation(scene, key(scene));
    const call = rpcCall(
      scene.holder,
      'agent.execute',
      { agentId: scene.agentId, sessionKey: key(scene), message: `${duties[duty]} ${scene.nonce}` },
      { timeoutMs: longMs },
    );
    if (more.ends !== true) return { conversationRef, answered: answerOf(call) };
    await call;
    return { conversationRef };
  },
});

async function overSocket({ holder, agentId }: Scene, message: string): Promise<unknown> {
  const socket = await openSocket(holder);
  try {
    return await socket.call('agent.execute', { agentId, sessionKey: `${agentId}:desk`, message });
  } finally {
    socket.close();
  }
}

async function overMcp(scene: Scene, message: string): Promise<string> {
  const headers = { ...bearer(scene.holder.token), accept: 'application/json, text/event-stream' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'proof', version: '1' } };
  const hello = await http({ port: scene.holder.port, path: '/mcp', headers, body: { jsonrpc: '2.0', id: 1, method: 'initialize', params } });
  const session = String(hello.headers['mcp-session-id']);
  const call = { name: `agent_${scene.agentId}`, arguments: { message, sessionKey: key(scene) } };
  return post(scene, '/mcp', { jsonrpc: '2.0', id: 2, method: 'tools/call', params: call }, { accept: headers.accept, 'mcp-session-id': session });
}

const execute = (agentId: string, sessionKey: string, message: string) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'agent.execute',
  params: { agentId, sessionKey, message },
});
const v1 = ({ agentId }: Scene, content: string) => ({ model: `agent/${agentId}`, messages: [{ role: 'user', content }] });

/** Durable work whose model provider fails before its first answer. */
const waiting = (begin: (scene: Scene, message: string) => Promise<Begun>): Work => ({
  processes: 0,
  waits: true,
  begin: (scene) => begin(scene, `${duties.wait} ${scene.nonce}`),
});

async function addJob({ holder, agentId, nonce }: Scene, message: string): Promise<Begun> {
  const payload = { kind: 'agent_turn', message };
  await rpcCall(holder, 'cron.add', { name: nonce, agentId, schedule: { kind: 'every', everyMs: 86_400_000 }, payload });
  await rpcCall(holder, 'cron.run', { jobName: nonce, agentId });
  return {};
}

async function sendMessage(scene: Scene, text: string): Promise<Begun> {
  const conversationRef = await conversation(scene, key(scene));
  await rpcCall(scene.holder, 'session.send', { conversationRef, text, mode: 'fire-and-forget' });
  return { conversationRef };
}

async function callHook({ daemon, agentId }: Scene, text: string): Promise<Begun> {
  const reply = await http({ port: daemon.port, path: `/hooks/${agentId}`, body: { text } });
  if (reply.status !== 200) throw new Error(`the webhook was answered ${reply.status} ${reply.text.slice(0, 200)}`);
  return {};
}

const spawn = async ({ holder, agentId }: Scene, task: string): Promise<Begun> =>
  Spawned.parse(await rpcCall(holder, 'session.spawn', { agent: agentId, task }));

const executeGraph = async ({ holder, agentId }: Scene, task: string): Promise<Begun> =>
  Rooted.parse(await rpcCall(holder, 'graph.execute', { nodes: [{ node_id: 'work', task, agent: agentId }] }));

/** Work of an agent that runs one command. */
const commanded = (begin: (scene: Scene, message: string) => Promise<Begun>): Work => ({
  processes: 1,
  begin: (scene) => begin(scene, `${duties.work} ${scene.nonce}`),
});

/** Durable work whose agent calls a tool again and again, and which another process can resume at any step. */
const looping = (begin: (scene: Scene, message: string) => Promise<Begun>): Work => ({
  processes: 0,
  begin: (scene) => begin(scene, `${duties.loop} ${scene.nonce}`),
});

/** Every kind of work, over every route that starts it. */
export const works = {
  '/rpc': chat((scene, message) => post(scene, '/rpc', execute(scene.agentId, key(scene), message)), /unauthenticated/),
  '/ws': chat(overSocket, /revoked|unauthenticated/),
  '/mcp': chat(overMcp, /unauthenticated/),
  '/api/chat': chat((scene, message) => post(scene, '/api/chat', { agentId: scene.agentId, sessionKey: key(scene), message }), /^401/),
  '/api/chat keyed': chat(
    (scene, message) => post(scene, '/api/chat', { agentId: scene.agentId, sessionKey: key(scene), message }, { 'idempotency-key': scene.nonce }),
    /^401/,
  ),
  '/api/chat/stream': chat(
    (scene, message) => post(scene, '/api/chat/stream', { agentId: scene.agentId, sessionKey: key(scene), message }),
    /unauthenticated/,
  ),
  '/v1/chat/completions': completion('/v1/chat/completions', v1, /^401/),
  '/v1/chat/completions stream': completion('/v1/chat/completions', (scene, text) => ({ ...v1(scene, text), stream: true }), /authentication_error/),
  '/v1/responses': completion('/v1/responses', ({ agentId }, input) => ({ model: `agent/${agentId}`, input }), /^401/),
  '/v1/responses stream': completion(
    '/v1/responses',
    ({ agentId }, input) => ({ model: `agent/${agentId}`, input, stream: true }),
    /authentication|revoked/,
  ),
  command: turn('keep', 2, { ends: true }),
  call: turn('leave', 1, { promotes: true, ends: true }),
  script: turn('script', 1),
  approval: turn('ask', 0),
  'foreground command': turn('work', 1),
  subagent: commanded(spawn),
  'command of a sub-agent': { processes: 2, begin: (scene) => spawn(scene, `${duties.hold} ${scene.nonce}`) },
  graph: commanded(executeGraph),
  job: commanded(addJob),
  'session.send': commanded(sendMessage),
  webhook: commanded(callHook),
  'looping sub-agent': looping(spawn),
  'looping graph': looping(executeGraph),
  'looping job': looping(addJob),
  'looping session.send': looping(sendMessage),
  'looping webhook': looping(callHook),
  'waiting sub-agent': waiting(spawn),
  'waiting graph': waiting(executeGraph),
  'waiting job': waiting(addJob),
  'waiting session.send': waiting(sendMessage),
  'waiting webhook': waiting(callHook),
  'waits for its lane': {
    processes: 0,
    refusal: /unauthenticated/,
    async begin(scene) {
      const conversationRef = await conversation(scene, key(scene));
      const first = post(scene, '/rpc', execute(scene.agentId, key(scene), `${duties.loop} ${scene.nonce}`));
      await pause(150);
      const second = post(scene, '/rpc', execute(scene.agentId, key(scene), `${duties.loop} ${scene.nonce}`));
      return { conversationRef, answered: answerOf(Promise.all([first, second]).then((answers) => answers.join('\n'))) };
    },
  },
} as const satisfies Record<string, Work>;

export type WorkName = keyof typeof works;
