import type { Client, Transport } from '@modelcontextprotocol/client';
import * as z from 'zod';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { cleanLabel } from '../tools/clean-text.ts';
import type { AuthorizationNeeded } from '../authorization/needed.ts';
import type { McpServerConfig } from '../config.ts';
import { CallResult } from '../tools/tool-result.ts';

export interface ServerFacts {
  readonly capabilities: readonly string[];
  readonly serverVersion?: { readonly name: string; readonly version: string };
  readonly instructions?: string;
}

/** The server answered with an error; the message is its own text. */
export class ServerRefusal extends Error {
  override readonly name = 'ServerRefusal';
}

/** One connection to one server; ends for good when it is lost or closed. */
export interface Connection {
  readonly facts: ServerFacts;
  /** Capabilities that the server declares, unparsed; at most a little more than is used. */
  listTools(signal: AbortSignal): Promise<readonly unknown[]>;
  /** Fails with `timeout`, or with a ServerRefusal. The server is notified of an abort. */
  call(name: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<CallResult>;
  /** Milliseconds of a ping round trip. */
  ping(signal: AbortSignal): Promise<number>;
  /** Settles when all of it is released: process, sockets. */
  close(): Promise<void>;
}

/** Called with the error when the server accepts no request until it is authorized. */
export type OnLost = (reason: string, needed?: AuthorizationNeeded) => void;

export interface ConnectionEvents {
  /** Called once when it ended without having been closed. */
  readonly onLost: OnLost;
  onToolsChanged(): void;
}

/** Sent by a transport for a server that ended a stream without an answer: otherwise the library would wait for the deadline. */
export const brokenOff = 'The server broke off its answer';

/** Transport of the SDK with its resources. */
export interface OpenTransport {
  readonly transport: Transport;
  /** Why the last request failed; the library wraps it, or only reports that there is no connection. */
  failure(): AppError | undefined;
  /** Closes the session; limited in time. */
  leave(): Promise<void>;
  dispose(): Promise<void>;
}

export interface OpenDeps {
  readonly clock: Clock;
  readonly version: string;
  openTransport(onLost: OnLost): Promise<OpenTransport>;
}

const maxPages = 64;
/** More than the accepted tools, so that an excess can be reported. */
const enoughTools = 1000;
const listMs = 30_000;
const maxInstructions = 4096;

const Page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const Anything = z.looseObject({});
const listChanged = 'notifications/tools/list_changed';

/** Connects and performs the handshake within `connectMs`; on failure nothing is left over. */
export async function openConnection(
  config: Pick<McpServerConfig, 'timeoutMs'>,
  deps: OpenDeps,
  events: ConnectionEvents,
  { signal, connectMs }: { readonly signal: AbortSignal; readonly connectMs: number },
): Promise<Connection> {
  // Large, and most installations have no MCP server.
  const { Client: SdkClient, ProtocolError, SdkError, SdkErrorCode } = await import('@modelcontextprotocol/client');
  let state: 'opening' | 'open' | 'over' = 'opening';
  function onLost(reason: string, needed?: AuthorizationNeeded): void {
    // While it is opening, the handshake fails on its own with the reason.
    if (state !== 'open') return;
    state = 'over';
    events.onLost(reason, needed);
  }
  const opened = await deps.openTransport(onLost);
  const client = new SdkClient(
    { name: 'gatehouse', version: deps.version },
    // Results are validated where they are read; there is no need to compile untrusted schemas into code.
    { capabilities: {}, jsonSchemaValidator: { getValidator: () => () => ({ valid: false, data: undefined, errorMessage: 'not used' }) } },
  );
  client.onclose = () => onLost('The connection was closed by the server');
  client.setNotificationHandler(listChanged, () => {
    if (state === 'open') events.onToolsChanged();
  });

  async function close(): Promise<void> {
    state = 'over';
    await opened.leave().catch(() => {});
    await client.close().catch(() => {});
    // Not attached to the client when the connection failed early.
    await opened.transport.close().catch(() => {});
    await opened.dispose();
  }

  using deadline = startDeadline(deps.clock, connectMs, signal);
  try {
    await Promise.race([client.connect(opened.transport, { signal: deadline.signal, timeout: connectMs }), deadline.over]);
  } catch (error) {
    await close();
    throw deadline.error() ?? opened.failure() ?? error;
  }
  state = 'open';
  return {
    facts: factsOf(client),
    close,
    async listTools(caller) {
      if (client.getServerCapabilities()?.tools === undefined) return [];
      using limit = startDeadline(deps.clock, listMs, caller);
      try {
        return await Promise.race([listPages(client, limit.signal), limit.over]);
      } catch (error) {
        throw limit.error() ?? error;
      }
    },
    async call(name, args, caller) {
      try {
        return await client.request({ method: 'tools/call', params: { name, arguments: { ...args } } }, CallResult(), {
          signal: caller,
          timeout: config.timeoutMs,
        });
      } catch (error) {
        if (error instanceof ProtocolError && error.message === brokenOff) throw new AppError('unavailable', brokenOff);
        if (error instanceof ProtocolError) throw new ServerRefusal(error.message);
        if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
          throw new AppError('timeout', `The server gave no answer within ${config.timeoutMs} ms`);
        throw error;
      }
    },
    async ping(caller) {
      const started = deps.clock.monotonic();
      await client.request({ method: 'ping' }, Anything, { signal: caller, timeout: connectMs });
      return deps.clock.monotonic() - started;
    },
  };
}

async function listPages(client: Client, signal: AbortSignal): Promise<readonly unknown[]> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < maxPages && tools.length < enoughTools; page += 1) {
    const answer = await client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }, Page, { signal, timeout: listMs });
    tools.push(...answer.tools.slice(0, enoughTools));
    if (answer.nextCursor === undefined || answer.nextCursor === cursor) break;
    cursor = answer.nextCursor;
  }
  return tools;
}

function factsOf(client: Client): ServerFacts {
  const version = client.getServerVersion();
  const instructions = client.getInstructions();
  return {
    capabilities: Object.keys(client.getServerCapabilities() ?? {})
      .slice(0, 32)
      .map((name) => cleanLabel(name, 64)),
    ...(version !== undefined && { serverVersion: { name: cleanLabel(version.name, 128), version: cleanLabel(version.version, 64) } }),
    ...(instructions !== undefined && instructions !== '' && { instructions: cleanLabel(instructions, maxInstructions) }),
  };
}

interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Rejects on the deadline or when the caller leaves: not everything that is awaited honours a signal. */
  readonly over: Promise<never>;
  error(): AppError | undefined;
}

function startDeadline(clock: Clock, ms: number, caller: AbortSignal): Deadline {
  const controller = new AbortController();
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => {});
  let failure: AppError | undefined;
  const end = (error: AppError) => {
    failure ??= error;
    over.reject(failure);
    controller.abort(failure);
  };
  const onAbort = () => end(new AppError('cancelled', 'The call was aborted'));
  const cancel = clock.after(ms, () => end(new AppError('timeout', `The server gave no answer within ${ms} ms`)));
  if (caller.aborted) onAbort();
  else caller.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    over: over.promise,
    error: () => failure,
    [Symbol.dispose]() {
      cancel();
      caller.removeEventListener('abort', onAbort);
    },
  };
}
