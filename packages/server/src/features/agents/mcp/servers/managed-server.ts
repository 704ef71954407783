import { randomInt } from 'node:crypto';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { ToolResult } from '../../../../runtime/tool.ts';
import { type CallQueue, createCallQueue } from './call-queue.ts';
import { cleanLabel } from '../tools/clean-text.ts';
import type { McpServerConfig } from '../config.ts';
import { type Connection, type ConnectionEvents, type ServerFacts, ServerRefusal } from '../connection/connection.ts';
import { buildTools, type McpTool } from '../tools/tool-list.ts';
import { renderResult } from '../tools/tool-result.ts';

export const maxReconnectAttempts = 5;
const firstDelayMs = 1000;
const maxDelayMs = 30_000;
/** A connection that lasted this long resets the count of attempts; otherwise a server that dies at once would be tried for ever. */
const steadyMs = 60_000;
/** Consecutive changes of the list of tools are handled together. */
const settleMs = 200;

export type ServerStatus = 'disconnected' | 'connecting' | 'connected' | 'reconnecting' | 'error';

export interface ServerView {
  readonly status: ServerStatus;
  readonly generation: number;
  readonly reconnectAttempt: number;
  readonly lastAnswerAtMs: number | null;
  readonly error?: string;
  readonly facts?: ServerFacts;
  readonly tools: readonly McpTool[];
  readonly droppedTools: number;
}

export interface ManagedServerDeps {
  readonly name: string;
  readonly config: McpServerConfig;
  readonly clock: Clock;
  readonly log: Log;
  open(events: ConnectionEvents, signal: AbortSignal): Promise<Connection>;
  /** Called when the tools have changed. */
  readonly onTools: () => void;
  /** Removes text that looks like a secret from an error shown to an operator. */
  readonly redactText: (text: string) => string;
}

