import { randomBytes } from 'node:crypto';
import { addRule, AuthenticationError, type Client, ConflictError, GatehouseError, NotFoundError, ruleFor } from '@gatehouse/client';
import type { EventPayload } from '@gatehouse/contract';
import { KeptConversation, stopTurn } from '../chat/conversation.ts';
import { followConversations, type LiveEvent, type Watched } from '../chat/live.ts';
import { describeFailure } from '../failure.ts';
import type { Io } from '../io.ts';
import { version } from '../version.ts';
import { type JsonRecord, Peer, RpcFailure } from './peer.ts';
import { readPrompt } from './prompt.ts';
import { replay } from './replay.ts';

/** The version of the protocol that is spoken here. */
const protocolVersion = 1;
const invalidParams = -32_602;
const methodNotFound = -32_601;
const authRequired = -32_000;
const resourceNotFound = -32_002;

/** Sessions of the protocol are conversations whose keys begin with this. */
const sessionKeys = 'acp:';

interface Session {
  readonly id: string;
  readonly conversation: KeptConversation;
  /** Set while a prompt runs. */
  running: AbortController | undefined;
  /** Settles when what a cancel stops is over: the next prompt must not be stopped with it. */
  stopping: Promise<void>;
  /** Output of running calls: an update replaces what was there before. */
  readonly output: Map<string, string>;
}

/** Serves an agent of the daemon over the Agent Client Protocol until the client leaves. */
export async function serveAcp(client: Client, { agentId }: { readonly agentId: string | undefined }, io: Io): Promise<void> {
  const over = new AbortController();
  const agent = new AcpAgent(client, agentId, io, over.signal);
  try {
    await agent.peer.read(io.stdin);
  } finally {
    over.abort();
    await agent.stopAll();
  }
}

class AcpAgent {
  readonly peer: Peer;
  readonly #client: Client;
  readonly #agentId: string | undefined;
  readonly #io: Io;
  readonly #sessions = new Map<string, Session>();
  readonly #ready = Promise.withResolvers<void>();

  constructor(client: Client, agentId: string | undefined, io: Io, signal: AbortSignal) {
    this.#client = client;
    this.#agentId = agentId;
    this.#io = io;
    this.peer = new Peer(io.stdout, {
      request: (method, params) => this.#request(method, params),
      notification: (method, params) => {
        if (method === 'session/cancel') void this.#cancel(params['sessionId']);
      },
    });
    void followConversations(
      client,
      {
        watched: () => [...this.#sessions.values()].filter(({ running }) => running !== undefined).map(({ conversation }) => conversation.watched),
        onEvent: (event, about) => this.#onEvent(event, about),
        onReady: this.#ready.resolve,
        onConnection: () => this.#ready.resolve(),
      },
      signal,
    );
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#sessions.keys()].map((id) => this.#cancel(id)));
  }

  async #request(method: string, params: JsonRecord): Promise<unknown> {
    try {
      switch (method) {
        case 'initialize':
          return this.#initialize();
        case 'authenticate':
          return {};
        case 'session/new':
          return this.#open(`${sessionKeys}${randomBytes(9).toString('hex')}`);
        case 'session/load':
          return await this.#load(params['sessionId']);
        case 'session/prompt':
          return await this.#prompt(params);
        default:
          throw new RpcFailure(methodNotFound, `Method not found: ${method}`);
      }
    } catch (error) {
      if (error instanceof RpcFailure) throw error;
      const { message, hint } = describeFailure(error);
      const code = error instanceof AuthenticationError ? authRequired : error instanceof NotFoundError ? resourceNotFound : -32_603;
      throw new RpcFailure(code, hint === undefined ? message : `${message.replace(/\.?$/, '.')} ${hint}`);
    }
  }

