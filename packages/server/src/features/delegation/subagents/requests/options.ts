import { Capability, ToolPolicy, TurnOrigin, once } from '@gatehouse/contract';
import * as z from 'zod';
import type { ToolBounds } from '../../../../kernel/call-context.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { isUntrustedOrigin } from '../../../../runtime/tool-policy.ts';

/** Options of a run, decided when it was accepted and fixed for its lifetime. */
export const RunOptions = once(() =>
  z.strictObject({
    /** The message to its agent, without `fenced`. */
    message: z.string(),
    model: z.string().optional(),
    maxSteps: z.int(),
    /** Timeout of the watchdog. */
    timeoutMs: z.int(),
    policies: z.array(ToolPolicy),
    /** Capabilities of its lease; a replacement run has the same. */
    caps: z.array(Capability),
    parentLeaseId: z.string().nullable(),
    /** The requesting turn, whose limits apply to the run too; `agentId` is null for a token. */
    asked: z.strictObject({ origin: TurnOrigin, agentId: z.string().nullable(), policies: z.array(ToolPolicy), agents: z.array(z.string()) }),
  }),
);
export type RunOptions = z.output<ReturnType<typeof RunOptions>>;

export const readOptions = (json: string): RunOptions => RunOptions().parse(parseJson(json));

/** Returns the origin whose authority the run acts with: an untrusted origin that requested it, otherwise its own (undefined). */
export const authorityOf = ({ asked }: RunOptions): TurnOrigin | undefined => (isUntrustedOrigin(asked.origin) ? asked.origin : undefined);

/** Returns the tool bounds of a run: its own and those of its requester, and never more tools than the requesting agent. */
export function boundsOf({ policies, asked }: RunOptions): ToolBounds {
  return { policies: [...policies, ...asked.policies], agents: [...new Set([...(asked.agentId === null ? [] : [asked.agentId]), ...asked.agents])] };
}
