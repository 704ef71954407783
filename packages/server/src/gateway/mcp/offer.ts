import type { CallToolResult, ReadResourceResult, Resource, ResourceTemplateType, Tool } from '@modelcontextprotocol/server';
import type { CallContext, Identity } from '../../kernel/call-context.ts';

/** Progress of a call; `progress` must grow from one report to the next. */
export interface McpProgress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** A tool as MCP clients see it. `run` fails with an `AppError`, which the client reads as a result that is an error. */
export interface McpTool {
  readonly about: Tool;
  /** `onProgress` is absent when the client did not ask for progress. */
  run(args: unknown, call: CallContext, onProgress: ((progress: McpProgress) => void) | undefined): Promise<CallToolResult>;
}

/** A page of a list; `nextCursor` is absent on the last one. */
export interface McpPage<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

/** Files and other resources that clients may read. Resources that a caller may not see are unknown to it. */
export interface McpResources {
  /** Fails with `invalid_params` for a cursor that was never returned. */
  list(cursor: string | undefined, identity: Identity): Promise<McpPage<Resource>>;
  templates(identity: Identity): readonly ResourceTemplateType[];
  /** Returns undefined when this caller has no resource at this address. */
  read(uri: string, identity: Identity): Promise<ReadResourceResult['contents'] | undefined>;
}

/** Everything that the MCP endpoint offers, independent of the protocol around it. */
export interface McpOffer {
  /** The tools of a caller, always in the same order. */
  tools(identity: Identity): readonly McpTool[];
  readonly resources: McpResources;
  /** Calls `listener` when somebody's tools may have changed; the returned function unsubscribes. */
  onToolsChanged(listener: () => void): () => void;
}
