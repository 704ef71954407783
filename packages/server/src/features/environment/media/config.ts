import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** Section `media` of config.yaml. */
export const MediaConfig = once(() =>
  z.strictObject({
    maxFileBytes: z.int().min(1024).max(1_073_741_824).default(26_214_400).describe('Largest media file that can be uploaded, in bytes.'),
    maxTotalBytes: z
      .int()
      .min(1024)
      .max(1_099_511_627_776)
      .default(5_368_709_120)
      .describe('Bytes of all media together; beyond it uploads are refused.'),
    maxFiles: z.int().min(1).max(1_000_000).default(100_000).describe('Number of media; beyond it uploads are refused.'),
    unattachedDays: z
      .int()
      .min(7)
      .max(36_500)
      .default(90)
      .describe('Days after which an uploaded media file is removed that is attached to no message of a conversation.'),
    retentionDays: z.int().min(1).max(36_500).optional().describe('Days after which an uploaded media file is removed; kept for good when absent.'),
  }),
);
export type MediaConfig = z.output<ReturnType<typeof MediaConfig>>;
