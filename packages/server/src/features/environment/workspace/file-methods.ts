import { isUtf8 } from 'node:buffer';
import { mkdir } from 'node:fs/promises';
import { standardFolders, workspaceLimits } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { listFolderInside, notHere, readFileInside, removeInside, writeFileInside } from '../../../kernel/safe-path.ts';
import type { WorkspaceAccess } from './access.ts';
import type { FileTaints } from './api.ts';
import { writablePath } from './file-tools/protected-paths.ts';
import type { WorkspaceMethods } from './methods.ts';
import { at, readablePath } from './parameter.ts';
import type { Quota } from './quota/quota.ts';
import { isTemplateName, templateOf } from './setup/templates.ts';
import { isInternal } from './taint/internal-names.ts';

interface FileMethodDeps {
  readonly access: WorkspaceAccess;
  readonly quota: Pick<Quota, 'assertCapacity'>;
  readonly taints: FileTaints;
}

type FileMethods = Pick<WorkspaceMethods, `workspace.${'readFile' | 'readBytes' | 'writeFile' | 'deleteFile' | 'listDir' | 'resetFile'}`>;

/** Creates the handlers that read and change files of a workspace. */
export function createFileMethods({ access, quota, taints }: FileMethodDeps): FileMethods {
  return {
    'workspace.readFile': async ({ agentId, filePath }, call) => {
      const { workspaceDir } = access.reachable(agentId, call);
      const path = readablePath('filePath', filePath);
      return at('filePath', async () => {
        const bytes = await readFileInside(workspaceDir, path, { maxBytes: workspaceLimits.readBytes }).catch(
          tooLarge('File exceeds 1MB read limit'),
        );
        if (bytes.includes(0) || !isUtf8(bytes)) throw new AppError('unsupported_media_type', 'The file is not UTF-8 text');
        return { content: bytes.toString(), sizeBytes: bytes.length };
      });
    },

    'workspace.readBytes': async ({ agentId, filePath }, call) => {
      const { workspaceDir } = access.reachable(agentId, call);
      const path = readablePath('filePath', filePath);
      return at('filePath', async () => {
        const bytes = await readFileInside(workspaceDir, path, { maxBytes: workspaceLimits.binaryBytes }).catch(
          tooLarge('File exceeds 8MB read limit'),
        );
        return { base64: bytes.toString('base64'), contentType: await contentTypeOf(bytes), sizeBytes: bytes.length };
      });
    },

    'workspace.writeFile': async ({ agentId, filePath, content }, call) => {
      const sizeBytes = Buffer.byteLength(content);
      return access.change({ method: 'workspace.writeFile', risk: 'mutate', agentId, metadata: { filePath, sizeBytes } }, call, ({ workspaceDir }) =>
        at('filePath', async () => {
          const path = writablePath(filePath);
          if (sizeBytes > workspaceLimits.writeBytes)
            throw new AppError('payload_too_large', 'Content exceeds 512KB write limit', { param: 'content' });
          await quota.assertCapacity(workspaceDir, { bytes: sizeBytes, files: 1 });
          await mkdir(workspaceDir, { recursive: true, mode: 0o700 });
          await writeFileInside(workspaceDir, path, content, { maxBytes: workspaceLimits.writeBytes });
          await taints.mark({ agentId, workspaceDir }, path, false, content);
          return { written: true as const, sizeBytes };
        }),
      );
    },

    'workspace.deleteFile': ({ agentId, filePath }, call) =>
      access.change({ method: 'workspace.deleteFile', risk: 'destructive', agentId, metadata: { filePath } }, call, ({ workspaceDir }) =>
        at('filePath', async () => {
          const path = writablePath(filePath);
          // Only the name of a link is removed; its target stays.
          if (!(await removeInside(workspaceDir, path))) throw notHere();
          await taints.forget({ agentId, workspaceDir }, path);
          return { deleted: true as const };
        }),
      ),

    'workspace.listDir': async ({ agentId, subdir }, call) => {
      const { workspaceDir } = access.reachable(agentId, call);
      const first = subdir?.split('/')[0];
      if (first !== undefined && !standardFolders.some((folder) => folder === first))
        throw new AppError(
          'invalid_params',
          `Directory not in allowlist: ${subdir}; expected one of ${standardFolders.join(', ')}, or a folder in one`,
          {
            param: 'subdir',
          },
        );
      const path = subdir === undefined ? '.' : readablePath('subdir', subdir);
      const { entries, more } = await at('subdir', () => listFolderInside(workspaceDir, path, workspaceLimits.listEntries));
      return {
        entries: entries
          .filter(({ name }) => !isInternal(name))
          .toSorted((a, b) => (a.name < b.name ? -1 : 1))
          .map(({ name, kind, size, mtimeMs }) => ({
            name,
            type: kind,
            ...(kind === 'file' && { sizeBytes: size }),
            modifiedAt: Math.max(0, Math.floor(mtimeMs)),
          })),
        truncated: more,
      };
    },

    'workspace.resetFile': ({ agentId, fileName }, call) =>
      access.change({ method: 'workspace.resetFile', risk: 'destructive', agentId, metadata: { fileName } }, call, async ({ workspaceDir }) => {
        if (!isTemplateName(fileName)) throw new AppError('invalid_params', `Not a template file: ${fileName}`, { param: 'fileName' });
        await quota.assertCapacity(workspaceDir, { bytes: Buffer.byteLength(templateOf(fileName)), files: 1 });
        await mkdir(workspaceDir, { recursive: true, mode: 0o700 });
        const text = templateOf(fileName);
        await at('fileName', () => writeFileInside(workspaceDir, fileName, text, { maxBytes: workspaceLimits.writeBytes }));
        await taints.mark({ agentId, workspaceDir }, fileName, false, text);
        return { reset: true as const, fileName };
      }),
  };
}

/** Returns the type that the first bytes show. Untrusted input: any parser error means an unknown type. */
async function contentTypeOf(bytes: Uint8Array): Promise<string> {
  const { fileTypeFromBuffer } = await import('file-type');
  const found = await fileTypeFromBuffer(bytes.subarray(0, 65_536)).catch(() => undefined);
  return found?.mime.split(';')[0] ?? 'application/octet-stream';
}

function tooLarge(message: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof AppError && error.code === 'payload_too_large') throw new AppError('payload_too_large', message);
    throw error;
  };
}
