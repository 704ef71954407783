import type { Capability } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CapabilityRequest } from '../api.ts';

/** What a line asks for, as far as the checks look at it. */
export interface Asked {
  readonly method: string;
  /** Of `tool.invoke`. */
  readonly tool?: string | undefined;
}

/** Each looks at one thing; a later one is not asked when an earlier one does not hold. */
export interface CheckDeps<Holder> {
  /** Who shows the bearer, if its lease holds. */
  readonly holderOf: (bearer: string) => Promise<Holder | undefined>;
  readonly isDenied: (holder: Holder, asked: Asked) => boolean;
  /** Why callers of this origin may not ask for it. */
  readonly refuseOrigin: (holder: Holder, asked: Asked) => string | undefined;
  /** What it needs; null when it needs nothing, undefined when it is not served at all. */
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

/** The checks of json-rpc.md §4 (internal capability socket), in its order. */
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
  if (deps.isDenied(holder, asked)) return refuse('denylist', `"${name.slice(0, 100)}" is on the list of what scripts are never given`);
  const origin = deps.refuseOrigin(holder, asked);
  if (origin !== undefined) return refuse('origin', origin);
  const capability = deps.needs(asked);
  if (capability === undefined) return refuse('capability', `Capability denied: there is none for "${name.slice(0, 100)}"`);
  if (capability !== null && !deps.has(holder, capability)) return refuse('capability', `Capability denied: ${capability}`, capability);
  return { allowed: true, holder, capability };
}

export function askedOf({ method, params }: CapabilityRequest, toolMethod: string): Asked {
  const tool = method === toolMethod ? params['tool'] : undefined;
  return { method, ...(typeof tool === 'string' && { tool }) };
}
