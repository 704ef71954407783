import type { TurnOrigin } from '@gatehouse/contract';

export interface Channel {
  readonly channelType: string;
  readonly channelId: string;
}

/** Turns that answer a client of the gateway. */
const ofClients = new Set<TurnOrigin>(['v1', 'rpc', 'api', 'mcp']);

/** Returns the built-in channel of a client's turn: the second part of its session key. Conversations of `/v1` are one channel. */
export function gatewayChannel(origin: TurnOrigin, sessionKey: string): Channel | undefined {
  if (!ofClients.has(origin)) return undefined;
  if (origin === 'v1') return { channelType: 'gateway', channelId: 'v1' };
  const part = sessionKey.split(':')[1] ?? origin;
  return { channelType: 'gateway', channelId: part.replaceAll(/%3A/gi, ':').replaceAll('%25', '%') };
}
