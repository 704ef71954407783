import type { Risk } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { Exclusive } from './file-tools/exclusive.ts';
import type { Git } from './git/git.ts';
import { Repository } from './git/repository.ts';
import type { Quota } from './quota/quota.ts';

export interface AccessDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly git: Git;
  readonly exclusive: Exclusive;
  readonly quota: Pick<Quota, 'clearForGit'>;
  /** Called when a file was changed. */
  readonly changed: (agent: Agent) => void;
}

export interface Change {
  /** The method, as it is audited. */
  readonly method: string;
  readonly risk: Exclude<Risk, 'read'>;
  readonly agentId: string;
  readonly metadata?: Readonly<Record<string, string | number | string[]>>;
}

/** Controls access to workspaces: who may reach which, and one change at a time. */
export class WorkspaceAccess {
  readonly #deps: AccessDeps;

  constructor(deps: AccessDeps) {
    this.#deps = deps;
  }

  /** Returns an agent that the caller may reach; unknown and foreign ones fail alike. An agent that calls reaches itself. */
  reachable(agentId: string, { identity, agentCaller }: CallContext): Agent {
    const agent = this.#deps.agents.find(agentId);
    if (agent === undefined || identity.agents?.includes(agentId) === false || (agentCaller !== undefined && agentCaller.agentId !== agentId))
      throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  /** Runs a change exclusively in its workspace, then records its author. Agents use their own tools for this. */
  async change<T>({ method, risk, agentId, metadata = {} }: Change, call: CallContext, work: (agent: Agent) => Promise<T>): Promise<T> {
    const agent = this.reachable(agentId, call);
    if (call.agentCaller !== undefined) throw new AppError('denied', `${method} is for administrators, not for agents`);
    return this.#deps.exclusive(agent.workspaceDir, call, async () => {
      const result = await work(agent).finally(() => this.#deps.changed(agent));
      await recordAudit(this.#deps, call, { actionType: method, classification: risk, target: agentId, metadata });
      return result;
    });
  }

  repositoryOf({ workspaceDir }: Agent): Repository {
    const { git, clock, quota } = this.#deps;
    return new Repository({ git, clock, workspaceDir, clear: () => quota.clearForGit(workspaceDir) });
  }

  /** Reading by git updates the index, so it runs exclusively too. */
  inRepository<T>(agent: Agent, call: CallContext, work: (repository: Repository) => Promise<T>): Promise<T> {
    return this.#deps.exclusive(`${agent.workspaceDir} git`, call, () => work(this.repositoryOf(agent)));
  }
}
