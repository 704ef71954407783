import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Agent, AgentsApi, ConfigureAgent } from '../../agents/agents/api.ts';
import type { Admission, Admitted, Refused } from './api.ts';
import type { HeartbeatConfig } from './config.ts';
import type { HeartbeatStateRow } from './store.ts';
import { countEvents } from './store.ts';

export type HeartbeatMethods = HandlersOf<`heartbeat.${'states' | 'get' | 'update' | 'trigger'}` | 'scheduler.wake'>;

export interface HeartbeatMethodDeps {
  readonly db: Db;
  readonly agents: AgentsApi;
  readonly configure: ConfigureAgent;
  readonly knowsModel: (name: string) => boolean;
  readonly settingsOf: (agent: Agent) => HeartbeatConfig;
  readonly stateOf: (agentId: string) => HeartbeatStateRow;
  readonly dueOf: (agentId: string) => number | null;
  /** Returns the end of the backoff after an error; null when there is none. */
  readonly backoffUntil: (agentId: string) => number | null;
  /** Returns when the running beat started. */
  readonly runningSince: (agentId: string) => number | null;
  readonly wake: (agentId: string, reason: 'manual' | 'wake') => Admission;
  readonly wakeMonitoring: () => Admission;
}

const codes: Readonly<Record<Refused['refusal'], 'not_found' | 'precondition_failed' | 'unavailable'>> = {
  unknown_agent: 'not_found',
  disabled: 'precondition_failed',
  suspended: 'precondition_failed',
  stopped: 'precondition_failed',
  closing: 'unavailable',
  full: 'unavailable',
};

/** Implements `heartbeat.*` and `scheduler.wake` (json-rpc.md §4). */
export function createHeartbeatMethods(deps: HeartbeatMethodDeps): HeartbeatMethods {
  const isVisible = (agent: Agent, call: CallContext) => call.identity.agents?.includes(agent.id) ?? true;

  function visible(agentId: string, call: CallContext): Agent {
    const agent = deps.agents.find(agentId);
    if (agent === undefined || !isVisible(agent, call)) throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
    return agent;
  }

  return {
    'heartbeat.states': async (_params, call) => {
      const queued = new Map((await deps.db.read(countEvents, {})).map(({ agentId, count }) => [agentId, count]));
      const agents = deps.agents.list().filter((agent) => isVisible(agent, call));
      return {
        agents: agents.map((agent) => {
          const { enabled, intervalMs } = deps.settingsOf(agent);
          const { lastRunAtMs, consecutiveErrors, lastAlertAtMs, lastErrorKind, stoppedBy } = deps.stateOf(agent.id);
          return {
            agentId: agent.id,
            enabled,
            intervalMs,
            lastRunAtMs,
            nextDueAtMs: deps.dueOf(agent.id),
            tickStartedAtMs: deps.runningSince(agent.id),
            consecutiveErrors,
            backoffUntilMs: deps.backoffUntil(agent.id),
            lastAlertAtMs,
            lastErrorKind,
            stoppedBy,
            queuedEvents: queued.get(agent.id) ?? 0,
          };
        }),
      };
    },

    'heartbeat.get': async ({ agentId }, call) => {
      const agent = visible(agentId, call);
      return { agentId, perAgent: agent.config.heartbeat, effective: deps.settingsOf(agent) };
    },

    'heartbeat.update': async ({ agentId, ...fields }, call) => {
      visible(agentId, call);
      if (typeof fields.model === 'string' && !deps.knowsModel(fields.model)) {
        const issue = { path: 'model', message: `no configured provider has a model "${fields.model}"` };
        throw new AppError('invalid_params', `${issue.path}: ${issue.message}`, { param: issue.path, issues: [issue] });
      }
      // Hours are replaced as a whole: an absent time zone must not be taken from the previous hours.
      const hours = fields.activeHours && { activeHours: { timeZone: null, ...fields.activeHours } };
      const patch = { heartbeat: { ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)), ...hours } };
      const agent = await deps.configure({ agentId, patch, action: 'heartbeat.update' }, call);
      return { agentId, config: agent.config.heartbeat, updated: true as const, nextDueAtMs: deps.dueOf(agentId) };
    },

    'heartbeat.trigger': async ({ agentId }, call) => {
      visible(agentId, call);
      return { agentId, triggered: true as const, admission: admitted(deps.wake(agentId, 'manual')) };
    },

    'scheduler.wake': async ({ target, agentId }, call) => {
      if (target === 'agent') return admitted(deps.wake(deps.agents.usable(agentId, call).id, 'wake'));
      if (agentId !== undefined)
        throw new AppError('invalid_params', 'agentId: expected none with the target monitoring', {
          param: 'agentId',
          issues: [{ path: 'agentId', message: 'expected none with the target monitoring' }],
        });
      if (call.identity.agents !== undefined)
        throw new AppError('denied', 'A token limited to some agents cannot wake the check of all agents', { param: 'target' });
      return admitted(deps.wakeMonitoring());
    },
  };
}

function admitted(admission: Admission): Admitted {
  if (admission.status !== 'refused') return admission;
  throw new AppError(codes[admission.refusal], admission.message, { param: 'agentId' });
}
