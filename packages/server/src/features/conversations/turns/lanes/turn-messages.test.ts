import { expect, test } from 'vitest';
import { TurnMessages } from './turn-messages.ts';

const never = new AbortController().signal;

test('what waits is taken together, in order, without what was withdrawn', async () => {
  const messages = new TurnMessages();
  const withdrawn = new AbortController();
  const unwanted = messages.offer('Never mind', withdrawn.signal);
  const offered = [messages.offer('One', never), messages.offer('Two', never)];
  withdrawn.abort();
  await expect(unwanted).rejects.toMatchObject({ code: 'cancelled' });
  expect(messages.take()).toEqual({ ids: [], text: 'One\n\nTwo' });
  await Promise.all(offered);
  expect(messages.take()).toBeUndefined();
});

test('at most ten wait, and the end of the turn refuses them and later ones', async () => {
  const messages = new TurnMessages();
  const waiting = Array.from({ length: 10 }, (_, at) => messages.offer(`${at}`, never));
  await expect(messages.offer('Too many', never)).rejects.toMatchObject({ code: 'rate_limited' });
  messages.close();
  for (const one of [...waiting, messages.offer('Late', never)]) await expect(one).rejects.toMatchObject({ code: 'precondition_failed' });
});
