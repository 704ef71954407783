import { allows, type MethodName, methodsByName, type RpcReply } from '@gatehouse/contract';
import type { TransportMeter } from '../../features/operations/observability/api.ts';
import { AppError, toAppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { EventBus } from '../../kernel/event-bus.ts';
import type { Handlers } from '../../kernel/handlers.ts';
import type { Log } from '../../kernel/log.ts';
import { type RpcId, rpcFailure, toRpcError } from '../error-body.ts';
import { checkInput } from '../parse-input.ts';
import { issuesOf, sentenceOf } from '../../kernel/issues.ts';
import { RefusedMessage } from './parse-messages.ts';

export const maxBatch = 50;

/** One JSON-RPC message in, its reply out; undefined for a notification. Never rejects. */
export type Dispatch = (message: unknown, call: CallContext) => Promise<RpcReply | undefined>;

export interface DispatchDeps {
  readonly handlers: Handlers;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** A result that does not fit its declaration is a bug: `throw` it in tests and development, `log` it in production and send it anyway. */
  readonly badResults: 'throw' | 'log';
  readonly meter?: Pick<TransportMeter, 'call'> | undefined;
  readonly overload?: () => string | undefined;
}

/** How long clients should wait before they try again. */
const overloadRetryMs = 5_000;

/** Throws `unavailable` while the process is overloaded: a caller that is refused at once can go elsewhere. */
export function refuseOverload(overload: (() => string | undefined) | undefined): void {
  const reason = overload?.();
  if (reason !== undefined) throw new AppError('unavailable', reason, { retryAfterMs: overloadRetryMs });
}

interface Envelope {
  readonly id: RpcId | undefined;
  readonly method: string;
  readonly params: object | undefined;
}

/** Envelope → method → scope → parameters → handler → result → envelope; every failure passes through `toRpcError`. */
export function createDispatch(deps: DispatchDeps): Dispatch {
  const handlers: Readonly<Record<MethodName, unknown>> = deps.handlers;
  async function run(method: string, params: object | undefined, call: CallContext): Promise<unknown> {
    if (!isMethod(method)) throw new AppError('method_not_found', `Method not found: ${method.slice(0, 128)}`);
    const declaration = methodsByName[method];
    if (!allows(call.identity.scopes, declaration.scope))
      throw new AppError('insufficient_scope', `Insufficient scope: requires '${declaration.scope}'`, { required: declaration.scope });
    // Reading and stopping still work, and so do operator methods that help.
    if (declaration.risk === 'mutate' && declaration.scope === 'rpc' && method !== 'graph.cancel') refuseOverload(deps.overload);
    const parsed = checkInput(declaration.params, withoutReserved(params));
    if (!parsed.success) {
      const found = issuesOf(parsed.error);
      throw new AppError('invalid_params', sentenceOf(found), { issues: found.issues });
    }
    // The handler table pairs each name with the parameters of the same declaration; TypeScript cannot follow a union of names through it.
    const handler = handlers[method] as (params: unknown, call: CallContext) => Promise<unknown>;
    const result = await handler(parsed.data, call);
    const checked = declaration.result.safeParse(result);
    if (checked.success) return checked.data;
    const fault = new Error(`Result of ${method} does not fit its declaration: ${sentenceOf(issuesOf(checked.error))}`);
    if (deps.badResults === 'throw') throw fault;
    deps.log.error({ method, requestId: call.requestId, err: fault }, 'A method returned what its declaration does not allow');
    return result;
  }

  return async (message, call) => {
    const begun = deps.clock.monotonic();
    let id: RpcId | undefined;
    let method = 'none';
    // Names invented by clients must not become labels.
    const count = (outcome: Parameters<TransportMeter['call']>[1]): void =>
      deps.meter?.call(isMethod(method) ? method : 'none', outcome, deps.clock.monotonic() - begun);
    try {
      const envelope = envelopeOf(message);
      id = envelope.id;
      ({ method } = envelope);
      const result = await run(method, envelope.params, call);
      count('ok');
      return id === undefined ? undefined : { jsonrpc: '2.0', result, id };
    } catch (failure) {
      const error = toAppError(failure);
      count(error.code);
      if (error.code === 'internal') {
        deps.log.error({ requestId: call.requestId, traceId: call.traceId, err: error.details.cause ?? error }, 'A call failed');
        deps.bus.emit('system:error', { source: 'rpc', message: 'Internal error', requestId: call.requestId, timestamp: deps.clock.now() });
      }
      // An invalid request is answered, with the id if it has a usable one; a well-formed notification never is.
      if (id === undefined && error.code !== 'invalid_envelope') return undefined;
      return { jsonrpc: '2.0', error: toRpcError(error, call.requestId), id: id ?? idOf(message) };
    }
  };
}

/** Answers one message or a batch of at most 50; the replies of a batch keep its order, and there is none for notifications only. */
export async function answer(
  payload: unknown,
  requestId: string,
  one: (message: unknown, index: number) => Promise<RpcReply | undefined>,
): Promise<RpcReply | RpcReply[] | undefined> {
  if (!Array.isArray(payload)) return one(payload, 0);
  if (payload.length === 0) return rpcFailure(new AppError('invalid_envelope', 'A batch must not be empty'), requestId);
  if (payload.length > maxBatch)
    return rpcFailure(new AppError('invalid_envelope', `A batch must not have more than ${maxBatch} entries`), requestId);
  const replies = await Promise.all(payload.map(one));
  const present = replies.filter((reply) => reply !== undefined);
  return present.length === 0 ? undefined : present;
}

/** Returns the id to echo in the reply to a message that is not executed; undefined when it needs no reply. */
export function replyId(message: unknown): RpcId | undefined {
  if (message instanceof RefusedMessage) return message.id;
  return isRecord(message) && message['jsonrpc'] === '2.0' && typeof message['method'] === 'string' && !Object.hasOwn(message, 'id')
    ? undefined
    : idOf(message);
}

/** Returns the id of the call that a notification `$/cancelRequest` cancels (as vscode-jsonrpc sends it); undefined for any other message. */
export function cancelledId(message: unknown): RpcId | undefined {
  if (!isRecord(message) || message['method'] !== '$/cancelRequest' || replyId(message) !== undefined) return undefined;
  const { params } = message;
  return isRecord(params) && isId(params['id']) ? params['id'] : undefined;
}

function isMethod(name: string): name is MethodName {
  return Object.hasOwn(methodsByName, name);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isId(value: unknown): value is RpcId {
  return typeof value === 'string' || typeof value === 'number' || value === null;
}

function idOf(message: unknown): RpcId {
  if (message instanceof RefusedMessage) return message.id;
  return isRecord(message) && isId(message['id']) ? message['id'] : null;
}

function envelopeOf(message: unknown): Envelope {
  if (message instanceof RefusedMessage) throw message.error;
  if (!isRecord(message)) throw new AppError('invalid_envelope', 'A request must be an object');
  const { jsonrpc, method, params, id } = message;
  if (jsonrpc !== '2.0') throw new AppError('invalid_envelope', 'jsonrpc must be "2.0"');
  if (typeof method !== 'string') throw new AppError('invalid_envelope', 'method must be a string');
  if (id !== undefined && !isId(id)) throw new AppError('invalid_envelope', 'id must be a string, a number or null');
  if (params !== undefined && (typeof params !== 'object' || params === null)) throw new AppError('invalid_envelope', 'params must be an object');
  return { id, method, params };
}

/** Names that start with `_` are reserved for internal callers: from outside they are dropped, never trusted. */
function withoutReserved(params: object | undefined): object {
  if (params === undefined) return {};
  if (Array.isArray(params)) throw new AppError('invalid_params', 'params must be an object: parameters are given by name');
  if (!Object.keys(params).some((name) => name.startsWith('_'))) return params;
  return Object.fromEntries(Object.entries(params).filter(([name]) => !name.startsWith('_')));
}
