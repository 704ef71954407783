import { workspaceLimits } from '@gatehouse/contract';
import type { WorkspaceAccess } from '../access.ts';
import type { FileTaints } from '../api.ts';
import { writablePath } from '../file-tools/protected-paths.ts';
import type { WorkspaceMethods } from '../methods.ts';
import { at, readablePath } from '../parameter.ts';
import type { Quota } from '../quota/quota.ts';

interface GitMethodDeps {
  readonly access: WorkspaceAccess;
  readonly quota: Pick<Quota, 'assertCapacity'>;
  readonly taints: FileTaints;
}

const maxLogEntries = 200;

/** Creates the handlers of `workspace.git.*`. */
export function createGitMethods({
  access,
  quota,
  taints,
}: GitMethodDeps): Pick<WorkspaceMethods, `workspace.git.${'status' | 'log' | 'diff' | 'commit' | 'restore'}`> {
  return {
    'workspace.git.status': async ({ agentId }, call) =>
      access.inRepository(access.reachable(agentId, call), call, async (repository) => {
        const { branch, entries, truncated } = await repository.status();
        return {
          branch,
          clean: entries.length === 0,
          entries: entries.slice(0, workspaceLimits.statusEntries),
          truncated: truncated || entries.length > workspaceLimits.statusEntries,
        };
      }),

    'workspace.git.log': async ({ agentId, limit }, call) =>
      access.inRepository(access.reachable(agentId, call), call, async (repository) => ({
        commits: await repository.log(Math.min(maxLogEntries, Math.max(1, limit))),
      })),

    'workspace.git.diff': async ({ agentId, filePath }, call) => {
      const agent = access.reachable(agentId, call);
      const path = filePath === undefined ? undefined : readablePath('filePath', filePath);
      return access.inRepository(agent, call, async (repository) => ({ diff: await repository.diff(path) }));
    },

    'workspace.git.commit': ({ agentId, message, paths }, call) =>
      access.change(
        { method: 'workspace.git.commit', risk: 'mutate', agentId, metadata: paths === undefined ? {} : { paths: paths.slice(0, 20) } },
        call,
        async (agent) => {
          const plain = paths?.map((path, index) => readablePath(`paths.${index}`, path));
          await taints.committed({ agentId, workspaceDir: agent.workspaceDir });
          return access.inRepository(agent, call, (repository) => repository.commit(message, plain));
        },
      ),

    'workspace.git.restore': ({ agentId, filePath }, call) =>
      access.change({ method: 'workspace.git.restore', risk: 'destructive', agentId, metadata: { filePath } }, call, (agent) =>
        at('filePath', async () => {
          const path = writablePath(filePath);
          await quota.assertCapacity(agent.workspaceDir, { files: 1 });
          const place = { agentId, workspaceDir: agent.workspaceDir };
          // An earlier version may contain text from outside.
          if (await taints.isRepositoryTainted(place)) await taints.mark(place, path, true, '');
          await access.inRepository(agent, call, (repository) => repository.restore(path));
          return { restored: true as const };
        }),
      ),
  };
}
