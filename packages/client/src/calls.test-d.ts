import type { Result } from '@gatehouse/contract';
import { expectTypeOf } from 'vitest';
import type { Client } from './client.ts';

declare function takeText(text: string): void;

/** Compiled by the type check, never run: each line below `@ts-expect-error` must be an error. */
export async function checkTypes(client: Client): Promise<void> {
  // Methods and their parameters.
  await client.call('system.ping');
  await client.call('agents.get', { agentId: 'default' });
  // An absent optional parameter may be undefined.
  await client.call('session.list', { limit: 10, agentId: undefined });
  // @ts-expect-error an unknown method
  await client.call('agents.fetch', { agentId: 'default' });
  // @ts-expect-error a missing parameter
  await client.call('agents.get', {});
  // @ts-expect-error no parameters where one is required
  await client.call('agents.get');
  // @ts-expect-error an unknown parameter
  await client.call('agents.get', { agentId: 'default', agent: 'default' });
  // @ts-expect-error a parameter of another type
  await client.call('session.list', { limit: '10' });
  // @ts-expect-error a value that is not in the list
  await client.call('session.list', { kind: 'everything' });

  // Results.
  const pong = await client.call('system.ping');
  expectTypeOf(pong).toEqualTypeOf<Result<'system.ping'>>();
  expectTypeOf(pong.ts).toEqualTypeOf<number>();
  // @ts-expect-error a field that the result does not have
  void pong.pung;
  // @ts-expect-error a field of another type
  takeText(pong.ts);

  // Batches: each outcome has the type of the call in its place.
  const [agents, status] = await client.batch([{ method: 'agents.list' }, { method: 'cron.status', params: { agentId: 'default' } }]);
  if (agents.ok) expectTypeOf(agents.result).toEqualTypeOf<Result<'agents.list'>>();
  if (status.ok) expectTypeOf(status.result).toEqualTypeOf<Result<'cron.status'>>();
  // @ts-expect-error the result of a call that may have failed
  void agents.result;
  // @ts-expect-error an unknown parameter
  await client.batch([{ method: 'cron.status', params: { agent: 'default' } }]);

  // Events: the payload has the type of its kind.
  for await (const event of client.events({ kinds: ['agent:hot_added'] })) {
    if (event.kind === 'agent:hot_added') expectTypeOf(event.payload.agentId).toEqualTypeOf<string>();
    // @ts-expect-error a payload before its kind is known
    void event.payload.agentId;
  }
  // @ts-expect-error an unknown kind
  client.events({ kinds: ['agent:added'] });
}
