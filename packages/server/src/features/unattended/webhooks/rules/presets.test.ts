import examples from '@octokit/webhooks-examples' with { type: 'json' };
import { sign } from '@octokit/webhooks-methods';
import { startTestServer } from '@gatehouse/testkit';
import { expect, it } from 'vitest';
import * as z from 'zod';

const token = "It's a Secret to Everybody, even those who read";
const Named = z.object({ repository: z.object({ full_name: z.string() }).optional(), sender: z.object({ login: z.string() }).optional() });
const all = z.array(z.object({ name: z.string(), examples: z.array(z.unknown()) })).parse(examples);

it('accepts every example payload of GitHub, signed like GitHub, and names event, repository and sender', { timeout: 60_000 }, async () => {
  await using server = await startTestServer({ config: { webhooks: { token, presets: ['github'] } } });
  const payloads = all.flatMap(({ name, examples: own }) => own.map((payload) => ({ name, payload })));
  expect(payloads.length).toBeGreaterThan(300);
  const sent = new Map<string, { name: string; payload: unknown }>();
  for (const [index, { name, payload }] of payloads.entries()) {
    const json = JSON.stringify(payload);
    // Sends every other one as a form, which GitHub can be configured to send.
    const isForm = index % 2 === 1;
    const body = isForm ? new URLSearchParams({ payload: json }).toString() : json;
    const id = `delivery-${index}`;
    sent.set(id, { name, payload });
    const response = await fetch(`${server.url}/hooks/github`, {
      method: 'POST',
      body,
      headers: {
        'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
        'user-agent': 'GitHub-Hookshot/044aadd',
        'x-github-event': name,
        'x-github-delivery': id,
        'x-hub-signature-256': await sign(token, body),
      },
    });
    expect([response.status, await response.json()], `${name} ${index}`).toEqual([200, { received: true, mapping: 'github' }]);
  }
  const found = [];
  for (let before: string | undefined; ; before = found.at(-1)?.deliveryId) {
    const page = await server.client.call('webhooks.deliveries', { limit: 200, ...(before !== undefined && { before }) });
    found.push(...page.deliveries);
    if (!page.hasMore) break;
  }
  expect(found.length).toBe(payloads.length);
  const unnamed: string[] = [];
  for (const { senderId, message, state, sessionKey } of found) {
    const { name, payload } = sent.get(senderId ?? '') ?? { name: 'unknown', payload: {} };
    const { repository, sender } = Named.parse(payload);
    const wanted = [`GitHub event: ${name}`, repository && `Repository: ${repository.full_name}`, sender && `Sender: ${sender.login}`];
    if (wanted.some((line) => line !== undefined && !message.split('\n').includes(line))) unnamed.push(`${name}: ${message}`);
    // A ping is answered and starts nothing.
    expect(state === 'ignored').toBe(name === 'ping');
    expect(sessionKey?.endsWith(`:webhook:hook%3Agithub%3A${senderId}`)).toBe(true);
  }
  expect(unnamed).toEqual([]);
});

it('accepts mail as a digest and as a push service envelope, each message once', async () => {
  const mappings = [{ id: 'mail', match: { path: 'gmail' }, preset: 'gmail' as const, allowUnauthenticated: true }];
  await using server = await startTestServer({ config: { webhooks: { mappings } } });
  const digest = { messages: [{ id: 'm-1', from: 'ada@example.org', subject: 'Hello', snippet: 'How are', body: 'How are you?' }] };
  const data = Buffer.from(JSON.stringify({ emailAddress: 'ada@example.org', historyId: 9876 })).toString('base64');
  const envelope = {
    message: { data, messageId: '2070443601311540', publishTime: '2026-02-26T19:13:55.749Z' },
    subscription: 'projects/p/subscriptions/s',
  };
  const broken = { message: { data: '%%%', messageId: 'b-1' } };
  for (const body of [digest, digest, envelope, envelope, broken])
    expect((await fetch(`${server.url}/hooks/gmail`, { method: 'POST', body: JSON.stringify(body) })).status).toBe(200);
  const { deliveries } = await server.client.call('webhooks.deliveries', {});
  expect(deliveries.map(({ senderId, repeats, message }) => [senderId, repeats, message])).toEqual([
    ['b-1', 0, 'The mailbox has changed.'],
    ['2070443601311540', 1, 'The mailbox has changed.\nMailbox: ada@example.org\nHistory id: 9876'],
    ['m-1', 1, 'New mail:\nFrom: ada@example.org\nSubject: Hello\nSnippet: How are\nBody: How are you?'],
  ]);
  expect(deliveries.map(({ sessionKey }) => sessionKey?.split(':').at(-1))).toEqual(
    ['b-1', '2070443601311540', 'm-1'].map((id) => `hook%3Agmail%3A${id}`),
  );
});
