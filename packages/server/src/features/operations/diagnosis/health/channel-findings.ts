import type { HealthFindingCode } from '@gatehouse/contract';
import type { HealthFacts } from './facts.ts';

interface Found {
  readonly detail: string;
  readonly count: number;
  readonly hint: string;
}

type ChannelCheck = readonly [HealthFindingCode, (facts: Pick<HealthFacts, 'transports' | 'deliveries'>) => Found | undefined];

const maxNames = 5;

/** Names a few channels: each detail is bounded. */
const listed = (names: readonly string[]) => `${names.slice(0, maxNames).join(', ')}${names.length > maxNames ? ' and others' : ''}`;

const transport = (code: HealthFindingCode, name: keyof HealthFacts['transports'], what: string, hint: (first: string) => string): ChannelCheck => [
  code,
  ({ transports }) => {
    const names = transports[name];
    const [first] = names;
    return first === undefined ? undefined : { detail: `${what}: ${listed(names)}.`, count: names.length, hint: hint(first) };
  },
];

const delivery = (code: HealthFindingCode, name: keyof HealthFacts['deliveries'], what: string, hint: string): ChannelCheck => [
  code,
  ({ deliveries }) => (deliveries[name] === 0 ? undefined : { detail: `${deliveries[name]} ${what}.`, count: deliveries[name], hint }),
];

/** What is wrong with chat platforms, and with the messages to them. */
export const channelChecks: readonly ChannelCheck[] = [
  transport('channel_down', 'down', 'Not connected', () => 'gatehouse channels list'),
  transport('channel_inbound_silent', 'silent', 'Connected, but nothing came in for days', (name) => `gatehouse channels restart ${name}`),
  transport('channel_breaker_open', 'paused', 'Sending is paused after repeated failures', (name) => `gatehouse channels deliveries ${name}`),
  delivery('delivery_dead_letters', 'dead', 'parts of messages to chats were rejected or expired', 'gatehouse channels deliveries'),
  delivery(
    'delivery_unknown',
    'unknown',
    'parts of messages to chats may not have arrived, and wait for a decision',
    'gatehouse channels deliveries --state unknown',
  ),
  delivery(
    'delivery_waiting',
    'waiting',
    'parts of messages to chats wait for 10 minutes or longer',
    'gatehouse channels deliveries --state pending',
  ),
];
