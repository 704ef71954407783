import { type ActionPlatform, actionsByPlatform, actionsOf, type PlatformAction } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Core } from '../../../kernel/core.ts';
import type { Handlers, HandlersOf } from '../../../kernel/handlers.ts';
import type { Act, Adapter } from '../../../channels/port.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { AutonomyApi } from '../../delegation/autonomy/api.ts';
import type { OpenedPlatform } from '../instances/api.ts';
import type { Coordinates, FindTarget, Target } from '../outgoing/api.ts';

export interface PlatformActionsDeps extends Pick<Core, 'db' | 'bus' | 'clock'> {
  readonly findTarget: FindTarget;
  readonly agents: Pick<AgentsApi, 'usable'>;
  readonly autonomy: Pick<AutonomyApi, 'admit'>;
  readonly acts: {
    platformOf(to: Target['to']): OpenedPlatform;
    notOffered(method: string, to: Target['to'], what: string): AppError;
    run<Value>(adapter: Adapter, call: CallContext, ask: (options: { readonly signal: AbortSignal }) => Promise<Act<Value>>): Promise<Act<Value>>;
  };
  readonly valueOf: <Value>(act: Act<Value>) => Value;
}

export interface AskedAction {
  readonly action: string;
  readonly endpoint: Coordinates['endpoint'];
  /** Parameters as the caller gave them. */
  readonly params: Readonly<Record<string, unknown>>;
}

export type RunAction = (platform: string, asked: AskedAction, call: CallContext) => Promise<Readonly<Record<string, unknown>>>;
type ActionMethods = HandlersOf<`${ActionPlatform}.action`>;

/** Parameters that name the conversation itself, whatever the platform. */
const conversationParams = ['chat_id', 'group_jid', 'room_id'] as const;

/** Actions that only one platform has, on the conversation of an endpoint; their rows are data of the contract. */
export function createPlatformActions(deps: PlatformActionsDeps): { readonly methods: ActionMethods; readonly run: RunAction } {
  const { findTarget, acts } = deps;

  const run: RunAction = async (platform, { action, endpoint, params }, call) => {
    const method = `${platform}.action`;
    const row = rowOf(platform, action);
    if (endpoint.channelType !== platform)
      throw new AppError('precondition_failed', `${method}: expected an endpoint whose channelType is ${platform}`, { param: 'endpoint' });
    const target = await findTarget({ endpoint }, call);
    const { to, agentId } = target;
    const { agentCaller } = call;
    if (agentCaller !== undefined && row.risk !== 'read') deps.autonomy.admit('orch:message', deps.agents.usable(agentCaller.agentId, call), call);
    const given = parsed(row, params);
    assertConversation(given, target);
    const { adapter, platform: opened } = acts.platformOf(to);
    if (adapter.action === undefined || !opened.capabilities.actions.includes(action)) throw acts.notOffered(method, to, `the action ${action}`);
    if (row.risk !== 'read')
      await recordAudit(deps, call, {
        actionType: method,
        classification: row.risk,
        target: to.instance,
        metadata: { action, agentId, conversationId: to.conversationId },
      });
    const place = { conversationId: to.conversationId, threadId: to.threadId ?? undefined };
    const act = await acts.run(adapter, call, async (options) => adapter.action?.(action, given, place, options) ?? notThere);
    const result = row.result().safeParse(deps.valueOf(act));
    if (!result.success)
      throw new AppError('unavailable', `${method}: the platform answered with something else than expected`, { cause: result.error });
    return result.data;
  };

  const handlerOf =
    (platform: string): Handlers[`${ActionPlatform}.action`] =>
    ({ action, endpoint, ...params }, call) =>
      run(platform, { action, endpoint, params }, call);
  const methods = Object.fromEntries(Object.keys(actionsByPlatform).map((platform) => [`${platform}.action`, handlerOf(platform)]));
  // Each platform of the contract has its method.
  return { methods: methods as ActionMethods, run };
}

const notThere: Act<Readonly<Record<string, unknown>>> = { is: 'failed', kind: 'unavailable', text: 'The channel has no actions' };

function rowOf(platform: string, action: string): PlatformAction {
  const actions = actionsOf(platform);
  const row = Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (row !== undefined) return row;
  const known = Object.keys(actions).join(', ');
  throw new AppError('invalid_params', `action: expected one of ${known}`, {
    param: 'action',
    issues: [{ path: 'action', message: `expected one of ${known}` }],
  });
}

/** Parses the parameters with the defaults of their row. */
function parsed(row: PlatformAction, params: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const checked = row.params().safeParse(params);
  if (checked.success) return checked.data;
  const issues = checked.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }));
  throw new AppError('invalid_params', issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('; '), { issues });
}

/** An id that names another conversation than the endpoint would be a way around the check of the endpoint. */
function assertConversation(params: Readonly<Record<string, unknown>>, { to }: Target): void {
  for (const param of conversationParams) {
    const value = params[param];
    if (value !== undefined && String(value) !== to.conversationId)
      throw new AppError('precondition_failed', `${param}: expected that of the endpoint`, { param });
  }
}
