import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** Section `skills` of config.yaml. */
export const SkillsConfig = once(() =>
  z.strictObject({
    sharedDir: z
      .string()
      .min(1)
      .optional()
      .meta({ apply: 'restart' })
      .describe('Folder of the skills that all agents share; `skills` in the home folder when absent.'),
    unvetted: z
      .enum(['safe', 'never'])
      .default('safe')
      .describe('Folders that were added or changed by hand: `safe` loads those in which vetting finds nothing, `never` none.'),
    watch: z.boolean().default(true).meta({ apply: 'restart' }).describe('Notices changes in the folders of skills while the daemon runs.'),
    watchDebounceMs: z
      .int()
      .min(100)
      .max(5000)
      .default(400)
      .meta({ apply: 'restart' })
      .describe('Milliseconds of quiet before a changed folder is read again.'),
    installVetting: z
      .strictObject({
        maxFileBytes: z.int().min(1024).max(33_554_432).default(4_194_304).describe('Bytes of one file of a skill.'),
        maxTotalBytes: z.int().min(1024).max(134_217_728).default(33_554_432).describe('Bytes of all its files.'),
        maxFiles: z.int().min(1).max(1000).default(200).describe('Files of one skill.'),
      })
      .prefault({})
      .describe('Limits for installed skills.'),
    imports: z
      .strictObject({
        maxArchiveBytes: z.int().min(65_536).max(134_217_728).default(10_485_760).describe('Bytes of the compressed archive of a repository.'),
        maxUnpackedBytes: z.int().min(65_536).max(1_073_741_824).default(134_217_728).describe('Bytes that it may unpack to.'),
        timeoutMs: z.int().min(1000).max(300_000).default(60_000).describe('Deadline of an import, in milliseconds.'),
      })
      .prefault({})
      .describe('Archives that `skills.import` fetches.'),
  }),
);
export type SkillsConfig = z.output<ReturnType<typeof SkillsConfig>>;
