import type { ChannelVerdict } from '@gatehouse/contract';
import type { ReceivedMessage } from '../../../channels/port.ts';
import type { InstanceConfig } from '../instances/api.ts';
import { rulesOf } from '../../../channels/people.ts';
import { commandIn } from './commands.ts';
import type { PairingRow } from './store.ts';

/** Whose words they are: the operator's own, those of an approved person, or of anybody. */
export type Trust = 'owner' | 'member' | 'guest';

export type Judgement =
  | { readonly is: 'turn'; readonly trust: Trust }
  /** `unmentioned` is only counted. */
  | { readonly is: Exclude<ChannelVerdict, 'turn' | 'suspended' | 'full'> | 'unmentioned' };

type Judged = Pick<
  ReceivedMessage,
  'senderId' | 'conversationId' | 'conversationKind' | 'isBot' | 'isForwarded' | 'isUnverified' | 'mentionsUs' | 'text'
>;

/** What is stored about the sender and the place of a message. */
export interface Known {
  readonly pairing?: PairingRow | undefined;
  /** The agent was asked in the thread before. */
  readonly isJoined?: boolean;
  /** Messages of bots that were answered since the last one of a person. */
  readonly botTurns?: number;
}

const isDecision = (text: string): boolean => ['approve', 'deny'].includes(commandIn(text)?.name ?? '');

/** Decides who is answered (docs/decisions/0071), by the configuration and what is stored alone. */
export function judge(message: Judged, config: InstanceConfig, known: Known): Judgement {
  const { conversationKind, isBot, isUnverified = false, mentionsUs } = message;
  if (isBot && config.bots === 'off') return { is: 'bot' };
  if (isUnverified) return { is: 'not_allowed' };
  if (isBot && config.bots === 'mentions' && !mentionsUs) return { is: 'unmentioned' };
  const judgement = conversationKind === 'shared' ? judgeShared(message, config, known) : judgeDirect(message, config, known);
  if (!isBot || judgement.is !== 'turn') return judgement;
  // Whatever a bot is called: nobody vouches for its words.
  return (known.botTurns ?? 0) < config.maxBotExchanges ? { is: 'turn', trust: 'guest' } : { is: 'bot_limit' };
}

function judgeShared(message: Judged, config: InstanceConfig, { isJoined = false }: Known): Judgement {
  const { senderId, conversationId, isBot, isForwarded = false, mentionsUs, text } = message;
  const { isOpen, requireMention, allowFrom } = rulesOf(config, conversationId);
  // What is not meant for the agent is not kept.
  if (!isOpen) return { is: mentionsUs ? 'disabled' : 'unmentioned' };
  // A decision names what it is about.
  const isForUs = mentionsUs || !requireMention || isJoined || (!isForwarded && !isBot && isDecision(text));
  if (!isForUs) return { is: 'unmentioned' };
  if (config.owners.includes(senderId)) return { is: 'turn', trust: 'owner' };
  if (allowFrom?.includes(senderId) === false) return { is: mentionsUs ? 'not_allowed' : 'unmentioned' };
  return { is: 'turn', trust: 'guest' };
}

function judgeDirect({ senderId, isBot }: Judged, { owners, dm: { policy, allowFrom } }: InstanceConfig, { pairing }: Known): Judgement {
  if (owners.includes(senderId)) return { is: 'turn', trust: 'owner' };
  if (policy === 'disabled') return { is: 'disabled' };
  if (allowFrom.includes(senderId) || (pairing !== undefined && pairing.principalId !== null)) return { is: 'turn', trust: 'member' };
  if (policy === 'open') return { is: 'turn', trust: 'guest' };
  // A bot would answer the code.
  if (isBot) return { is: 'bot' };
  return { is: policy === 'pairing' ? 'pairing' : 'not_allowed' };
}
