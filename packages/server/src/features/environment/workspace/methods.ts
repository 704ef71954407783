import { isUtf8 } from 'node:buffer';
import { mkdir } from 'node:fs/promises';
import { type Risk, standardFolders, workspaceLimits } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import { listFolderInside, notHere, plainPath, readFileInside, removeInside, writeFileInside } from '../../../kernel/safe-path.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { FileTaints } from './api.ts';
import type { Exclusive } from './file-tools/exclusive.ts';
import type { Git } from './git/git.ts';
import { isInternal } from './taint/internal-names.ts';
import { writablePath } from './file-tools/protected-paths.ts';
import type { Quota } from './quota/quota.ts';
import { createRepository } from './git/repository.ts';
import { setUp, statusOf } from './setup/set-up.ts';
import { isTemplateName, templateOf } from './setup/templates.ts';

export type WorkspaceMethods = HandlersOf<
  | `workspace.${'status' | 'readFile' | 'writeFile' | 'deleteFile' | 'listDir' | 'resetFile' | 'init'}`
  | `workspace.git.${'status' | 'log' | 'diff' | 'commit' | 'restore'}`
>;

export interface WorkspaceMethodsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly git: Git;
  readonly exclusive: Exclusive;
  readonly quota: Quota;
  readonly taints: FileTaints;
  /** Called when a file was changed. */
  readonly changed: (agent: Agent) => void;
}

const maxLogEntries = 200;

