import * as z from 'zod';
import { once } from '../once.ts';
import { method } from '../method.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

/** Limits of files that are transferred whole. */
export const workspaceLimits = {
  readBytes: 1024 * 1024,
  binaryBytes: 8 * 1024 * 1024,
  writeBytes: 512 * 1024,
  diffBytes: 512 * 1024,
  listEntries: 2000,
  statusEntries: 5000,
  messageCharacters: 500,
} as const;

/** Files of a workspace that belong to the prompt, and for which there is a template. */
export const templateNames = [
  'SOUL.md',
  'IDENTITY.md',
  'USER.md',
  'AGENTS.md',
  'ROLE.md',
  'TOOLS.md',
  'HEARTBEAT.md',
  'BOOTSTRAP.md',
  'BOOT.md',
] as const;
export type TemplateName = (typeof templateNames)[number];

/** Folders that every workspace has. */
export const standardFolders = ['projects', 'scripts', 'documents', 'media', 'data', 'output'] as const;

const FilePath = once(() =>
  z
    .string()
    .min(1)
    .max(4096)
    .describe('Path relative to the workspace, with "/". Absolute and encoded paths, "..", links and special files count as missing.'),
);
const Commit = once(() =>
  z
    .strictObject({ sha: z.string(), author: z.string(), date: z.string().describe('ISO 8601.'), message: z.string() })
    .meta({ id: 'WorkspaceCommit' }),
);
const commitExample = {
  sha: '5f3a1c0e9b7d4f2a8c6e1d3b5a7f9e0c2d4b6a81',
  author: 'Operator',
  date: '2026-11-21T09:00:00Z',
  message: 'Operator commit via web console',
};
const agentId = 'default';

