import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { ToolResult } from '../../../../runtime/tool.ts';
import type { McpServerConfig } from '../config.ts';
import type { Connection } from '../connection/connection.ts';
import { buildTools, type McpTool } from '../tools/tool-list.ts';

/** Consecutive changes of the list of tools are handled together. */
const settleMs = 200;

export interface ListedToolsDeps {
  readonly name: string;
  readonly config: McpServerConfig;
  readonly clock: Clock;
  readonly log: Log;
  readonly call: (tool: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal) => Promise<ToolResult>;
  /** Called when the server has answered. */
  readonly onAnswer: () => void;
  /** Called when the tools have changed. */
  readonly onTools: () => void;
}

/** The tools that a server last listed. They stay while its connection is repaired. */
export class ListedTools {
  readonly #deps: ListedToolsDeps;
  #tools: readonly McpTool[] = [];
  #dropped = 0;
  #cancelRefresh: (() => void) | undefined;

  constructor(deps: ListedToolsDeps) {
    this.#deps = deps;
  }

  get all(): readonly McpTool[] {
    return this.#tools;
  }

  /** Number of listed tools that were omitted. */
  get dropped(): number {
    return this.#dropped;
  }

  async read(from: Connection, signal: AbortSignal): Promise<void> {
    const { name, config, log, call, onAnswer } = this.#deps;
    const built = await buildTools(
      await from.listTools(signal),
      {
        server: name,
        identity: JSON.stringify(config.transport === 'stdio' ? [config.command, config.args] : [config.url]),
        readOnlyTools: config.readOnlyTools,
        timeoutMs: config.timeoutMs,
        call: (tool, args, context) => call(tool, args, context.signal),
      },
      this.#tools,
    );
    if (signal.aborted) return;
    onAnswer();
    this.#replace(built.tools, built.dropped);
    if (built.dropped > 0) log.warn({ server: name, dropped: built.dropped }, 'Omitting tools of an MCP server: too many, or not valid');
  }

  /** Reads the list again soon, unless the connection was replaced by then. */
  readLater(from: Connection, signal: AbortSignal, isCurrent: () => boolean): void {
    const { name, clock, log } = this.#deps;
    this.cancelRead();
    this.#cancelRefresh = clock.after(settleMs, () => {
      if (!isCurrent()) return;
      this.read(from, signal).catch((reason: unknown) => {
        if (!signal.aborted) log.warn({ server: name, error: reason }, 'Failed to list the tools of an MCP server again');
      });
    });
  }

  cancelRead(): void {
    this.#cancelRefresh?.();
  }

  clear(): void {
    this.#replace([], 0);
  }

  #replace(next: readonly McpTool[], dropped: number): void {
    this.#dropped = dropped;
    const same = next.length === this.#tools.length && next.every((each, index) => each === this.#tools[index]);
    if (same) return;
    this.#tools = next;
    this.#deps.onTools();
  }
}
