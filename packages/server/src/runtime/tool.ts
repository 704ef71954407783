import type { Capability, TurnOrigin } from '@gatehouse/contract';
import type * as z from 'zod';
import type { CallContext } from '../kernel/call-context.ts';

/** `read`: reads the agent's own data. `outward`: reaches out of the machine. `write`: changes state. */
export type ToolRisk = 'read' | 'outward' | 'write';

/** Steps, tokens and money of a running turn. */
export interface TurnUse {
  readonly steps: number;
  readonly tokens: number;
  /** Cost in units of 1e-9 US dollars. */
  readonly costNano: number;
}

/** Context of a running tool; authority was decided before it is called. */
export interface ToolContext {
  readonly agentId: string;
  readonly turnId: string;
  readonly traceId: string;
  /** The authority under which the turn acts: for a background turn, the origin of the turn that started its task. */
  readonly origin: TurnOrigin;
  readonly workspaceDir: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  /** Owner of the conversation. */
  readonly principalId: string;
  /** Id of this call, unique in the conversation. */
  readonly callId: string;
  /** Runs a further tool of the turn like the model's own calls; the result is whole and not fenced. See `createNestedCall`. */
  readonly callTool: (name: string, args: unknown) => Promise<ToolResult>;
  /** Whether the model has read untrusted text by now: its requests to others then count as such text. Features find it in `call`. */
  readonly tainted: () => boolean;
  /** What the turn has used by now; absent where it is not counted. */
  readonly used?: () => TurnUse;
  /** Shows output to people while the call runs; absent when nobody watches. */
  readonly onOutput?: ((text: string) => void) | undefined;
  /** Call context for features: the identity that the turn works for, marked as the agent's by `agentCaller`. */
  readonly call: CallContext;
  readonly signal: AbortSignal;
}

export interface ToolResult {
  /** What the model reads; with `outside`, the loop fences it. */
  readonly content: string;
  readonly isError?: boolean;
  /** `clean`: data, but neither untrusted nor derived from untrusted text. */
  readonly outside?: { readonly source: string; readonly clean?: boolean };
  /** Tools that the model may call from its next step on. */
  readonly loads?: readonly Tool[];
  /** Kind of a failure and further facts for the trace: codes, ids and counts, never content. */
  readonly traced?: { readonly errorKind?: string; readonly facts?: Readonly<Record<string, string | number | boolean>> };
}

/** Destination of a call of risk `outward`: a place that the operator's configuration names, or an address. */
export type ToolDestination = { readonly kind: 'configured' } | { readonly kind: 'address'; readonly url: string };

/** A plain object; the loop parses the arguments, checks policy, sets the deadline and bounds the output. */
export interface Tool<Args extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly args: Args;
  readonly risk: ToolRisk;
  /** `once` must not be repeated after a crash; `pure` may run concurrently with others. */
  readonly effect: 'pure' | 'idempotent' | 'once';
  readonly timeoutMs: number;
  /** JSON schema for the model instead of that of `args`: for tools declared by others. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** Source of the tool: `builtin` when absent, `mcp:<server>`, `test`. */
  readonly source?: string;
  /** Changes when the tool's definition changes (description, schema, server); approvals are bound to it. */
  readonly fingerprint?: string;
  /** Whether results may contain the owner's private data: files, memories, conversations. True for risk `read` when absent. */
  readonly readsPrivate?: boolean;
  /**
   * Destination of a call of risk `outward` that only reads there; undefined for one that may do more. A configured place, or an address that
   * the model did not make up, leaks nothing.
   */
  readonly destination?: (args: z.output<Args>) => ToolDestination | undefined;
  /** Returns why this particular call must be approved whatever the rules say. */
  readonly mustAsk?: (args: z.output<Args>) => string | undefined;
  /** Whether this particular call of a tool that can change something only reads. */
  readonly onlyReads?: (args: z.output<Args>) => boolean;
  /** Whether this particular call has a program read the workspace: an approval of it covers the whole workspace as it is. */
  readonly runsPrograms?: (args: z.output<Args>) => boolean;
  /** What the agent must be allowed to start; checked at the gate of every call. */
  readonly capability?: Capability;
  /** May continue in the background when it takes longer than `agents.<id>.background.afterMs`. */
  readonly promotable?: boolean;
  /** Called when a call continues in the background. */
  readonly onPromoted?: (call: Pick<ToolContext, 'agentId'>) => void;
  /** Describes this call for people; the tool's name when absent. Before showing it, remove secrets, then cut it. */
  readonly describe?: (args: z.output<Args>) => string;
  run(args: z.output<Args>, context: ToolContext): Promise<ToolResult>;
}
