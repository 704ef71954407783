import type { CallToolResult, ReadResourceResult, Resource, ResourceTemplateType, Tool } from '@modelcontextprotocol/server';
import type { CallContext, Identity } from '../../kernel/call-context.ts';

/** How far a call is; `progress` must grow from one to the next. */
export interface McpProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** A tool as MCP clients see it. `run` fails with an `AppError`, which the client reads as a result that is an error. */
export interface McpTool {
  readonly about: Tool;
  /** `tell` is absent when the client did not ask for progress. */
  run(args: unknown, call: CallContext, tell: ((progress: McpProgress) => void) | undefined): Promise<CallToolResult>;
}

/** A page of a list; `nextCursor` is absent on the last one. */
export interface McpPage<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

/** Files and the like that clients may read. Of what a caller may not see nothing is told: it is unknown. */
export interface McpResources {
  /** Fails with `invalid_params` for a cursor that was never given out. */
  list(cursor: string | undefined, identity: Identity): Promise<McpPage<Resource>>;
  templates(identity: Identity): readonly ResourceTemplateType[];
  /** Undefined: there is none of this address for this caller. */
  read(uri: string, identity: Identity): Promise<ReadResourceResult['contents'] | undefined>;
}

/** All that the MCP endpoint offers; the protocol around it is the same whatever it is. */
export interface McpOffer {
  /** The tools of a caller, always in the same order. */
  tools(identity: Identity): readonly McpTool[];
  readonly resources: McpResources;
  /** Told when the tools of somebody may have changed; the returned function ends it. */
  onToolsChanged(listener: () => void): () => void;
}
