import type { AgentNotification, EventPayload, Params, ResultInput } from '@gatehouse/contract';
import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../../../kernel/app-error.ts';
import { type CallContext, isAdmin } from '../../../kernel/call-context.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { newId } from '../../../kernel/ids.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { DeliveryApi, Destination } from '../delivery/api.ts';
import type { Coordinates, FindTarget, Target } from '../outgoing/api.ts';
import type { Admission, NewNotification, NotificationRow } from './api.ts';
import { findPlaces, type Place } from './store.ts';
import { lifeMs, NotificationWatch, type WatchDeps } from './watch.ts';

export interface NotificationsDeps extends WatchDeps {
  readonly agents: Pick<AgentsApi, 'find' | 'defaultId'>;
  readonly delivery: Pick<DeliveryApi, 'partsOf' | 'wake'>;
  readonly findTarget: FindTarget;
  readonly destinationOf: (endpoint: Coordinates['endpoint']) => Destination;
  /** Whether a principal of the chats is approved. */
  readonly mayWrite: (principalId: string, chat: Destination) => Promise<boolean>;
  /** Whether the people of a direct conversation may be written to. */
  readonly mayReceive: (to: Destination) => Promise<boolean>;
  readonly isEnabled: (instance: string) => boolean;
  readonly isConnected: (instance: string) => boolean;
  readonly sendNotification: Operation<NewNotification, Admission>;
}

export interface Notifications extends Disposable {
  readonly methods: HandlersOf<'notification.send'>;
  /** Takes over what earlier runs of the daemon left. */
  start(): Promise<void>;
}

type Asked = Params<'notification.send'>;
type Answer = ResultInput<'notification.send'>;
type Suppression = EventPayload<'notification:suppressed'>['reason'];

