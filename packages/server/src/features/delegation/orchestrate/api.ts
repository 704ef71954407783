import type { RootEntry, RootLeave, NewLease } from '../autonomy/api.ts';
import type { CallContext } from '../../../kernel/call-context.ts';

/** A request line from a script. */
export interface CapabilityRequest {
  readonly bearer: string;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** A request that passed every check: a tool runs here, a method in the method table. */
export type AdmittedCall =
  | { readonly route: 'tool'; readonly run: () => Promise<unknown> }
  | { readonly route: 'method'; readonly method: string; readonly params: Readonly<Record<string, unknown>>; readonly call: CallContext };

export interface ScriptCalls {
  /** Checks lease, denylist, origin and capability in this order; throws the error of the first check that fails. */
  admit(request: CapabilityRequest): Promise<AdmittedCall>;
}

/** Input of `beginScript`: the script counts as work of its root, and holds a lease. */
export interface ScriptBegin {
  readonly root: RootEntry;
  readonly lease: NewLease;
}

/** Input of `endScript`. */
export interface ScriptEnd {
  readonly leaseId: string;
  readonly bootId: string;
  readonly root: RootLeave;
}
