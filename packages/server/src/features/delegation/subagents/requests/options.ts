import { Capability, ToolPolicy, TurnOrigin } from '@gatehouse/contract';
import * as z from 'zod';
import type { ToolBounds } from '../../../../kernel/call-context.ts';
import { parseJson } from '../../../../kernel/json.ts';
import { isUntrustedOrigin } from '../../../../runtime/tool-policy.ts';

/** How a run is done, decided when it was accepted and the same for as long as it lives. */
export const RunOptions = z.strictObject({
  /** What its agent is told, without `fenced`. */
  message: z.string(),
  model: z.string().optional(),
  maxSteps: z.int(),
  /** The watchdog. */
  timeoutMs: z.int(),
  policies: z.array(ToolPolicy),
  /** Of its lease: a run in its place has the same. */
  caps: z.array(Capability),
  parentLeaseId: z.string().nullable(),
  /** The turn that asked, whose bounds hold for the run too; `agentId` is null for a token. */
  asked: z.strictObject({ origin: TurnOrigin, agentId: z.string().nullable(), policies: z.array(ToolPolicy), agents: z.array(z.string()) }),
});
export type RunOptions = z.output<typeof RunOptions>;

export const readOptions = (json: string): RunOptions => RunOptions.parse(parseJson(json));

/** By whose rights the run acts: its own, or those of an untrusted origin that set it going. */
export const authorityOf = ({ asked }: RunOptions): TurnOrigin | undefined => (isUntrustedOrigin(asked.origin) ? asked.origin : undefined);

/** Whoever asked has the bounds of its own turn; what it asks for has those, its own, and never more tools than the agent that asked. */
export function boundsOf({ policies, asked }: RunOptions): ToolBounds {
  return { policies: [...policies, ...asked.policies], agents: [...new Set([...(asked.agentId === null ? [] : [asked.agentId]), ...asked.agents])] };
}