/** Notifications of programs to the users of agents, within the policy of each agent. */
export function createNotifications(deps: NotificationsDeps): Notifications {
  const { db, bus, clock, agents, delivery, destinationOf } = deps;
  const configOf = (agentId: string): AgentNotification | undefined => agents.find(agentId)?.config.notification;
  const watch = new NotificationWatch(deps);

  /** Returns the newest one with an approved person: strangers write to open channels, and people are removed. */
  async function firstApproved(all: readonly Place[]): Promise<Place | undefined> {
    const known = new Map<string, boolean>();
    for (const place of all) {
      const { principalId } = place;
      const isApproved = known.get(principalId) ?? (await deps.mayWrite(principalId, place));
      known.set(principalId, isApproved);
      if (isApproved) return place;
    }
    return undefined;
  }

  /** Returns the conversation that is notified; undefined when there is none. */
  async function resolve(asked: Asked, named: string | undefined, call: CallContext): Promise<Target | undefined> {
    const { channel_type: type, channel_id: id, destination_endpoint: endpoint } = asked;
    const primary = type === undefined && named !== undefined ? configOf(named)?.primaryChannel : undefined;
    // The endpoint says which of several instances or threads is meant.
    if (type !== undefined && endpoint !== undefined) {
      const target = await deps.findTarget({ endpoint, channel_type: type, channel_id: id }, call);
      if (named !== undefined && target.agentId !== named) throw otherEndpoint();
      return target;
    }
    const { agentCaller, identity } = call;
    const found = await db.read(findPlaces, {
      agentIds: named === undefined ? (identity.agents ?? null) : [named],
      principalId: isAdmin(call) ? null : (agentCaller?.principalId ?? identity.principalId),
      channelType: type ?? primary?.channelType ?? null,
      conversationId: id ?? primary?.channelId ?? null,
      instance: primary?.channelInstanceId ?? null,
    });
    const isNamed = type !== undefined || primary !== undefined;
    const place = isNamed ? found[0] : await firstApproved(found);
    if (place === undefined) return undefined;
    const { agentId, principalId, conversationRef, instance, channelType, conversationId, threadId, conversationKind } = place;
    const to = { instance, channelType, conversationId, threadId, conversationKind };
    if (endpoint !== undefined && !isDeepStrictEqual(destinationOf(endpoint), to)) throw otherEndpoint();
    // Somebody who was removed is not written to, also by those who name the conversation.
    if (isNamed && conversationKind === 'direct' && !(await deps.mayReceive(to))) return undefined;
    return { to, agentId, principalId, conversationRef };
  }

  /** Returns the agent that a call is about; undefined when its conversation says so. */
  function agentOf({ agent_id: id, channel_type: type }: Asked, { identity, agentCaller }: CallContext): string | undefined {
    if (agentCaller !== undefined) return agentCaller.agentId;
    if (id === undefined && type !== undefined) return undefined;
    const meant = id ?? agents.defaultId;
    if (agents.find(meant) === undefined || identity.agents?.includes(meant) === false)
      throw new AppError('not_found', `Agent not found: ${meant}`, { param: 'agent_id' });
    return meant;
  }

  function suppress(agentId: string, { priority }: Asked, reason: Suppression, owner: string, error: string): Answer {
    bus.emit('notification:suppressed', { agentId, priority, reason, timestamp: clock.now() }, owner);
    return { success: false, error: `${reason}: ${error}` };
  }

  async function send(asked: Asked, call: CallContext): Promise<Answer> {
    if ((asked.channel_type === undefined) !== (asked.channel_id === undefined))
      throw new AppError('invalid_params', 'channel_type, channel_id: expected both or none', { param: 'channel_id' });
    const named = agentOf(asked, call);
    const refused = named === undefined ? undefined : refusalOf(named, configOf(named), asked);
    if (refused !== undefined) return refused;
    const target = await resolve(asked, named, call);
    if (target === undefined) {
      const error = 'no conversation of a person with the agent was found';
      return suppress(named ?? agents.defaultId, asked, 'no_channel', call.identity.principalId, error);
    }
    return refusalOf(target.agentId, configOf(target.agentId), asked) ?? enqueue(asked, target);
  }

  async function enqueue(asked: Asked, { to, agentId, principalId, conversationRef }: Target): Promise<Answer> {
    const config = configOf(agentId);
    if (config === undefined || !deps.isEnabled(to.instance)) throw new AppError('unavailable', `The channel ${to.instance} is disabled`);
    const { priority, message: text, origin } = asked;
    const atMs = clock.now();
    const id = newId('nt');
    const opKey = `notification:${id}`;
    const unsolicited = priority === 'critical' ? 'critical' : 'notification';
    const parts = delivery.partsOf({ opKey, to, text, lifeMs, unsolicited, agentId, principalId, conversationRef, turnId: null });
    const [first] = parts;
    if (first === undefined) throw new AppError('invalid_params', 'message: expected more than white space', { param: 'message' });
    const untilMs = first.state === 'held' ? first.notBeforeMs : null;
    if (untilMs === null && !deps.isConnected(to.instance)) throw new AppError('unavailable', `The channel ${to.instance} is not connected`);
    const { instance, channelType, conversationId } = to;
    const row: NotificationRow = {
      id,
      agentId,
      principalId,
      instance,
      channelType,
      conversationId,
      digest: hash('sha256', JSON.stringify([to, text])),
      priority,
      opKey,
      entryId: first.id,
      state: 'open',
      createdAtMs: atMs,
    };
    const { maxPerHour, dedupeWindowMs } = config;
    const admission = await db.write(deps.sendNotification, { row, parts, maxPerHour, dedupeWindowMs });
    if (admission === 'rate_limited')
      return suppress(agentId, asked, admission, principalId, `agent ${agentId} has had ${maxPerHour} notifications in the last hour`);
    if (admission === 'duplicate')
      return suppress(agentId, asked, admission, principalId, `the same text was sent within ${Math.round(dedupeWindowMs / 1000)} s`);
    const about = { agentId, priority, channelType, channelId: conversationId, entryId: first.id };
    bus.emit('notification:enqueued', { ...about, origin, notBefore: untilMs, timestamp: atMs }, principalId);
    if (untilMs !== null) bus.emit('notification:suppressed', { agentId, priority, reason: 'quiet_hours', timestamp: atMs }, principalId);
    watch.add(row);
    delivery.wake(instance);
    return { success: true, entryId: first.id };
  }

  return {
    methods: { 'notification.send': send },
    start: () => watch.start(),
    [Symbol.dispose]: () => watch[Symbol.dispose](),
  };
}

/** Returns what the policy of an agent refuses whatever the target is. */
function refusalOf(agentId: string, config: AgentNotification | undefined, { origin }: Asked): Answer | undefined {
  if (config?.enabled !== true) return { success: false, error: `disabled: agent ${agentId} takes no notifications (notification.enabled)` };
  if (origin === 'notification' && config.maxChainDepth < 1)
    return { success: false, error: `chain: agent ${agentId} takes no notification that follows from one (notification.maxChainDepth)` };
  return undefined;
}

const otherEndpoint = (): AppError =>
  new AppError('precondition_failed', 'destination_endpoint: expected the endpoint of the target, in all fields', {
    param: 'destination_endpoint',
  });
