import type { TurnOrigin } from '@gatehouse/contract';

export interface Channel {
  readonly channelType: string;
  readonly channelId: string;
}

/** Turns that answer a client of the gateway. */
const ofClients = new Set<TurnOrigin>(['v1', 'rpc', 'api', 'mcp']);

/** Returns the channel of a turn: the second part of its session key. Conversations of `/v1` are one channel. */
export function channelOf(origin: TurnOrigin, sessionKey: string): Channel | undefined {
  if (origin === 'channel') {
    const [channelType = '', ...instance] = (sessionKey.split(':')[1] ?? '').split('.');
    return { channelType, channelId: instance.join('.') };
  }
  if (!ofClients.has(origin)) return undefined;
  if (origin === 'v1') return { channelType: 'gateway', channelId: 'v1' };
  const part = sessionKey.split(':')[1] ?? origin;
  return { channelType: 'gateway', channelId: part.includes('%') ? part.replaceAll(/%3A/gi, ':').replaceAll('%25', '%') : part };
}
