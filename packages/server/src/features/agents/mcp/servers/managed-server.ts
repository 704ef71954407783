import { randomInt } from 'node:crypto';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { ToolResult } from '../../../../runtime/tool.ts';
import { AuthorizationNeeded, NotAuthorized } from '../authorization/needed.ts';
import type { McpServerConfig } from '../config.ts';
import { type Connection, type ConnectionEvents, type ServerFacts, ServerRefusal } from '../connection/connection.ts';
import { cleanLabel } from '../tools/clean-text.ts';
import type { McpTool } from '../tools/tool-list.ts';
import { renderResult } from '../tools/tool-result.ts';
import { callFailure, renderRefusal } from './call-failure.ts';
import { type CallQueue, createCallQueue } from './call-queue.ts';
import { disconnected, type LinkEvent, type LinkState, maxReconnectAttempts, nextState, type ServerStatus } from './link-state.ts';
import { ListedTools } from './listed-tools.ts';

const firstDelayMs = 1000;
const maxDelayMs = 30_000;
/** A connection that lasted this long resets the count of attempts; otherwise a server that dies at once would be tried for ever. */
const steadyMs = 60_000;

export interface ServerView {
  readonly status: ServerStatus;
  readonly generation: number;
  readonly reconnectAttempt: number;
  readonly lastAnswerAtMs: number | null;
  readonly error?: string;
  readonly retryAtMs?: number;
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
export class ManagedServer implements AsyncDisposable {
  readonly #deps: ManagedServerDeps;
  readonly #queue: CallQueue;
  readonly #tools: ListedTools;
  /** Connections that are closing. */
  readonly #closing = new Set<Promise<void>>();
  #state: LinkState = disconnected;
  /** Counts the connections that were attempted. */
  #generation = 0;
  #facts: ServerFacts | undefined;
  #lastAnswerAtMs: number | null = null;
  /** Aborted by each `disconnect`. */
  #wanted: AbortController | undefined;
  #connecting: { readonly until: AbortController; readonly done: Promise<void> } | undefined;
  #nextTry: { readonly atMs: number; readonly cancel: () => void } | undefined;
  #cancelSteady: (() => void) | undefined;

