import type { Capability, TurnOrigin } from '@gatehouse/contract';
import type * as z from 'zod';
import type { CallContext } from '../kernel/call-context.ts';

/** `read`: looks at the agent's own things. `outward`: reaches out of the machine. `write`: changes state. */
export type ToolRisk = 'read' | 'outward' | 'write';

/** Steps, tokens and money of a turn that runs. */
export interface TurnUse {
  readonly steps: number;
  readonly tokens: number;
  /** In 1e-9 US dollars. */
  readonly costNano: number;
}

/** What a running tool knows; authority was decided before it is called. */
export interface ToolContext {
  readonly agentId: string;
  readonly turnId: string;
  readonly traceId: string;
  /** By whose rights the turn acts: of a background turn, the origin of the turn that began its task. */
  readonly origin: TurnOrigin;
  readonly workspaceDir: string;
  readonly conversationRef: string;
  readonly sessionKey: string;
  /** Owner of the conversation. */
  readonly principalId: string;
  /** Of this call, unique in the conversation. */
  readonly callId: string;
  /** Runs a further tool of the turn as the model's own calls are run; the result is whole and not fenced. See `createNestedCall`. */
  readonly callTool: (name: string, args: unknown) => Promise<ToolResult>;
  /** Whether the model has read text from outside by now: what it asks others to do counts as such text then. Features find it in `call`. */
  readonly tainted: () => boolean;
  /** What the turn has used by now; absent where it is not counted. */
  readonly used?: () => TurnUse;
  /** For functions of features: the identity that the turn works for, marked as the agent's by `agentCaller`. */
  readonly call: CallContext;
  readonly signal: AbortSignal;
}

export interface ToolResult {
  /** What the model reads; with `outside`, the loop fences it. */
  readonly content: string;
  readonly isError?: boolean;
  /** `clean`: data, but neither from outside nor made of such text. */
  readonly outside?: { readonly source: string; readonly clean?: boolean };
  /** Tools that the model may call from its next step on. */
  readonly loads?: readonly Tool[];
}

/** Where a call of risk `outward` goes: a place that the operator's configuration names, or an address. */
export type ToolDestination = { readonly kind: 'configured' } | { readonly kind: 'address'; readonly url: string };

/** A plain object; the loop parses the arguments, checks policy, sets the deadline and bounds the output. */
export interface Tool<Args extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly args: Args;
  readonly risk: ToolRisk;
  /** `once` must not be repeated after a crash; `pure` may run beside others. */
  readonly effect: 'pure' | 'idempotent' | 'once';
  readonly timeoutMs: number;
  /** JSON schema told to the model in place of that of `args`: tools that others declare. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** Where it comes from: `builtin` when absent, `mcp:<server>`, `test`. */
  readonly source?: string;
  /** Changes when what the tool is changes (description, schema, server); approvals are bound to it. */
  readonly fingerprint?: string;
  /** Whether results may hold what is the owner's private: files, memories, conversations. True for risk `read` when absent. */
  readonly readsPrivate?: boolean;
  /** Of a tool of risk `outward` that only looks: where the call goes. A configured place, or an address that the model did not make up, carries nothing out. */
  readonly destination?: (args: z.output<Args>) => ToolDestination;
  /** Why this very call must be approved whatever the rules say. */
  readonly mustAsk?: (args: z.output<Args>) => string | undefined;
  /** Whether this very call of a tool that can change something only looks. */
  readonly onlyReads?: (args: z.output<Args>) => boolean;
  /** Whether this very call has a program read the workspace: an approval of it is for the whole workspace as it is. */
  readonly runsPrograms?: (args: z.output<Args>) => boolean;
  /** What the agent must be allowed to set going; asked for at the gate of every call. */
  readonly capability?: Capability;
  /** May go on in the background when it takes longer than `agents.<id>.background.afterMs`. */
  readonly promotable?: boolean;
  /** What this call does, for people; the name of the tool when absent. Whoever shows it takes secrets out and cuts it, in this order. */
  readonly describe?: (args: z.output<Args>) => string;
  run(args: z.output<Args>, context: ToolContext): Promise<ToolResult>;
}
