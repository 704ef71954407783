import { freePort } from '@gatehouse/testkit/free-port';
import { expect, test } from 'vitest';
import type { OutgoingAttachment } from '../port.ts';
import { never, open, startWorld } from './testing/connect.ts';

const file = (bytes: Uint8Array): OutgoingAttachment => ({
  kind: 'file',
  name: 'report.txt',
  mediaType: 'text/plain',
  bytes: bytes.length,
  read: async () => bytes,
});

async function startLab() {
  const world = await startWorld();
  return { ...world, ...open(world), lab: world.slack.channel('lab') };
}

test('plain text arrives as it is: nothing of it is markup, a link or a mention', async () => {
  const { slack, lab, send } = await startLab();
  const text = '*a* <!channel> <@U00000001> &amp; <https://x.test|y> @here';
  const sent = await send({ conversationId: lab, text });
  expect(slack.seen(lab)).toMatchObject([{ ts: sent.is === 'sent' ? sent.platformId : '', from: 'gate', text, notified: [] }]);
  const [call] = slack.callsOf('chat.postMessage');
  expect(call?.userAgent).toBe('gatehouse');
  expect(call?.params).toMatchObject({ mrkdwn: 'false', parse: 'none', link_names: 'false', unfurl_links: 'false', unfurl_media: 'false' });
});

test('markup keeps its links but notifies nobody, with buttons too', async () => {
  const { slack, lab, send } = await startLab();
  const markup = '*b* <https://x.test|y> <!channel> <!here|x> <@U00000001> <#C1>';
  await send({ conversationId: lab, text: 'b', markup });
  await send({ conversationId: lab, text: 'b', markup, buttons: [{ label: 'Go', command: '/go' }] });
  const shown = { text: '*b* <https://x.test|y> <!channel> <!here|x> <@U00000001> <#C1>', notified: [] };
  expect(slack.seen(lab)).toMatchObject([shown, { ...shown, buttons: [{ label: 'Go', value: '/go' }] }]);
});

test('a long text with buttons is cut into blocks, never inside of a surrogate pair', async () => {
  const { slack, lab, send } = await startLab();
  const text = `${'x'.repeat(2_999)}😀${'y'.repeat(900)}`;
  expect(await send({ conversationId: lab, text, buttons: [{ label: 'Go', command: '/go' }] })).toMatchObject({ is: 'sent' });
  expect(slack.seen(lab)[0]?.text.replaceAll('\n', '')).toBe(text);
});

test('a message goes to the thread that is named, else to the conversation', async () => {
  const { slack, lab, send } = await startLab();
  const ada = slack.person('Ada');
  const root = slack.write(ada, lab, 'root');
  await send({ conversationId: lab, text: 'in it', threadId: root, replyTo: root });
  await send({ conversationId: lab, text: 'below', replyTo: root });
  expect(slack.seen(lab).map(({ text }) => text)).toEqual(['root', 'below']);
  expect(slack.seen(lab, root).map(({ text }) => text)).toEqual(['root', 'in it']);
});

test.each([
  ['not_in_channel', 'rejected'],
  ['channel_not_found', 'rejected'],
  ['is_archived', 'rejected'],
  ['msg_too_long', 'rejected'],
  ['restricted_action', 'rejected'],
  ['ratelimited', 'notSent'],
  ['fatal_error', 'ambiguous'],
  ['internal_error', 'ambiguous'],
  ['token_revoked', 'notSent'],
] as const)('%s: %s', async (error, is) => {
  const { slack, lab, send } = await startLab();
  slack.fault('chat.postMessage', { is: 'error', error });
  const result = await send({ conversationId: lab, text: 'hi' });
  expect(result).toMatchObject({ is, ...(is === 'rejected' && { kind: error }) });
  expect(slack.seen(lab)).toEqual([]);
  expect(slack.callsOf('chat.postMessage')).toHaveLength(1);
});

test.each([
  [{ is: 'limited', seconds: 40 } as const, { is: 'notSent', retryAfterMs: 40_000 }, 0],
  [{ is: 'limited' } as const, { is: 'notSent', retryAfterMs: 30_000 }, 0],
  [{ is: 'status', status: 503 } as const, { is: 'ambiguous' }, 0],
  [{ is: 'status', status: 404 } as const, { is: 'rejected', kind: 'http_404' }, 0],
  [{ is: 'page', text: '<html>SECRET</html>' } as const, { is: 'ambiguous' }, 0],
  [{ is: 'cutBefore' } as const, { is: 'ambiguous' }, 0],
  [{ is: 'cutAfter' } as const, { is: 'ambiguous' }, 1],
])('evidence of %o', async (fault, expected, seen) => {
  const { slack, lab, send } = await startLab();
  slack.fault('chat.postMessage', fault);
  const result = await send({ conversationId: lab, text: 'hi' });
  expect(result).toMatchObject(expected);
  expect(JSON.stringify(result)).not.toMatch(/SECRET|xoxb|127\.0\.0\.1/);
  // Only the outbox repeats.
  expect([slack.callsOf('chat.postMessage').length, slack.seen(lab).length]).toEqual([1, seen]);
});

