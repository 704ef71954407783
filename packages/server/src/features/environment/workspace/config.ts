import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** The folders in which agents work: how much each may hold. */
export const WorkspacesConfig = once(() =>
  z.strictObject({
    quotaMb: z
      .int()
      .min(1)
      .max(1_073_741_824)
      .default(2048)
      .describe(
        'Limit of a workspace, in MiB, hidden folders included. Beyond it commands and writes are refused, and a running command is stopped.',
      ),
    quotaFiles: z.int().min(100).max(10_000_000).default(200_000).describe('Files, folders and links that a workspace may hold.'),
  }),
);
export type WorkspacesConfig = z.output<ReturnType<typeof WorkspacesConfig>>;