  #initialize(): object {
    return {
      protocolVersion,
      agentInfo: { name: 'gatehouse', title: 'Gatehouse', version },
      agentCapabilities: { loadSession: true, promptCapabilities: { image: true, audio: true, embeddedContext: true } },
      authMethods: [],
    };
  }

  #open(id: string): object {
    const conversation = new KeptConversation(this.#client, { agentId: this.#agentId, name: id }, this.#io);
    this.#sessions.set(id, { id, conversation, running: undefined, stopping: Promise.resolve(), output: new Map() });
    return { sessionId: id };
  }

  async #load(id: unknown): Promise<object> {
    if (typeof id !== 'string') throw new RpcFailure(invalidParams, 'sessionId: expected a string');
    this.#open(id);
    const { conversation } = this.#session(id);
    await conversation.open();
    if (conversation.watched.ref === undefined) {
      this.#sessions.delete(id);
      throw new RpcFailure(resourceNotFound, `No such session: ${id}`);
    }
    await replay(this.#client, conversation.watched.ref, (update) => this.#update(id, update));
    return {};
  }

  async #prompt(params: JsonRecord): Promise<object> {
    const session = this.#session(params['sessionId']);
    if (session.running !== undefined) throw new RpcFailure(invalidParams, 'A prompt of this session runs already');
    const running = new AbortController();
    session.running = running;
    try {
      await this.#ready.promise;
      const { text, attachments } = await readPrompt(this.#client, params['prompt']);
      const turn = await session.conversation.ask(text, {
        signal: running.signal,
        attachments,
        survives: { onGap: () => undefined },
        onText: (piece) => this.#update(session.id, { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: piece } }),
      });
      return { stopReason: turn.wasStopped ? 'cancelled' : (stopReasons[turn.finishReason ?? 'stop'] ?? 'max_turn_requests') };
    } catch (error) {
      // A turn that was stopped fails here or there; for the client it is cancelled.
      if (running.signal.aborted) return { stopReason: 'cancelled' };
      throw error;
    } finally {
      await session.stopping;
      session.running = undefined;
      session.output.clear();
    }
  }

  async #cancel(id: unknown): Promise<void> {
    const session = typeof id === 'string' ? this.#sessions.get(id) : undefined;
    if (session?.running === undefined) return;
    if (!session.running.signal.aborted) {
      session.stopping = stopTurn(session.conversation);
      session.running.abort();
    }
    await session.stopping;
  }

  #session(id: unknown): Session {
    const session = typeof id === 'string' ? this.#sessions.get(id) : undefined;
    if (session === undefined) throw new RpcFailure(resourceNotFound, `No such session: ${String(id)}`);
    return session;
  }

  #update(sessionId: string, update: object): void {
    this.peer.notify('session/update', { sessionId, update });
  }

  #onEvent(event: LiveEvent, about: Watched): void {
    const session = [...this.#sessions.values()].find(({ conversation }) => conversation.watched === about);
    if (session === undefined) return;
    const { kind, payload } = event;
    switch (kind) {
      case 'message:thinking':
        return this.#update(session.id, { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: payload.delta } });
      case 'tool:started':
        return this.#update(session.id, {
          sessionUpdate: 'tool_call',
          toolCallId: payload.callId,
          title: payload.description,
          kind: toolKind(payload.toolName),
          status: 'in_progress',
        });
      case 'tool:output': {
        const output = (session.output.get(payload.callId) ?? '') + payload.delta;
        session.output.set(payload.callId, output);
        return this.#update(session.id, { sessionUpdate: 'tool_call_update', toolCallId: payload.callId, content: textContent(output) });
      }
      case 'tool:finished':
        return this.#update(session.id, {
          sessionUpdate: 'tool_call_update',
          toolCallId: payload.callId,
          status: payload.outcome === 'error' || payload.outcome === 'denied' ? 'failed' : 'completed',
          ...(payload.result !== undefined && { content: textContent(payload.result) }),
        });
      case 'approval:requested':
        return void this.#askPermission(session, payload);
      default:
        return undefined;
    }
  }

  async #askPermission(session: Session, request: EventPayload<'approval:requested'>): Promise<void> {
    const { requestId, toolName, action, params } = request;
    const rule = ruleFor(request);
    let chosen: string | undefined;
    try {
      const answer = await this.peer.request('session/request_permission', {
        sessionId: session.id,
        toolCall: { toolCallId: requestId, title: action, kind: toolKind(toolName), status: 'pending', rawInput: params },
        options: [
          { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
          ...(typeof rule === 'string' ? [] : [{ optionId: 'always', name: 'Always allow this call', kind: 'allow_always' }]),
          { optionId: 'reject', name: 'Deny', kind: 'reject_once' },
        ],
      });
      chosen = chosenOption(answer);
      if (chosen === 'always' && typeof rule !== 'string') await addRule(this.#client, rule);
    } catch (error) {
      this.#io.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    }
    try {
      // A client that cancelled, or cannot ask, has not allowed anything.
      await this.#client.call('admin.approval.resolve', { requestId, approved: chosen === 'allow' || chosen === 'always', approvedBy: 'acp' });
    } catch (error) {
      // Somebody else has decided, or the turn is gone.
      if (!(error instanceof ConflictError || error instanceof NotFoundError)) this.#io.stderr.write(`${describeFailure(error).message}\n`);
      if (!(error instanceof GatehouseError)) throw error;
    }
  }
}

/** Reasons for the end of a turn; those that are missing are limits. */
const stopReasons: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  command: 'end_turn',
  background_pending: 'end_turn',
  output_starved: 'max_tokens',
  context_exhausted: 'max_tokens',
  aborted: 'cancelled',
};

const kinds: readonly (readonly [pattern: RegExp, kind: string])[] = [
  [/^(?:read|ls|list|document)/, 'read'],
  [/^(?:write|edit|patch|apply)/, 'edit'],
  [/^(?:delete|remove)/, 'delete'],
  [/^(?:grep|find|glob|search|recall|session_search)/, 'search'],
  [/^(?:exec|terminal|process|orchestrate)/, 'execute'],
  [/^(?:web|browser|fetch)/, 'fetch'],
];

function toolKind(name: string): string {
  return kinds.find(([pattern]) => pattern.test(name))?.[1] ?? 'other';
}

function textContent(text: string): object[] {
  return [{ type: 'content', content: { type: 'text', text } }];
}

function chosenOption(answer: unknown): string | undefined {
  if (typeof answer !== 'object' || answer === null || !('outcome' in answer)) return undefined;
  const { outcome } = answer;
  if (typeof outcome !== 'object' || outcome === null || !('optionId' in outcome)) return undefined;
  return typeof outcome.optionId === 'string' ? outcome.optionId : undefined;
}