/** Handlers of `workspace.*` (json-rpc.md §4). */
export function createWorkspaceMethods(deps: WorkspaceMethodsDeps): WorkspaceMethods {
  const { agents, clock, git } = deps;

  /** Returns an agent that the caller may reach; unknown and foreign ones fail alike. An agent that calls reaches itself. */
  function reachable(agentId: string, { identity, agentCaller }: CallContext): Agent {
    const agent = agents.find(agentId);
    if (agent === undefined || identity.agents?.includes(agentId) === false || (agentCaller !== undefined && agentCaller.agentId !== agentId))
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  /** Runs a change exclusively in its workspace, then records its author. Agents use their own tools for this. */
  async function change<T>(
    method: string,
    risk: Exclude<Risk, 'read'>,
    agentId: string,
    call: CallContext,
    metadata: Readonly<Record<string, string | number | string[]>>,
    work: (agent: Agent) => Promise<T>,
  ): Promise<T> {
    const agent = reachable(agentId, call);
    if (call.agentCaller !== undefined) throw new AppError('denied', `${method} is for administrators, not for agents`);
    return deps.exclusive(agent.workspaceDir, call, async () => {
      const result = await work(agent).finally(() => deps.changed(agent));
      await recordAudit(deps, call, { actionType: method, classification: risk, target: agentId, metadata });
      return result;
    });
  }

  const repositoryOf = ({ workspaceDir }: Agent) => createRepository({ git, clock, workspaceDir, clear: () => deps.quota.clearForGit(workspaceDir) });
  /** Reading by git updates the index, so it runs exclusively too. */
  const inRepository = <T>(agent: Agent, call: CallContext, work: (repository: ReturnType<typeof repositoryOf>) => Promise<T>) =>
    deps.exclusive(`${agent.workspaceDir} git`, call, () => work(repositoryOf(agent)));

  return {
    'workspace.status': async ({ agentId }, call) => {
      const agent = reachable(agentId, call);
      return { ...(await statusOf(agent.workspaceDir, clock)), hasGitRepo: await repositoryOf(agent).exists() };
    },

    'workspace.readFile': async ({ agentId, filePath }, call) => {
      const { workspaceDir } = reachable(agentId, call);
      const path = readablePath('filePath', filePath);
      return at('filePath', async () => {
        const bytes = await readFileInside(workspaceDir, path, { maxBytes: workspaceLimits.readBytes }).catch(
          tooLarge('File exceeds 1MB read limit'),
        );
        if (bytes.includes(0) || !isUtf8(bytes)) throw new AppError('unsupported_media_type', 'The file is not UTF-8 text');
        return { content: bytes.toString(), sizeBytes: bytes.length };
      });
    },

    'workspace.writeFile': async ({ agentId, filePath, content }, call) => {
      const sizeBytes = Buffer.byteLength(content);
      return change('workspace.writeFile', 'mutate', agentId, call, { filePath, sizeBytes }, ({ workspaceDir }) =>
        at('filePath', async () => {
          const path = writablePath(filePath);
          if (sizeBytes > workspaceLimits.writeBytes)
            throw new AppError('payload_too_large', 'Content exceeds 512KB write limit', { param: 'content' });
          await deps.quota.assertCapacity(workspaceDir, { bytes: sizeBytes, files: 1 });
          await mkdir(workspaceDir, { recursive: true, mode: 0o700 });
          await writeFileInside(workspaceDir, path, content, { maxBytes: workspaceLimits.writeBytes });
          await deps.taints.mark({ agentId, workspaceDir }, path, false, content);
          return { written: true as const, sizeBytes };
        }),
      );
    },

    'workspace.deleteFile': ({ agentId, filePath }, call) =>
      change('workspace.deleteFile', 'destructive', agentId, call, { filePath }, ({ workspaceDir }) =>
        at('filePath', async () => {
          const path = writablePath(filePath);
          // Only the name of a link is removed; its target stays.
          if (!(await removeInside(workspaceDir, path))) throw notHere();
          await deps.taints.forget({ agentId, workspaceDir }, path);
          return { deleted: true as const };
        }),
      ),

    'workspace.listDir': async ({ agentId, subdir }, call) => {
      const { workspaceDir } = reachable(agentId, call);
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
      change('workspace.resetFile', 'destructive', agentId, call, { fileName }, async ({ workspaceDir }) => {
        if (!isTemplateName(fileName)) throw new AppError('invalid_params', `Not a template file: ${fileName}`, { param: 'fileName' });
        await deps.quota.assertCapacity(workspaceDir, { bytes: Buffer.byteLength(templateOf(fileName)), files: 1 });
        await mkdir(workspaceDir, { recursive: true, mode: 0o700 });
        const text = templateOf(fileName);
        await at('fileName', () => writeFileInside(workspaceDir, fileName, text, { maxBytes: workspaceLimits.writeBytes }));
        await deps.taints.mark({ agentId, workspaceDir }, fileName, false, text);
        return { reset: true as const, fileName };
      }),

    'workspace.init': ({ agentId }, call) =>
      change('workspace.init', 'mutate', agentId, call, {}, async (agent) => {
        await deps.quota.assertCapacity(agent.workspaceDir);
        await setUp(agent.workspaceDir, clock);
        try {
          await inRepository(agent, call, (repository) => repository.init());
        } catch (error) {
          if (!(error instanceof AppError && error.code === 'unavailable')) throw error;
          deps.log.warn({ agentId }, 'Setting up a workspace without a repository: the program "git" is not installed');
        }
        return { initialized: true as const, dir: agent.workspaceDir };
      }),

    'workspace.git.status': async ({ agentId }, call) =>
      inRepository(reachable(agentId, call), call, async (repository) => {
        const { branch, entries, truncated } = await repository.status();
        return {
          branch,
          clean: entries.length === 0,
          entries: entries.slice(0, workspaceLimits.statusEntries),
          truncated: truncated || entries.length > workspaceLimits.statusEntries,
        };
      }),

    'workspace.git.log': async ({ agentId, limit }, call) =>
      inRepository(reachable(agentId, call), call, async (repository) => ({
        commits: await repository.log(Math.min(maxLogEntries, Math.max(1, limit))),
      })),

    'workspace.git.diff': async ({ agentId, filePath }, call) => {
      const agent = reachable(agentId, call);
      const path = filePath === undefined ? undefined : readablePath('filePath', filePath);
      return inRepository(agent, call, async (repository) => ({ diff: await repository.diff(path) }));
    },

    'workspace.git.commit': ({ agentId, message, paths }, call) =>
      change('workspace.git.commit', 'mutate', agentId, call, paths === undefined ? {} : { paths: paths.slice(0, 20) }, async (agent) => {
        const plain = paths?.map((path, index) => readablePath(`paths.${index}`, path));
        await deps.taints.committed({ agentId, workspaceDir: agent.workspaceDir });
        return inRepository(agent, call, (repository) => repository.commit(message, plain));
      }),

    'workspace.git.restore': ({ agentId, filePath }, call) =>
      change('workspace.git.restore', 'destructive', agentId, call, { filePath }, (agent) =>
        at('filePath', async () => {
          const path = writablePath(filePath);
          await deps.quota.assertCapacity(agent.workspaceDir, { files: 1 });
          const place = { agentId, workspaceDir: agent.workspaceDir };
          // An earlier version may contain text from outside.
          if (await deps.taints.isRepositoryTainted(place)) await deps.taints.mark(place, path, true, '');
          await inRepository(agent, call, (repository) => repository.restore(path));
          return { restored: true as const };
        }),
      ),
  };
}

/** Refuses to read daemon files by name: they include results of other people's turns. */
function readablePath(param: string, text: string): string {
  try {
    const path = plainPath(text);
    if (isInternal(path)) throw notHere();
    return path;
  } catch (error) {
    throw withParam(param, error);
  }
}

async function at<T>(param: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw withParam(param, error);
  }
}

function withParam(param: string, error: unknown): unknown {
  if (!(error instanceof AppError) || error.details.param !== undefined || error.code === 'internal') return error;
  return new AppError(error.code, error.message, { ...error.details, param });
}

function tooLarge(message: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof AppError && error.code === 'payload_too_large') throw new AppError('payload_too_large', message);
    throw error;
  };
}
