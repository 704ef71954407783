import type { ReceivedMessage } from '../port.ts';
import { type Line, parseSource } from './line.ts';

interface Us {
  readonly nick: string;
  readonly fold: (name: string) => string;
  readonly nowMs: number;
}

/** Returns what somebody said; undefined for what is not for people. */
export function messageOf({ params, source, tags }: Line, { nick: us, fold, nowMs }: Us): ReceivedMessage | undefined {
  const [target = '', said = ''] = params;
  const { nick, user, host } = parseSource(source);
  const text = textOf(said, nick);
  if (text === undefined) return undefined;
  const isDirect = fold(target) === fold(us);
  const account = tags.get('account');
  const mention = mentionOf(text, us);
  const sentAtMs = Date.parse(tags.get('time') ?? '');
  return {
    eventKey: tags.get('msgid'),
    conversationId: isDirect ? nick : fold(target),
    conversationKind: isDirect ? 'direct' : 'shared',
    senderId: account === undefined || account === '*' ? fold(`${nick}!${user}@${host}`) : `account:${fold(account)}`,
    senderName: nick,
    isBot: tags.has('bot'),
    text: mention.text,
    mentionsUs: mention.isMentioned,
    sentAtMs: Number.isNaN(sentAtMs) ? nowMs : sentAtMs,
  };
}

/** Returns what a message says: an action becomes text, every other request of a client to a client (CTCP) is ignored. */
function textOf(said: string, nick: string): string | undefined {
  if (!said.startsWith('\x01')) return said;
  const action = /^\x01ACTION ([^\x01]*)\x01?$/.exec(said)?.[1];
  return action === undefined ? undefined : `* ${nick} ${action}`;
}

/** Returns whether a text names us, and the text without our name at its beginning. */
function mentionOf(text: string, nick: string): { readonly isMentioned: boolean; readonly text: string } {
  const name = RegExp.escape(nick);
  const addressed = new RegExp(`^@?${name}(?:[:,]\\s*|\\s+|$)`, 'iu').exec(text);
  if (addressed !== null) return { isMentioned: true, text: text.slice(addressed[0].length) };
  const edge = '[^\\p{L}\\p{M}\\p{N}_-]';
  return { isMentioned: new RegExp(`(?:^|${edge})@?${name}(?:$|${edge})`, 'iu').test(text), text };
}
