import * as z from 'zod';
import { EpochMs } from './turn.ts';

/** What accepted work waits for, without using an attempt. */
export const WorkWaiting = z
  .strictObject({
    kind: z.enum(['provider', 'approval', 'agent']).describe('Its model provider, an approval, or a suspended agent.'),
    sinceMs: EpochMs,
    untilMs: EpochMs.describe('The end of the wait.'),
    approvalId: z.string().optional().describe('Of kind `approval`.'),
    cause: z.string().optional().describe("The provider's own sentence; for tokens with scope `admin` only."),
  })
  .meta({ id: 'WorkWaiting' });
export type WorkWaiting = z.output<typeof WorkWaiting>;
