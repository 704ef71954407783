import type { TurnOrigin } from '@gatehouse/contract';
import type * as z from 'zod';

/** `read`: looks at the agent's own things. `outward`: reaches out of the machine. `write`: changes state. */
export type ToolRisk = 'read' | 'outward' | 'write';

/** What a running tool knows; authority was decided before it is called. */
export interface ToolContext {
  readonly agentId: string;
  readonly turnId: string;
  readonly traceId: string;
  readonly origin: TurnOrigin;
  readonly workspaceDir: string;
  readonly signal: AbortSignal;
}

export interface ToolResult {
  /** What the model reads. `outside: true` text is fenced by the loop before it is shown to the model. */
  readonly content: string;
  readonly isError?: boolean;
  readonly outside?: { readonly source: string };
}

/** A plain object; the loop parses the arguments, checks policy, sets the deadline and bounds the output. */
export interface Tool<Args extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly args: Args;
  readonly risk: ToolRisk;
  /** `once` must not be repeated after a crash; `pure` may run beside others. */
  readonly effect: 'pure' | 'idempotent' | 'once';
  readonly timeoutMs: number;
  run(args: z.output<Args>, context: ToolContext): Promise<ToolResult>;
}
