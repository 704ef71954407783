import type { ReceivedMessage } from '../../../channels/port.ts';
import type { InstanceConfig } from '../instances/api.ts';
import type { ChannelVerdict } from '@gatehouse/contract';
import { commandIn } from './commands.ts';
import type { PairingRow } from './store.ts';

/** Whose words they are: the operator's own, those of an approved person, or of anybody. */
export type Trust = 'owner' | 'member' | 'guest';

export type Judgement =
  | { readonly is: 'turn'; readonly trust: Trust }
  /** `unmentioned` is only counted. */
  | { readonly is: Exclude<ChannelVerdict, 'turn' | 'suspended' | 'full'> | 'unmentioned' };

const isDecision = (text: string): boolean => ['approve', 'deny'].includes(commandIn(text)?.name ?? '');

/** Decides who is answered (docs/decisions/0071), by the configuration and the stored pairing alone. */
export function judge(
  message: Pick<ReceivedMessage, 'senderId' | 'conversationKind' | 'isBot' | 'isForwarded' | 'isUnverified' | 'mentionsUs' | 'text'>,
  config: InstanceConfig,
  pairing: PairingRow | undefined,
): Judgement {
  const { senderId, conversationKind, isBot, isUnverified = false, mentionsUs } = message;
  if (isBot) return { is: 'bot' };
  if (isUnverified) return { is: 'not_allowed' };
  const isOwner = config.owners.includes(senderId);
  if (conversationKind === 'shared') {
    if (config.groups.policy === 'disabled') return { is: 'disabled' };
    // A decision names what it is about.
    if (config.groups.requireMention && !mentionsUs && (message.isForwarded === true || !isDecision(message.text))) return { is: 'unmentioned' };
    return { is: 'turn', trust: isOwner ? 'owner' : 'guest' };
  }
  if (isOwner) return { is: 'turn', trust: 'owner' };
  const { policy, allowFrom } = config.dm;
  if (policy === 'disabled') return { is: 'disabled' };
  if (allowFrom.includes(senderId) || (pairing !== undefined && pairing.principalId !== null)) return { is: 'turn', trust: 'member' };
  if (policy === 'open') return { is: 'turn', trust: 'guest' };
  return { is: policy === 'pairing' ? 'pairing' : 'not_allowed' };
}
