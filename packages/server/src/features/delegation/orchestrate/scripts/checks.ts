import type { Capability } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CapabilityRequest } from '../api.ts';

/** The parts of a request that the checks use. */
export interface Asked {
  readonly method: string;
  /** Tool of `tool.invoke`. */
  readonly tool?: string | undefined;
}

/** The checks of the script that asks; each runs only when the earlier ones passed. */
export interface ScriptChecks {
  readonly isDenied: () => boolean;
  /** Returns why callers of this origin may not make the request. */
  readonly refuseOrigin: () => string | undefined;
  /** Returns the required capability; null when none is required, undefined when the request is not available. */
  readonly needs: () => Capability | null | undefined;
  readonly has: (capability: Capability) => boolean;
}

export type Verdict =
  | { readonly allowed: true; readonly capability: Capability | null }
  | {
      readonly allowed: false;
      readonly check: 'lease' | 'denylist' | 'origin' | 'capability';
      readonly capability: Capability | null;
      readonly error: AppError;
    };

/** Runs the checks of json-rpc.md §4 (internal capability socket), in order. `checks` is undefined without a valid lease. */
export function checkRequest(checks: ScriptChecks | undefined, asked: Asked): Verdict {
  if (checks === undefined) return refusal('lease', 'The lease is not valid: unknown, expired, ended or revoked');
  const name = (asked.tool ?? asked.method).slice(0, 100);
  if (checks.isDenied()) return refusal('denylist', `"${name}" is never available to scripts`);
  const origin = checks.refuseOrigin();
  if (origin !== undefined) return refusal('origin', origin);
  const capability = checks.needs();
  if (capability === undefined) return refusal('capability', `Capability denied: none exists for "${name}"`);
  if (capability !== null && !checks.has(capability)) return refusal('capability', `Capability denied: ${capability}`, capability);
  return { allowed: true, capability };
}

const refusal = (check: Extract<Verdict, { allowed: false }>['check'], message: string, capability: Capability | null = null): Verdict => ({
  allowed: false,
  check,
  capability,
  error: new AppError('denied', message),
});

export function askedOf({ method, params }: CapabilityRequest, toolMethod: string): Asked {
  const tool = method === toolMethod ? params['tool'] : undefined;
  return { method, ...(typeof tool === 'string' && { tool }) };
}
