import * as z from 'zod';

const days = (least: number, most: number, byDefault: number) => z.int().min(least).max(most).default(byDefault);

/** Section `retention` of config.yaml. */
export const RetentionConfig = z.strictObject({
  turnDays: days(90, 3_650, 400).describe(
    'Days until ended turns and single model calls are deleted; what the calls used and cost stays in the sums of all reports.',
  ),
  auditDays: days(90, 36_500, 730).describe('Days until entries of the audit are deleted.'),
  archiveDays: days(1, 3_650, 90).describe('Days until the archive of a deleted conversation is deleted.'),
  reasoningDays: days(1, 3_650, 90).describe('Days until the reasoning that is stored with an answer is deleted; the answer stays.'),
  maxTraces: z
    .int()
    .min(1_000)
    .max(10_000_000)
    .default(200_000)
    .describe('Traces that are kept at most, within `observability.persistence.retentionDays`.'),
  browserRecordingDays: days(1, 3_650, 14).describe(
    'Days until the recording of a browser is deleted; `browser.recording.maxMb` may delete it earlier.',
  ),
  subAgentConversationDays: days(1, 3_650, 30).describe('Days without use until the conversation of an ended sub-agent is deleted.'),
});
export type RetentionConfig = z.output<typeof RetentionConfig>;