export const workspace = {
  'workspace.status': method({
    scope: 'rpc',
    risk: 'read',
    summary: "Returns the location of an agent's workspace, its template files and whether it is set up.",
    params: () => z.strictObject({ agentId: AgentId }),
    result: () =>
      z.strictObject({
        dir: z.string(),
        exists: z.boolean(),
        files: z.array(
          z.strictObject({
            name: z.enum(templateNames),
            present: z.boolean(),
            sizeBytes: z.int().min(0).optional(),
            untouched: z.boolean().optional().describe('Still the template; such a file is not part of the prompt, except BOOTSTRAP.md.'),
          }),
        ),
        hasGitRepo: z.boolean(),
        isBootstrapped: z.boolean().describe('BOOTSTRAP.md is gone, or IDENTITY.md has a name.'),
        state: z
          .strictObject({ version: z.int(), bootstrapSeededAt: EpochMs.optional(), onboardingCompletedAt: EpochMs.optional() })
          .optional()
          .describe('Since when it is set up; recorded by the daemon.'),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId },
        result: {
          dir: '/home/ada/.gatehouse/workspaces/default',
          exists: true,
          files: [
            { name: 'SOUL.md', present: true, sizeBytes: 412, untouched: true },
            { name: 'USER.md', present: false },
          ],
          hasGitRepo: true,
          isBootstrapped: false,
          state: { version: 1, bootstrapSeededAt: 1790000000000 },
        },
      },
    ],
    since: '0.1.0',
  }),
  'workspace.readFile': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Reads a text file of a workspace.',
    description: 'Up to 1 MiB of UTF-8. Daemon files under `.gatehouse`, and repositories (`.git`), cannot be read.',
    params: () => z.strictObject({ agentId: AgentId, filePath: FilePath() }),
    result: () => z.strictObject({ content: z.string(), sizeBytes: z.int().min(0) }),
    errors: ['not_found', 'payload_too_large', 'unsupported_media_type'],
    examples: [{ params: { agentId, filePath: 'documents/plan.md' }, result: { content: '# Plan\n', sizeBytes: 7 } }],
    since: '0.1.0',
  }),
  'workspace.readBytes': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Reads any file of a workspace, such as a generated image or a recording, as base64.',
    description:
      'Up to 8 MiB. The content type is read from the bytes; a file of an unknown type is `application/octet-stream`. Daemon files under `.gatehouse`, and repositories (`.git`), cannot be read.',
    params: () => z.strictObject({ agentId: AgentId, filePath: FilePath() }),
    result: () => z.strictObject({ base64: z.string(), contentType: z.string(), sizeBytes: z.int().min(0) }),
    errors: ['not_found', 'payload_too_large'],
    examples: [
      {
        params: { agentId, filePath: 'media/harbour.png' },
        result: { base64: 'iVBORw0KGgo=', contentType: 'image/png', sizeBytes: 8 },
      },
    ],
    since: '0.1.0',
  }),
  'workspace.writeFile': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Writes a whole text file of a workspace, creating missing folders.',
    description:
      'Up to 512 KiB of UTF-8. `.git`, `.gatehouse` and `skills/` cannot be written; skills are changed by `skills.*`, which vets them first.',
    params: () => z.strictObject({ agentId: AgentId, filePath: FilePath(), content: z.string() }),
    result: () => z.strictObject({ written: z.literal(true), sizeBytes: z.int().min(0) }),
    errors: ['not_found', 'denied', 'payload_too_large'],
    examples: [{ params: { agentId, filePath: 'documents/plan.md', content: '# Plan\n' }, result: { written: true, sizeBytes: 7 } }],
    since: '0.1.0',
  }),
  'workspace.deleteFile': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Deletes one file of a workspace.',
    params: () => z.strictObject({ agentId: AgentId, filePath: FilePath() }),
    result: () => z.strictObject({ deleted: z.literal(true) }),
    errors: ['not_found', 'denied'],
    examples: [{ params: { agentId, filePath: 'documents/plan.md' }, result: { deleted: true } }],
    since: '0.1.0',
  }),
  'workspace.listDir': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the top of a workspace, one of its standard folders, or a folder in one of them.',
    description: `Standard folders: ${standardFolders.join(', ')}. Not recursive; links and special files are omitted; sorted by name, at most ${workspaceLimits.listEntries} entries.`,
    params: () => z.strictObject({ agentId: AgentId, subdir: FilePath().optional() }),
    result: () =>
      z.strictObject({
        entries: z.array(
          z.strictObject({
            name: z.string(),
            type: z.enum(['file', 'directory']),
            sizeBytes: z.int().min(0).optional(),
            modifiedAt: EpochMs,
          }),
        ),
        truncated: z.boolean().describe('There are more than are listed.'),
      }),
    errors: ['not_found', 'invalid_params'],
    examples: [
      {
        params: { agentId, subdir: 'documents' },
        result: { entries: [{ name: 'plan.md', type: 'file', sizeBytes: 7, modifiedAt: 1790000000000 }], truncated: false },
      },
    ],
    since: '0.1.0',
  }),
  'workspace.resetFile': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Resets a template file to its default.',
    params: () => z.strictObject({ agentId: AgentId, fileName: z.string().max(4096) }),
    result: () => z.strictObject({ reset: z.literal(true), fileName: z.enum(templateNames) }),
    errors: ['not_found', 'invalid_params'],
    examples: [{ params: { agentId, fileName: 'SOUL.md' }, result: { reset: true, fileName: 'SOUL.md' } }],
    since: '0.1.0',
  }),
  'workspace.init': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Sets up a workspace: standard folders, template files and a git repository; existing files stay as they are.',
    description: 'Without the program `git` there is no repository. The repository is next to the workspace, out of reach of the agent.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () => z.strictObject({ initialized: z.literal(true), dir: z.string() }),
    errors: ['not_found'],
    examples: [{ params: { agentId }, result: { initialized: true, dir: '/home/ada/.gatehouse/workspaces/default' } }],
    since: '0.1.0',
  }),
  'workspace.git.status': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists files of a workspace that differ from the last commit.',
    params: () => z.strictObject({ agentId: AgentId }),
    result: () =>
      z.strictObject({
        branch: z.string().describe('`HEAD (detached)` when there is none.'),
        clean: z.boolean(),
        entries: z.array(
          z.strictObject({
            path: z.string().describe('A path that ends with "/" is a nested repository, which is never committed.'),
            status: z.enum(['untracked', 'deleted', 'added', 'renamed', 'copied', 'modified']),
            staged: z.boolean(),
          }),
        ),
        truncated: z.boolean().describe('There are more than are listed.'),
      }),
    errors: ['not_found', 'precondition_failed', 'unavailable', 'timeout'],
    examples: [
      {
        params: { agentId },
        result: { branch: 'main', clean: false, entries: [{ path: 'documents/plan.md', status: 'untracked', staged: false }], truncated: false },
      },
    ],
    since: '0.1.0',
  }),
  'workspace.git.log': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists commits of a workspace, newest first.',
    params: () => z.strictObject({ agentId: AgentId, limit: z.int().default(50).describe('Clamped to 1 to 200.') }),
    result: () => z.strictObject({ commits: z.array(Commit()) }),
    errors: ['not_found', 'precondition_failed', 'unavailable', 'timeout'],
    examples: [{ params: { agentId, limit: 10 }, result: { commits: [commitExample] } }],
    since: '0.1.0',
  }),
  'workspace.git.diff': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Shows how tracked files of a workspace differ from the last commit, as a unified diff.',
    description: 'Cut at 512 KiB, with a note. Files of more than 1 MiB are named, not shown.',
    params: () => z.strictObject({ agentId: AgentId, filePath: FilePath().optional().describe('Only this file, or what is in this folder.') }),
    result: () => z.strictObject({ diff: z.string() }),
    errors: ['not_found', 'precondition_failed', 'unavailable', 'timeout'],
    examples: [
      {
        params: { agentId, filePath: 'documents/plan.md' },
        result: {
          diff: 'diff --git a/documents/plan.md b/documents/plan.md\n--- a/documents/plan.md\n+++ b/documents/plan.md\n@@ -1 +1 @@\n-# Plan\n+# Plans\n',
        },
      },
    ],
    since: '0.1.0',
  }),
  'workspace.git.commit': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Commits files of a workspace: those named, or everything that differs.',
    description: 'Links, nested repositories and paths in `.gitignore` are excluded. Files of up to 16 MiB, 256 MiB together.',
    params: () =>
      z.strictObject({
        agentId: AgentId,
        message: z
          .string()
          .max(100_000)
          .default('Operator commit via web console')
          .describe('Control characters are removed; 500 characters are kept.'),
        paths: z.array(FilePath()).min(1).max(1000).optional().describe('Files, or folders with everything in them.'),
      }),
    result: () => Commit(),
    errors: ['not_found', 'precondition_failed', 'payload_too_large', 'unavailable', 'timeout'],
    examples: [{ params: { agentId }, result: commitExample }],
    since: '0.1.0',
  }),
  'workspace.git.restore': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Restores a file of a workspace from the last commit.',
    params: () => z.strictObject({ agentId: AgentId, filePath: FilePath() }),
    result: () => z.strictObject({ restored: z.literal(true) }),
    errors: ['not_found', 'denied', 'precondition_failed', 'payload_too_large', 'unavailable', 'timeout'],
    examples: [{ params: { agentId, filePath: 'documents/plan.md' }, result: { restored: true } }],
    since: '0.1.0',
  }),
};
