import type { CronJobPayload, CronPolicies, CronSchedule, CronScheduleRequest } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { WorkAuthority } from '../../../access/tokens/api.ts';
import type { EndpointsApi } from '../../../channels/delivery/api.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import { normaliseSchedule } from '../schedule/schedule.ts';

export interface InputDeps {
  readonly defaultTimezone: string;
  readonly tenantId: string;
  readonly knowsModel: (name: string) => boolean;
  readonly endpoints: Pick<EndpointsApi, 'check'>;
  readonly authority: Pick<WorkAuthority, 'assertCovers'>;
  /** Returns the conversation reference for a principal and a printed key; undefined when the key is not canonical. */
  readonly refOf: (agentId: string, principalId: string, sessionKey: string) => string | undefined;
}

export function wrong(param: string, message: string): AppError {
  return new AppError('invalid_params', `${param}: ${message}`, { param, issues: [{ path: param, message }] });
}

/** Returns the schedule to store; throws `invalid_params` with the field. */
export function checkSchedule(request: CronScheduleRequest, nowMs: number, { defaultTimezone }: InputDeps): CronSchedule {
  const normalised = normaliseSchedule(request, { nowMs, defaultZone: defaultTimezone });
  if ('schedule' in normalised) return normalised.schedule;
  const { code, path, message } = normalised.error;
  throw new AppError('invalid_params', message, { param: path, issues: [{ path, message: `${code}: ${message}` }] });
}

const turnOnly = ['wakeGate', 'sessionPolicy', 'toolPolicy', 'cacheRetention'] as const;

/** Returns the policies that remain when the payload changes its kind: turn-only fields are dropped. */
export function policiesFor(kind: CronJobPayload['kind'], policies: CronPolicies): CronPolicies {
  if (kind === 'agent_turn') return policies;
  const { wakeGate: _gate, sessionPolicy: _session, toolPolicy: _tools, cacheRetention: _cache, ...rest } = policies;
  return rest;
}

/** Checks the fields of a job against one another and against what exists. */
export async function checkJob(
  { agentId, payload, policies }: { readonly agentId: string; readonly payload: CronJobPayload; readonly policies: CronPolicies },
  call: CallContext,
  deps: InputDeps,
  /** A chat that the job had before is checked again when something is delivered. */
  isNewTarget = true,
): Promise<void> {
  const misplaced = turnOnly.find((field) => policies[field] !== undefined && payload.kind !== 'agent_turn');
  if (misplaced !== undefined) throw wrong(misplaced, 'belongs to a payload of kind agent_turn');
  if (payload.kind === 'agent_turn' && payload.model !== undefined && !deps.knowsModel(payload.model))
    throw wrong('payload.model', `no configured provider has a model "${payload.model}"`);
  const hasTarget = policies.deliveryTarget !== undefined;
  if (policies.continuationMode === 'origin_history' && !hasTarget) throw wrong('continuationMode', 'origin_history needs a deliveryTarget');
  if (payload.kind === 'heartbeat_event' && hasTarget) throw wrong('deliveryTarget', 'a heartbeat_event is delivered only to the agent');
  const endpoint = checkTarget(agentId, policies.deliveryTarget, call, deps);
  if (endpoint !== undefined && isNewTarget) await deps.endpoints.check(endpoint, call, endpointAt);
}

type Endpoint = NonNullable<CronPolicies['deliveryTarget']>['destinationEndpoint'];

/** Returns the endpoint when it is a chat. */
function checkTarget(
  agentId: string,
  target: CronPolicies['deliveryTarget'],
  call: CallContext,
  { tenantId, refOf }: InputDeps,
): Endpoint | undefined {
  if (target === undefined) return undefined;
  const { conversationScope: scope, conversationRef } = target.conversation;
  const at = 'deliveryTarget.conversation.conversationScope';
  if (scope.tenantId !== tenantId) throw wrong(`${at}.tenantId`, `expected "${tenantId}"`);
  if (scope.agentId !== agentId) throw wrong(`${at}.agentId`, `expected the agent of the job, "${agentId}"`);
  const { principalId, sessionKey } = scope.partition;
  if (refOf(agentId, principalId, sessionKey) !== conversationRef)
    throw wrong('deliveryTarget.conversation.conversationRef', 'expected the digest of conversationScope');
  // Answers the same whether or not the conversation exists.
  if (!isAdmin(call) && principalId !== ownerOf(call))
    throw new AppError('not_found', 'Conversation not found', { param: 'deliveryTarget.conversation.conversationRef' });
  const { destinationEndpoint: endpoint } = target;
  if (endpoint.channelType !== 'gateway') return endpoint;
  checkBuiltIn(conversationRef, endpoint);
  return undefined;
}

const endpointAt = 'deliveryTarget.destinationEndpoint';

function checkBuiltIn(conversationRef: string, endpoint: Endpoint): void {
  const at = endpointAt;
  if (endpoint.channelInstanceId !== 'gateway') throw wrong(`${at}.channelInstanceId`, 'expected "gateway"');
  if (endpoint.conversationId !== 'inbox' && endpoint.conversationId !== conversationRef)
    throw wrong(`${at}.conversationId`, 'expected "inbox" or the conversationRef');
  if (endpoint.threadId !== undefined) throw wrong(`${at}.threadId`, 'the channel gateway has no threads');
  if (endpoint.conversationKind !== 'direct') throw wrong(`${at}.conversationKind`, 'expected "direct"');
}
