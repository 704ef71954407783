import { SocketModeClient } from '@slack/socket-mode';
import { WebClient } from '@slack/web-api';
import { expect, test } from 'vitest';
import { silentLog } from './client.ts';
import { startWorld } from './testing/connect.ts';

test('the libraries of Slack accept the fake: they connect, receive, acknowledge, post, upload and are limited', async () => {
  const { slack } = await startWorld();
  const ada = slack.person('Ada');
  const lab = slack.channel('lab', 'channel', [ada]);
  const socket = new SocketModeClient({ appToken: slack.appToken, logger: silentLog, clientOptions: { slackApiUrl: slack.apiUrl } });
  const heard: unknown[] = [];
  socket.on('slack_event', ({ ack, type, body, retry_num: retry }) => {
    heard.push([type, body.event?.type, body.event?.text, retry]);
    if (retry === 1) void ack();
  });
  await socket.start();
  slack.write(ada, lab, 'hello');
  await expect.poll(() => heard).toEqual([['events_api', 'message', 'hello', 0]]);
  expect(slack.unacknowledged).toBe(1);
  slack.repeat();
  await expect.poll(() => slack.acknowledged.length).toBe(1);
  expect(heard.at(-1)).toEqual(['events_api', 'message', 'hello', 1]);
  slack.askToDisconnect();
  await expect.poll(() => slack.open).toBe(0);
  await socket.disconnect();

  const web = new WebClient(slack.botToken, {
    slackApiUrl: slack.apiUrl,
    logger: silentLog,
    rejectRateLimitedCalls: true,
    retryConfig: { retries: 0 },
  });
  const posted = await web.chat.postMessage({ channel: lab, text: 'hi', metadata: { event_type: 'x', event_payload: { op: 'op1' } } });
  const page = await web.conversations.history({ channel: lab, include_all_metadata: true });
  expect(page.messages?.map(({ ts, text, metadata }) => [ts, text, metadata?.event_payload])).toEqual([
    [posted.ts, 'hi', { op: 'op1' }],
    [expect.any(String), 'hello', undefined],
  ]);
  await web.filesUploadV2({ channel_id: lab, file: Buffer.from('bytes'), filename: 'a.txt', initial_comment: 'see' });
  expect(slack.seen(lab).at(-1)).toMatchObject({ text: 'see', files: ['a.txt'] });
  expect(slack.fileBytes('a.txt')?.toString()).toBe('bytes');
  slack.fault('chat.postMessage', { is: 'limited', seconds: 40 }, { is: 'error', error: 'is_archived' });
  await expect(web.chat.postMessage({ channel: lab, text: 'x' })).rejects.toMatchObject({ code: 'slack_webapi_rate_limited_error', retryAfter: 40 });
  await expect(web.chat.postMessage({ channel: lab, text: 'x' })).rejects.toMatchObject({ data: { error: 'is_archived' } });
  await expect(web.apiCall('chat.postMessage', { channel: lab, text: 'x', unknown: 1 })).rejects.toMatchObject({
    data: { error: 'invalid_arguments' },
  });
});