/** Keeps a server connected: lost connections are reopened, calls are queued. */
export interface ManagedServer extends AsyncDisposable {
  view(): ServerView;
  /** Connects, or awaits the attempt in progress; does nothing when connected. Later losses are repaired until `disconnect`. */
  connect(): Promise<void>;
  /** Connects while nobody waits: a failure is repaired like a loss. */
  connectInBackground(): void;
  disconnect(): Promise<void>;
  call(tool: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolResult>;
}

export function createManagedServer(deps: ManagedServerDeps): ManagedServer {
  const { name, config, clock, log } = deps;
  const queue: CallQueue = createCallQueue(name, config.maxConcurrency ?? (config.transport === 'stdio' ? 1 : 4));
  /** Aborted by each `disconnect`. */
  let wanted: AbortController | undefined;
  let connecting: { readonly until: AbortController; readonly done: Promise<void> } | undefined;
  let connection: Connection | undefined;
  let status: ServerStatus = 'disconnected';
  let generation = 0;
  let attempt = 0;
  let error: string | undefined;
  let facts: ServerFacts | undefined;
  let lastAnswerAtMs: number | null = null;
  let tools: readonly McpTool[] = [];
  let droppedTools = 0;
  let cancelRetry: (() => void) | undefined;
  let cancelSteady: (() => void) | undefined;
  let cancelSettle: (() => void) | undefined;
  /** Connections that are closing. */
  const leaving = new Set<Promise<void>>();

  function release(old: Connection): Promise<void> {
    const gone = old.close().catch((reason: unknown) => log.warn({ server: name, error: reason }, 'Failed to close a connection'));
    leaving.add(gone);
    void gone.finally(() => leaving.delete(gone));
    return gone;
  }

  function takeTools(next: readonly McpTool[], dropped: number): void {
    droppedTools = dropped;
    const same = next.length === tools.length && next.every((each, index) => each === tools[index]);
    if (same) return;
    tools = next;
    deps.onTools();
  }

  async function readTools(from: Connection, signal: AbortSignal): Promise<void> {
    const built = await buildTools(
      await from.listTools(signal),
      {
        server: name,
        identity: JSON.stringify(config.transport === 'stdio' ? [config.command, config.args] : [config.url]),
        readOnlyTools: config.readOnlyTools,
        timeoutMs: config.timeoutMs,
        call: (tool, args, context) => call(tool, args, context.signal),
      },
      tools,
    );
    if (signal.aborted) return;
    lastAnswerAtMs = clock.now();
    takeTools(built.tools, built.dropped);
    if (built.dropped > 0) log.warn({ server: name, dropped: built.dropped }, 'Omitting tools of an MCP server: too many, or not valid');
  }

  async function open(until: AbortController): Promise<void> {
    const { signal } = until;
    status = attempt === 0 ? 'connecting' : 'reconnecting';
    generation += 1;
    let made: Connection | undefined;
    let lostEarly: string | undefined;
    try {
      made = await deps.open(
        {
          onLost(reason) {
            if (connection !== undefined && connection === made) lost(connection, reason);
            else lostEarly = reason;
          },
          onToolsChanged: () => made !== undefined && changed(made, signal),
        },
        signal,
      );
      await readTools(made, signal);
      if (lostEarly !== undefined) throw new AppError('unavailable', lostEarly);
      if (signal.aborted) throw new AppError('cancelled', 'The server was disconnected');
    } catch (reason) {
      if (made !== undefined) await release(made);
      if (!signal.aborted) {
        status = 'error';
        error = deps.redactText(reasonOf(reason));
      }
      throw reason;
    }
    connection = made;
    facts = made.facts;
    status = 'connected';
    error = undefined;
    cancelSteady = clock.after(steadyMs, () => (attempt = 0));
    log.info({ server: name, tools: tools.length, generation }, 'Connected an MCP server');
  }

  function lost(old: Connection, reason: string): void {
    if (old !== connection) return;
    connection = undefined;
    cancelSteady?.();
    cancelSettle?.();
    error = deps.redactText(cleanLabel(reason, 500));
    log.warn({ server: name, reason: error }, 'Lost the connection to an MCP server');
    void release(old);
    retry();
  }

  /** Keeps the tools listed meanwhile: a prompt that changes with every hiccup would defeat the provider's cache. */
  function retry(): void {
    const until = wanted;
    if (until === undefined) return;
    if (attempt >= maxReconnectAttempts) {
      status = 'error';
      takeTools([], 0);
      log.error({ server: name, error }, `Failed to reach an MCP server in ${maxReconnectAttempts} attempts; mcp.reconnect tries again`);
      return;
    }
    status = 'reconnecting';
    attempt += 1;
    const delay = Math.min(maxDelayMs, firstDelayMs * 2 ** (attempt - 1)) * (1.1 + randomInt(0, 200) / 1000);
    cancelRetry = clock.after(delay, () => {
      cancelRetry = undefined;
      attemptConnect(until).catch((reason: unknown) => {
        if (until.signal.aborted) return;
        log.warn({ server: name, error, attempt, cause: reason }, 'Failed to connect an MCP server');
        retry();
      });
    });
  }

  function changed(from: Connection, signal: AbortSignal): void {
    cancelSettle?.();
    cancelSettle = clock.after(settleMs, () => {
      if (from !== connection) return;
      readTools(from, signal).catch((reason: unknown) => {
        if (!signal.aborted) log.warn({ server: name, error: reason }, 'Failed to list the tools of an MCP server again');
      });
    });
  }

  async function attemptConnect(until: AbortController): Promise<void> {
    // An abandoned attempt and closing connections still hold a process or sockets.
    while (connecting !== undefined && connecting.until !== until) await connecting.done.catch(() => {});
    await Promise.all(leaving);
    if (until.signal.aborted) throw new AppError('cancelled', `The MCP server "${name}" was disconnected`);
    if (connection !== undefined) return;
    connecting ??= { until, done: open(until).finally(() => (connecting = undefined)) };
    await connecting.done;
  }

  async function call(tool: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolResult> {
    const asked = generation;
    if (connection === undefined) throw new AppError('unavailable', `The MCP server "${name}" is not connected (${status}); the call was not made`);
    return queue.run(signal, async () => {
      const current = connection;
      if (current === undefined || generation !== asked)
        throw new AppError(
          'unavailable',
          `The connection to the MCP server "${name}" changed while the call waited; it was not made and can be repeated safely`,
        );
      try {
        const result = await current.call(tool, args, signal);
        lastAnswerAtMs = clock.now();
        return renderResult(result, name);
      } catch (reason) {
        if (signal.aborted) throw new AppError('cancelled', `The call of the MCP server "${name}" was aborted`, { cause: reason });
        return failureOf(reason, current === connection);
      }
    });
  }

  function failureOf(reason: unknown, stillConnected: boolean): ToolResult {
    // The server's own text is from outside, like its results.
    if (reason instanceof ServerRefusal)
      return {
        content: cleanLabel(`The server refused the call: ${reason.message}`, 4096),
        isError: true,
        outside: { source: `mcp server ${name}` },
      };
    log.warn({ server: name, error: reason }, 'A call of an MCP server failed');
    if (reason instanceof AppError && reason.code === 'timeout')
      throw new AppError('timeout', `The MCP server "${name}" gave no answer within ${config.timeoutMs} ms; the call may still have had its effect`);
    throw new AppError(
      'unavailable',
      stillConnected
        ? `The MCP server "${name}" gave no usable answer; the call may have had its effect`
        : `The connection to the MCP server "${name}" ended during the call; it may have had its effect`,
      { cause: reason },
    );
  }

  async function disconnect(): Promise<void> {
    wanted?.abort();
    wanted = undefined;
    cancelRetry?.();
    cancelSteady?.();
    cancelSettle?.();
    const old = connection;
    connection = undefined;
    status = 'disconnected';
    error = undefined;
    attempt = 0;
    takeTools([], 0);
    if (old !== undefined) void release(old);
    await connecting?.done.catch(() => {});
    await Promise.all(leaving);
  }

  return {
    view: () => ({
      status,
      generation,
      reconnectAttempt: attempt,
      lastAnswerAtMs,
      ...(error !== undefined && { error }),
      ...(facts !== undefined && { facts }),
      tools,
      droppedTools,
    }),
    async connect() {
      if (connection !== undefined) return;
      cancelRetry?.();
      cancelRetry = undefined;
      const repairs = connecting !== undefined;
      if (!repairs) attempt = 0;
      try {
        await attemptConnect((wanted ??= new AbortController()));
      } catch (reason) {
        // The caller gets the error, and nothing retries: tools that nobody can call are not listed.
        if (!repairs && connection === undefined && cancelRetry === undefined) takeTools([], 0);
        throw reason;
      }
    },
    connectInBackground() {
      const until = (wanted ??= new AbortController());
      attemptConnect(until).catch((reason: unknown) => {
        if (until.signal.aborted) return;
        log.warn({ server: name, error, cause: reason }, 'Failed to connect an MCP server');
        retry();
      });
    },
    disconnect,
    call,
    [Symbol.asyncDispose]: disconnect,
  };
}

/** Returns why a connection failed, for an operator; may contain text of the server. */
export function reasonOf(reason: unknown): string {
  return reason instanceof Error ? cleanLabel(reason.message, 500) : 'The connection failed';
}