test('no connection and an aborted signal: nothing was sent; a hanging request that is aborted may have been', async () => {
  const world = await startWorld();
  const { slack } = world;
  const lab = slack.channel('lab');
  const unreachable = open(world, { apiUrl: `http://127.0.0.1:${await freePort()}/api/` });
  expect(await unreachable.send({ conversationId: lab, text: 'hi' })).toEqual({ is: 'notSent', text: 'The request failed: ECONNREFUSED' });
  const { adapter } = open(world);
  expect(await adapter.send({ conversationId: lab, text: 'hi' }, { key: 'k', signal: AbortSignal.abort() })).toMatchObject({ is: 'notSent' });
  slack.fault('chat.postMessage', { is: 'hang' }, { is: 'hang' });
  const stopping = new AbortController();
  const sending = adapter.send({ conversationId: lab, text: 'hi' }, { key: 'k', signal: stopping.signal });
  await expect.poll(() => slack.callsOf('chat.postMessage')).toHaveLength(1);
  stopping.abort();
  expect(await sending).toMatchObject({ is: 'ambiguous' });
  const late = adapter.send({ conversationId: lab, text: 'hi' }, { key: 'k', signal: never });
  await expect.poll(() => slack.callsOf('chat.postMessage')).toHaveLength(2);
  world.clock.advance(30_000);
  expect(await late).toMatchObject({ is: 'ambiguous', text: 'No complete answer within 30 s' });
  expect(await adapter.send({ conversationId: '../x', text: 'hi' }, { key: 'k', signal: never })).toMatchObject({ is: 'rejected', kind: 'target' });
  expect(await adapter.send({ conversationId: lab, text: '' }, { key: 'k', signal: never })).toMatchObject({ is: 'rejected', kind: 'no_text' });
});

test('a send whose answer was lost is found by its mark, in a conversation and in a thread; others are not', async () => {
  const { slack, lab, send, lookUp } = await startLab();
  const ada = slack.person('Ada');
  const root = slack.write(ada, lab, 'root');
  await send({ conversationId: lab, text: 'same text' }, 'another');
  for (const threadId of [undefined, root]) {
    const part = { conversationId: lab, text: 'same text', threadId };
    slack.fault('chat.postMessage', { is: 'cutBefore' });
    expect(await send(part, `lost ${threadId}`)).toMatchObject({ is: 'ambiguous' });
    expect(await lookUp(part, `lost ${threadId}`)).toEqual({ is: 'absent' });
    slack.fault('chat.postMessage', { is: 'cutAfter' });
    expect(await send(part, `arrived ${threadId}`)).toMatchObject({ is: 'ambiguous' });
    expect(await lookUp(part, `arrived ${threadId}`)).toEqual({ is: 'found', platformId: slack.seen(lab, threadId).at(-1)?.ts });
  }
});

test('a busy conversation is read page by page, and what cannot be looked up is unclear', async () => {
  const { slack, lab, send, lookUp } = await startLab();
  const ada = slack.person('Ada');
  await send({ conversationId: lab, text: 'mine' }, 'mine');
  for (let n = 0; n < 250; n += 1) slack.write(ada, lab, `${n}`);
  const part = { conversationId: lab, text: 'mine' };
  expect(await lookUp(part, 'mine')).toMatchObject({ is: 'found' });
  expect(slack.callsOf('conversations.history')).toHaveLength(3);
  slack.fault('conversations.history', { is: 'limited', seconds: 1 }, { is: 'cutBefore' }, { is: 'error', error: 'missing_scope' });
  expect(await lookUp(part, 'mine')).toMatchObject({ is: 'unclear', retry: true });
  expect(await lookUp(part, 'mine')).toMatchObject({ is: 'unclear', retry: true });
  expect(await lookUp(part, 'mine')).toMatchObject({ is: 'unclear', retry: false });
  for (let n = 0; n < 300; n += 1) slack.write(ada, lab, `${n}`);
  expect(await lookUp(part, 'mine')).toMatchObject({ is: 'unclear', retry: false });
});

