import * as z from 'zod';
import { once } from '../once.ts';
import { EpochMs } from './turn.ts';

/** Why something failed, in one sentence: that of the model provider if it was at fault, else that of the gateway. */
export const FailureCause = once(() =>
  z
    .string()
    .max(1000)
    .describe("Reason of a failure, in one sentence: the provider's own, secrets redacted, or the gateway's; for tokens with scope `admin` only."),
);

/** Calls that needed an approval and were not run. */
export const EffectsRefused = once(() =>
  z
    .int()
    .min(1)
    .describe(
      'How many calls needed an approval and were not run, because they were denied or undecided in time, or `approvals.unattended` is `refuse`.',
    ),
);

/** What accepted work waits for, without using an attempt. */
export const WorkWaiting = once(() =>
  z
    .strictObject({
      kind: z
        .enum(['provider', 'approval', 'agent', 'conversation'])
        .describe(
          '`provider`: its model provider. `approval`: an approval. `agent`: its agent is suspended, or too many turns wait for it. `conversation`: an earlier run of its conversation waits for an approval, or too many turns wait in it.',
        ),
      sinceMs: EpochMs,
      untilMs: EpochMs.describe('The end of the wait.'),
      retryAtMs: EpochMs.optional().describe('For kind `provider`: when it is tried again at the latest; it is earlier when the provider answers.'),
      approvalId: z.string().optional().describe('For kind `approval`.'),
      cause: z.string().optional().describe("The provider's own sentence; for tokens with scope `admin` only."),
    })
    .meta({ id: 'WorkWaiting' }),
);
export type WorkWaiting = z.output<ReturnType<typeof WorkWaiting>>;
