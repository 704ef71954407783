import { AppError } from '../../../kernel/app-error.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Log } from '../../../kernel/log.ts';
import { type AccessDeps, WorkspaceAccess } from './access.ts';
import type { FileTaints } from './api.ts';
import { createFileMethods } from './file-methods.ts';
import { createGitMethods } from './git/methods.ts';
import type { Quota } from './quota/quota.ts';
import { setUp, statusOf } from './setup/set-up.ts';

export type WorkspaceMethods = HandlersOf<
  | `workspace.${'status' | 'readFile' | 'readBytes' | 'writeFile' | 'deleteFile' | 'listDir' | 'resetFile' | 'init'}`
  | `workspace.git.${'status' | 'log' | 'diff' | 'commit' | 'restore'}`
>;

export interface WorkspaceMethodsDeps extends AccessDeps {
  readonly log: Log;
  readonly quota: Quota;
  readonly taints: FileTaints;
}

/** Handlers of `workspace.*` (json-rpc.md §4). */
export function createWorkspaceMethods(deps: WorkspaceMethodsDeps): WorkspaceMethods {
  const { clock, quota, taints } = deps;
  const access = new WorkspaceAccess(deps);
  return {
    'workspace.status': async ({ agentId }, call) => {
      const agent = access.reachable(agentId, call);
      return { ...(await statusOf(agent.workspaceDir, clock)), hasGitRepo: await access.repositoryOf(agent).exists() };
    },

    'workspace.init': ({ agentId }, call) =>
      access.change({ method: 'workspace.init', risk: 'mutate', agentId }, call, async (agent) => {
        await quota.assertCapacity(agent.workspaceDir);
        await setUp(agent.workspaceDir, clock);
        try {
          await access.inRepository(agent, call, (repository) => repository.init());
        } catch (error) {
          if (!(error instanceof AppError && error.code === 'unavailable')) throw error;
          deps.log.warn({ agentId }, 'Setting up a workspace without a repository: the program "git" is not installed');
        }
        return { initialized: true as const, dir: agent.workspaceDir };
      }),

    ...createFileMethods({ access, quota, taints }),
    ...createGitMethods({ access, quota, taints }),
  };
}
