import type { Live } from '../../../kernel/config/live.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { FileTaints, WorkspaceApi, WorkspaceCapacity } from './api.ts';
import type { WorkspacesConfig } from './config.ts';
import { createExclusive } from './file-tools/exclusive.ts';
import { createFileTaints } from './taint/file-taint.ts';
import { createGit } from './git/git.ts';
import { createWorkspaceMethods, type WorkspaceMethods } from './methods.ts';
import { createPromptFiles } from './setup/prompt-files.ts';
import { createQuota, type QuotaDeps } from './quota/quota.ts';
import { createSearch } from './search/search.ts';
import { createWorkspaceTools } from './file-tools/tools.ts';

export interface WorkspaceDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly agents: Pick<AgentsApi, 'find'>;
  /** Search path for the program `git`; the usual folders when absent. */
  readonly path: string | undefined;
  readonly hideSecrets: (text: string) => string;
  readonly config: Live<WorkspacesConfig>;
  readonly disk: QuotaDeps['disk'];
  /** Processes live in real time, whatever clock the rest uses. */
  readonly processClock: Clock;
}

export interface Workspace extends AsyncDisposable {
  readonly api: WorkspaceApi;
  readonly capacity: WorkspaceCapacity;
  readonly methods: WorkspaceMethods;
  readonly tools: readonly Tool[];
  readonly taints: FileTaints;
}

/** The folders in which agents work: methods for their owners, tools for the agents, files for the prompt. */
export function createWorkspace({ db, bus, clock, log, bootId, agents, path, hideSecrets, config, disk, processClock }: WorkspaceDeps): Workspace {
  const exclusive = createExclusive();
  const quota = createQuota({ clock: processClock, log, config, disk });
  const taints = createFileTaints({ db, clock, log, bootId });
  const promptFiles = createPromptFiles({ clock, log, hideSecrets });
  const methods = createWorkspaceMethods({
    db,
    bus,
    clock,
    log,
    agents,
    git: createGit({ clock, path }),
    exclusive,
    quota,
    taints,
    changed: promptFiles.changed,
  });
  const tools = createWorkspaceTools({
    exclusive,
    capacity: quota,
    search: createSearch(clock),
    taints,
    changed(agentId) {
      const agent = agents.find(agentId);
      if (agent !== undefined) promptFiles.changed(agent);
    },
  });
  return { api: promptFiles, capacity: quota, methods, tools, taints, [Symbol.asyncDispose]: () => quota[Symbol.asyncDispose]() };
}
