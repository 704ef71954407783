import { allows, type EventKind, events } from '@gatehouse/contract';
import type { Identity } from '../../../kernel/call-context.ts';
import type { EventDigestQuery, EventsApi } from './api.ts';

/** The rule of decisions §4, as a predicate that is created once per reader and called once per event. */
export function viewOf(identity: Identity): ReturnType<EventsApi['viewOf']> {
  const admin = allows(identity.scopes, 'admin');
  const agents = identity.agents === undefined ? undefined : new Set(identity.agents);
  return ({ kind, owner, agentId }) => {
    const { visibility } = events[kind];
    // A token limited to agents sees events without an agent only if they concern nobody.
    if (agents !== undefined && !(agentId === undefined ? visibility === 'system' : agents.has(agentId))) return false;
    return admin || visibility === 'system' || (visibility === 'owner' && owner === identity.principalId);
  };
}

/** Returns the filter of stored events that a caller may see, by the same rule. */
export function digestFor(identity: Identity, kinds: readonly EventKind[]): Pick<EventDigestQuery, 'kinds' | 'owner' | 'agentIds'> {
  const admin = allows(identity.scopes, 'admin');
  const visible = kinds.filter((kind) => admin || events[kind].visibility !== 'admin');
  return {
    kinds: Object.fromEntries(visible.map((kind) => [kind, { category: kind, isPublic: events[kind].visibility === 'system' }])),
    owner: admin ? null : identity.principalId,
    agentIds: identity.agents ?? null,
  };
}