  constructor(deps: ManagedServerDeps) {
    const { name, config } = deps;
    this.#deps = deps;
    this.#queue = createCallQueue(name, config.maxConcurrency ?? (config.transport === 'stdio' ? 1 : 4));
    this.#tools = new ListedTools({
      ...deps,
      call: (tool, args, signal) => this.call(tool, args, signal),
      onAnswer: () => this.#answered(),
    });
  }

  view(): ServerView {
    const { status, attempt, error } = this.#state;
    return {
      status,
      generation: this.#generation,
      reconnectAttempt: attempt,
      lastAnswerAtMs: this.#lastAnswerAtMs,
      ...(error !== undefined && { error }),
      ...(this.#nextTry !== undefined && { retryAtMs: this.#nextTry.atMs }),
      ...(this.#facts !== undefined && { facts: this.#facts }),
      tools: this.#tools.all,
      droppedTools: this.#tools.dropped,
    };
  }

  /** Connects, or awaits the attempt in progress; does nothing when connected. Later losses are repaired until `disconnect`. */
  async connect(): Promise<void> {
    if (this.#connection !== undefined) return;
    this.#cancelTry();
    const repairs = this.#connecting !== undefined;
    if (!repairs) this.#apply({ kind: 'requested' });
    try {
      await this.#attempt((this.#wanted ??= new AbortController()));
    } catch (reason) {
      // The caller gets the error, and nothing retries: tools that nobody can call are not listed.
      if (!repairs && this.#connection === undefined && this.#nextTry === undefined) this.#tools.clear();
      throw reason;
    }
  }

  /** Connects while nobody waits: a failure is repaired like a loss. */
  connectInBackground(): void {
    this.#attemptOrRetry((this.#wanted ??= new AbortController()));
  }

  /** Connects again in the background, as after a change of what the server accepts. */
  async connectAgain(): Promise<void> {
    await this.disconnect();
    this.connectInBackground();
  }

  async disconnect(): Promise<void> {
    this.#wanted?.abort();
    this.#wanted = undefined;
    this.#cancelTry();
    this.#cancelSteady?.();
    this.#tools.cancelRead();
    const old = this.#connection;
    this.#apply({ kind: 'disconnected' });
    this.#tools.clear();
    if (old !== undefined) void this.#release(old);
    await this.#connecting?.done.catch(() => {});
    await Promise.all(this.#closing);
  }

  async call(tool: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolResult> {
    const { name, config, log } = this.#deps;
    const generation = this.#generation;
    if (this.#connection === undefined)
      throw new AppError('unavailable', `The MCP server "${name}" is not connected (${this.#state.status}); the call was not made`);
    return this.#queue.run(signal, async () => {
      const current = this.#connection;
      if (current === undefined || this.#generation !== generation)
        throw new AppError(
          'unavailable',
          `The connection to the MCP server "${name}" changed while the call waited; it was not made and can be repeated safely`,
        );
      try {
        const result = await current.call(tool, args, signal);
        this.#answered();
        return renderResult(result, name);
      } catch (reason) {
        if (signal.aborted) throw new AppError('cancelled', `The call of the MCP server "${name}" was aborted`, { cause: reason });
        if (reason instanceof ServerRefusal) return renderRefusal(reason, name);
        if (reason instanceof NotAuthorized) throw reason;
        log.warn({ server: name, error: reason }, 'A call of an MCP server failed');
        throw callFailure(reason, { name, timeoutMs: config.timeoutMs, isConnected: current === this.#connection });
      }
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disconnect();
  }

  get #connection(): Connection | undefined {
    return this.#state.status === 'connected' ? this.#state.connection : undefined;
  }

  #apply(event: LinkEvent): void {
    this.#state = nextState(this.#state, event);
  }

  #answered(): void {
    this.#lastAnswerAtMs = this.#deps.clock.now();
  }

  async #attempt(until: AbortController): Promise<void> {
    // An abandoned attempt and closing connections still hold a process or sockets.
    while (this.#connecting !== undefined && this.#connecting.until !== until) await this.#connecting.done.catch(() => {});
    await Promise.all(this.#closing);
    if (until.signal.aborted) throw new AppError('cancelled', `The MCP server "${this.#deps.name}" was disconnected`);
    if (this.#connection !== undefined) return;
    this.#connecting ??= { until, done: this.#open(until.signal).finally(() => (this.#connecting = undefined)) };
    await this.#connecting.done;
  }

  #attemptOrRetry(until: AbortController): void {
    const { name, log } = this.#deps;
    this.#attempt(until).catch((reason: unknown) => {
      if (until.signal.aborted) return;
      const { attempt, error } = this.#state;
      if (reason instanceof AuthorizationNeeded) {
        log.warn({ server: name, error }, 'An MCP server needs authorization');
        return;
      }
      log.warn({ server: name, error, attempt, cause: reason }, 'Failed to connect an MCP server');
      this.#retry();
    });
  }

  async #open(signal: AbortSignal): Promise<void> {
    const { name, clock, log, redactText } = this.#deps;
    this.#apply({ kind: 'opening' });
    this.#generation += 1;
    let made: Connection | undefined;
    let lostEarly: AppError | undefined;
    try {
      made = await this.#deps.open(
        {
          onLost: (reason, needed) => {
            if (made !== undefined && made === this.#connection) this.#lose(made, reason, needed);
            else lostEarly = needed ?? new AppError('unavailable', reason);
          },
          onToolsChanged: () => {
            const from = made;
            if (from !== undefined) this.#tools.readLater(from, signal, () => from === this.#connection);
          },
        },
        signal,
      );
      await this.#tools.read(made, signal);
      if (lostEarly !== undefined) throw lostEarly;
      if (signal.aborted) throw new AppError('cancelled', 'The server was disconnected');
    } catch (reason) {
      if (made !== undefined) await this.#release(made);
      const needed = lostEarly instanceof AuthorizationNeeded ? lostEarly : reason;
      const error = redactText(reasonOf(needed));
      if (!signal.aborted) this.#apply({ kind: needed instanceof AuthorizationNeeded ? 'unauthorized' : 'failed', error });
      // Nothing retries: tools that nobody can call are not listed.
      if (!signal.aborted && needed instanceof AuthorizationNeeded) this.#tools.clear();
      throw needed;
    }
    this.#facts = made.facts;
    this.#apply({ kind: 'opened', connection: made });
    this.#cancelSteady = clock.after(steadyMs, () => this.#apply({ kind: 'steady' }));
    log.info({ server: name, tools: this.#tools.all.length, generation: this.#generation }, 'Connected an MCP server');
  }

  #lose(old: Connection, reason: string, needed: AuthorizationNeeded | undefined): void {
    const { name, log, redactText } = this.#deps;
    this.#cancelSteady?.();
    this.#tools.cancelRead();
    const error = redactText(cleanLabel(reason, 500));
    this.#apply({ kind: needed === undefined ? 'lost' : 'unauthorized', error });
    log.warn({ server: name, reason: error }, 'Lost the connection to an MCP server');
    void this.#release(old);
    if (needed === undefined) this.#retry();
    else this.#tools.clear();
  }

  /** Keeps the tools listed meanwhile: a prompt that changes with every hiccup would defeat the provider's cache. */
  #retry(): void {
    const { name, clock, log } = this.#deps;
    const until = this.#wanted;
    if (until === undefined) return;
    this.#apply({ kind: 'retrying' });
    const { status, attempt, error } = this.#state;
    if (status === 'error') {
      this.#tools.clear();
      log.error({ server: name, error }, `Failed to reach an MCP server in ${maxReconnectAttempts} attempts; mcp.reconnect tries again`);
      return;
    }
    const delayMs = Math.round(Math.min(maxDelayMs, firstDelayMs * 2 ** (attempt - 1)) * (1.1 + randomInt(0, 200) / 1000));
    const cancel = clock.after(delayMs, () => {
      this.#nextTry = undefined;
      this.#attemptOrRetry(until);
    });
    this.#nextTry = { atMs: clock.now() + delayMs, cancel };
  }

  #cancelTry(): void {
    this.#nextTry?.cancel();
    this.#nextTry = undefined;
  }

  #release(old: Connection): Promise<void> {
    const { name, log } = this.#deps;
    const gone = old.close().catch((reason: unknown) => log.warn({ server: name, error: reason }, 'Failed to close a connection'));
    this.#closing.add(gone);
    void gone.finally(() => this.#closing.delete(gone));
    return gone;
  }
}

/** Returns why a connection failed, for an operator; may contain text of the server. */
export function reasonOf(reason: unknown): string {
  return reason instanceof Error ? cleanLabel(reason.message, 500) : 'The connection failed';
}
