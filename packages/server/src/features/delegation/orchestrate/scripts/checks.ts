import type { Capability } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CapabilityRequest } from '../api.ts';

/** The parts of a request that the checks use. */
export interface Asked {
  readonly method: string;
  /** Tool of `tool.invoke`. */
  readonly tool?: string | undefined;
}

/** The checks; each runs only when the earlier ones passed. */
export interface CheckDeps<Holder> {
  /** Returns the holder of the bearer, if its lease is valid. */
  readonly holderOf: (bearer: string) => Promise<Holder | undefined>;
  readonly isDenied: (holder: Holder, asked: Asked) => boolean;
  /** Returns why callers of this origin may not make the request. */
  readonly refuseOrigin: (holder: Holder, asked: Asked) => string | undefined;
  /** Returns the required capability; null when none is required, undefined when the request is not available. */
  readonly needs: (asked: Asked) => Capability | null | undefined;
  readonly has: (holder: Holder, capability: Capability) => boolean;
}

export type Verdict<Holder> =
  | { readonly allowed: true; readonly holder: Holder; readonly capability: Capability | null }
  | {
      readonly allowed: false;
      readonly check: 'lease' | 'denylist' | 'origin' | 'capability';
      readonly holder?: Holder;
      readonly capability: Capability | null;
      readonly error: AppError;
    };

/** Runs the checks of json-rpc.md §4 (internal capability socket), in order. */
export async function checkRequest<Holder>(deps: CheckDeps<Holder>, bearer: string, asked: Asked): Promise<Verdict<Holder>> {
  const holder = await deps.holderOf(bearer);
  const refuse = (check: 'lease' | 'denylist' | 'origin' | 'capability', message: string, capability: Capability | null = null) => ({
    allowed: false as const,
    check,
    ...(holder !== undefined && { holder }),
    capability,
    error: new AppError('denied', message),
  });
  if (holder === undefined) return refuse('lease', 'The lease is not valid: unknown, expired, ended or revoked');
  const name = asked.tool ?? asked.method;
  if (deps.isDenied(holder, asked)) return refuse('denylist', `"${name.slice(0, 100)}" is never available to scripts`);
  const origin = deps.refuseOrigin(holder, asked);
  if (origin !== undefined) return refuse('origin', origin);
  const capability = deps.needs(asked);
  if (capability === undefined) return refuse('capability', `Capability denied: none exists for "${name.slice(0, 100)}"`);
  if (capability !== null && !deps.has(holder, capability)) return refuse('capability', `Capability denied: ${capability}`, capability);
  return { allowed: true, holder, capability };
}

export function askedOf({ method, params }: CapabilityRequest, toolMethod: string): Asked {
  const tool = method === toolMethod ? params['tool'] : undefined;
  return { method, ...(typeof tool === 'string' && { tool }) };
}
