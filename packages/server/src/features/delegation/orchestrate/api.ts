import type { RootEntry, RootLeave, NewLease } from '../autonomy/api.ts';
import type { CallContext } from '../../../kernel/call-context.ts';

/** A line that a script sends. */
export interface CapabilityRequest {
  readonly bearer: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** A line that passed every check: a tool is run here, a method by the table of methods. */
export type AdmittedCall =
  | { readonly route: 'tool'; readonly run: () => Promise<unknown> }
  | { readonly route: 'method'; readonly method: string; readonly params: Readonly<Record<string, unknown>>; readonly call: CallContext };

export interface ScriptCalls {
  /** Lease, denylist, origin, capability, in this order; throws what the first one says that does not hold. */
  admit(request: CapabilityRequest): Promise<AdmittedCall>;
}

/** What `beginScript` takes: the script counts as a piece of its root, and holds a lease. */
export interface ScriptBegin {
  readonly root: RootEntry;
  readonly lease: NewLease;
}

/** What `endScript` takes. */
export interface ScriptEnd {
  readonly leaseId: string;
  readonly root: RootLeave;
}
