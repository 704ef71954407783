import type { MethodName, ParamsInput, Result } from '@gatehouse/contract';
import { createError, type GatehouseError } from './errors.ts';
import { errorFromRpc, isRecord } from './wire.ts';

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Time limit of the call in milliseconds: 60 s for reads, 11 minutes for the rest (a turn may take ten). */
  readonly timeoutMs?: number | undefined;
}

/** Makes parameters optional for methods without a required one. */
export type CallArguments<M extends MethodName> =
  {} extends ParamsInput<M> ? [params?: ParamsInput<M>, options?: CallOptions] : [params: ParamsInput<M>, options?: CallOptions];

export type Call = <M extends MethodName>(method: M, ...args: CallArguments<M>) => Promise<Result<M>>;

/** Calls a method whose name is known only at run time; only the server validates it. */
export type CallByName = (method: string, params?: object, options?: CallOptions) => Promise<unknown>;

/** A call of a batch. */
export type BatchEntry = { [M in MethodName]: { readonly method: M; readonly params?: ParamsInput<M> } }[MethodName];

/** The outcome of one call of a batch; a failure does not affect the other calls. */
export type BatchOutcome<M extends MethodName> =
  | { readonly ok: true; readonly result: Result<M> }
  | { readonly ok: false; readonly error: GatehouseError };

export type BatchOutcomes<Entries extends readonly BatchEntry[]> = { readonly [I in keyof Entries]: BatchOutcome<Entries[I]['method']> };

export interface RpcRequestMessage {
  readonly jsonrpc: '2.0';
  readonly id: number;
  readonly method: string;
  readonly params: object;
}

export interface Reply {
  readonly id: unknown;
  readonly outcome: { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: GatehouseError };
}

/** Parses a JSON-RPC reply. */
export function readReply(value: unknown): Reply {
  if (isRecord(value) && isRecord(value['error'])) return { id: value['id'], outcome: { ok: false, error: errorFromRpc(value['error']) } };
  if (isRecord(value) && 'result' in value) return { id: value['id'], outcome: { ok: true, result: value['result'] } };
  const error = createError({ code: 'bad_reply', message: 'The server sent something that is not a JSON-RPC reply.' });
  return { id: isRecord(value) ? value['id'] : undefined, outcome: { ok: false, error } };
}
