import { hash } from 'node:crypto';
import { newId } from '../../../../kernel/ids.ts';
import type { ConversationTarget } from '../../../conversations/sessions/api.ts';
import type { Destination, EndpointsApi } from '../../../channels/delivery/api.ts';
import type { InboxMessage } from '../../inbox/api.ts';
import type { HeartbeatConfig } from '../config.ts';
import { type Alert, isStopping } from './health.ts';
import type { BeatResult } from './result.ts';

/** Returns the messages for the inbox about a beat. */
export function messagesOf(
  { id, target }: { readonly id: string; readonly target: ConversationTarget },
  { result, alert, atMs }: { readonly result: BeatResult; readonly alert: Alert | undefined; readonly atMs: number },
  settings: Pick<HeartbeatConfig, 'showAlerts' | 'showOk' | 'target'>,
  address: EndpointsApi['address'],
): InboxMessage[] {
  const { ref, principalId, agentId } = target;
  const message = (level: InboxMessage['level'], text: string): InboxMessage => ({
    id: newId('in'),
    opKey: `heartbeat:${id}:${level}`,
    digest: hash('sha256', `${agentId}\n${text}`, 'base64url'),
    source: 'heartbeat',
    agentId,
    conversationRef: ref,
    principalId,
    level,
    text,
    atMs,
  });
  if (result.kind === 'failed') {
    if (alert === undefined || !settings.showAlerts) return [];
    return [message('alert', alertText(agentId, alert))];
  }
  const report = (text: string): InboxMessage => {
    const chat = settings.target;
    return chat === undefined ? message('info', text) : address(message('info', text), destinationOf(chat));
  };
  if (result.kind === 'ok') return settings.showOk ? [report(result.text === '' ? 'Nothing to report.' : result.text)] : [];
  return settings.showAlerts ? [report(result.text)] : [];
}

const destinationOf = ({
  channelInstanceId: instance,
  channelType,
  conversationId,
  threadId,
  conversationKind,
}: NonNullable<HeartbeatConfig['target']>): Destination => ({ instance, channelType, conversationId, threadId: threadId ?? null, conversationKind });

function alertText(agentId: string, { reason, consecutiveErrors, backoffMs, owesEvents }: Alert): string {
  const what = `The heartbeat of agent ${agentId} failed (${reason}${consecutiveErrors > 1 ? `, ${consecutiveErrors} consecutive failures` : ''}).`;
  const retry = `retried in ${backoffMs < 60_000 ? `${Math.ceil(backoffMs / 1000)} s` : `${Math.ceil(backoffMs / 60_000)} min`} at the earliest.`;
  if (!isStopping(reason)) return `${what} It will be ${retry}`;
  const stopped = `${what} It is stopped until it is triggered manually, the configuration changes or the provider answers again.`;
  return owesEvents ? `${stopped} Its queued events will be ${retry}` : stopped;
}