test('a file is uploaded and shared with its caption, and no one sees it when a step before fails', async () => {
  const { slack, lab, send, lookUp } = await startLab();
  const part = { conversationId: lab, text: 'see <this>', attachment: file(Buffer.from('the report')) };
  expect(await send(part)).toEqual({ is: 'sent' });
  expect(slack.seen(lab)).toMatchObject([{ text: 'see <this>', files: ['report.txt'], notified: [] }]);
  expect(slack.fileBytes('report.txt')?.toString()).toBe('the report');
  slack.fault('files.getUploadURLExternal', { is: 'cutAfter' }, { is: 'error', error: 'missing_scope' });
  expect(await send(part)).toMatchObject({ is: 'notSent' });
  expect(await send(part)).toMatchObject({ is: 'rejected', kind: 'missing_scope' });
  slack.fault('upload', { is: 'cutAfter' });
  expect(await send(part)).toMatchObject({ is: 'notSent' });
  const unreadable = { ...part.attachment, read: () => Promise.reject(new Error('gone')) };
  expect(await send({ ...part, attachment: unreadable })).toMatchObject({ is: 'rejected', kind: 'unreadable' });
  expect(slack.seen(lab)).toHaveLength(1);
  slack.fault('files.completeUploadExternal', { is: 'cutAfter' });
  expect(await send(part, 'lost')).toMatchObject({ is: 'ambiguous' });
  expect(await lookUp(part, 'lost')).toEqual({ is: 'found', platformId: slack.seen(lab).at(-1)?.ts });
  slack.fault('files.completeUploadExternal', { is: 'cutBefore' });
  expect(await send(part, 'lost again')).toMatchObject({ is: 'ambiguous' });
  expect(await lookUp(part, 'lost again')).toEqual({ is: 'absent' });
  expect(await lookUp(part, 'of an earlier process')).toMatchObject({ is: 'unclear', retry: false });
});

test('an address for a file that is not one of Slack gets nothing', async () => {
  const { slack, lab, send } = await startLab();
  slack.fault('files.getUploadURLExternal', {
    is: 'page',
    text: JSON.stringify({ ok: true, upload_url: 'https://slack.com.evil.test/x', file_id: 'F1' }),
  });
  expect(await send({ conversationId: lab, text: '', attachment: file(Buffer.from('x')) })).toMatchObject({ is: 'notSent' });
});

test('messages of ours are edited, deleted and reacted to', async () => {
  const { slack, lab, adapter, send } = await startLab();
  const ada = slack.person('Ada');
  const sent = await send({ conversationId: lab, text: 'first', buttons: [{ label: 'Go', command: '/go' }] });
  const ours = { conversationId: lab, messageId: sent.is === 'sent' ? sent.platformId! : '' };
  const signal = never;
  expect(await adapter.edit!(ours, { text: 'second <!here>' }, { signal })).toMatchObject({ is: 'done' });
  expect(slack.seen(lab)).toMatchObject([{ text: 'second <!here>', isEdited: true, buttons: [], notified: [] }]);
  for (const emoji of ['👀', '👀', ':tada:', '❤', 'white_check_mark'])
    expect(await adapter.react!(ours, emoji, { signal })).toMatchObject({ is: 'done' });
  expect(slack.seen(lab)[0]?.reactions).toEqual(['eyes', 'tada', 'heart', 'white_check_mark']);
  for (const emoji of ['👀', '👀']) expect(await adapter.unreact!(ours, emoji, { signal })).toMatchObject({ is: 'done' });
  expect(await adapter.react!(ours, '🦣', { signal })).toMatchObject({ is: 'failed', kind: 'invalid' });
  expect(slack.seen(lab)[0]?.reactions).toEqual(['tada', 'heart', 'white_check_mark']);
  const theirs = { conversationId: lab, messageId: slack.write(ada, lab, 'theirs') };
  expect(await adapter.edit!(theirs, { text: 'x' }, { signal })).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(await adapter.remove!(theirs, { signal })).toMatchObject({ is: 'failed', kind: 'denied' });
  expect(await adapter.remove!(ours, { signal })).toMatchObject({ is: 'done' });
  expect(await adapter.remove!(ours, { signal })).toMatchObject({ is: 'failed', kind: 'not_found' });
  slack.fault('chat.update', { is: 'limited', seconds: 3 }, { is: 'cutBefore' });
  expect(await adapter.edit!(ours, { text: 'x' }, { signal })).toMatchObject({ is: 'failed', kind: 'rate_limited', retryAfterMs: 3_000 });
  expect(await adapter.edit!(ours, { text: 'x' }, { signal })).toMatchObject({ is: 'failed', kind: 'ambiguous' });
  expect(slack.seen(lab).map(({ text }) => text)).toEqual(['theirs']);
});

test('the newest messages of a conversation or a thread are fetched, those before one too', async () => {
  const { slack, lab, adapter } = await startLab();
  const ada = slack.person('Ada');
  const ids = [1, 2, 3].map((n) => slack.write(ada, lab, `message &lt;${n}&gt;`));
  for (let n = 0; n < 250; n += 1) slack.write(ada, lab, `reply ${n}`, { threadTs: ids[0]! });
  const texts = async (threadId: string | undefined, limit: number, before?: string) => {
    const got = await adapter.fetch!({ conversationId: lab, threadId }, { signal: never, limit, before });
    return got.is === 'done' ? got.value.map(({ text }) => text) : got;
  };
  expect(await texts(undefined, 2)).toEqual(['message <3>', 'message <2>']);
  expect(await texts(undefined, 5, ids[1])).toEqual(['message <1>']);
  expect(await texts(ids[0], 2)).toEqual(['reply 249', 'reply 248']);
  expect(await texts(undefined, 5, 'nonsense')).toMatchObject({ is: 'failed', kind: 'invalid' });
  slack.leave(lab);
  expect(await texts(undefined, 5)).toMatchObject({ is: 'failed', kind: 'denied' });
});
