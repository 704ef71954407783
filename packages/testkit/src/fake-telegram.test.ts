import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseTelegramHtml } from './fake-telegram-html.ts';
import { type FakeTelegram, startFakeTelegram, type TelegramPerson } from './fake-telegram.ts';

const ada: TelegramPerson = { id: 5, first_name: 'Ada' };
let telegram: FakeTelegram;
beforeEach(async () => {
  telegram = await startFakeTelegram();
});
afterEach(() => telegram[Symbol.asyncDispose]());

async function call(method: string, params: object = {}, token = telegram.token) {
  const response = await fetch(`${telegram.url}/bot${token}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(params),
  });
  return (await response.json()) as { readonly ok: boolean; readonly result?: never; readonly error_code?: number; readonly description?: string };
}
const refused = (code: number, description: unknown) => expect.objectContaining({ ok: false, error_code: code, description });

test.each([
  ['a <b>bold <i>word</i></b>', 'a bold word', ['bold 2 9', 'italic 7 4']],
  ['<a href="https://x.org?a=1&amp;b=2">x</a> &lt;b&gt; &#128077; & &unknown;', 'x <b> 👍 & &unknown;', ['text_link 0 1']],
  ['<pre><code class="language-ts">let a</code></pre>', 'let a', ['pre 0 5 ts']],
  ['👍<tg-spoiler>s</tg-spoiler><blockquote expandable>q</blockquote>', '👍sq', ['spoiler 2 1', 'blockquote 3 1']],
  ['  <b> x </b>\n', 'x', ['bold 0 1']],
  ['1 > 0', '1 > 0', []],
])('HTML is read: %s', (html, text, entities) => {
  const read = parseTelegramHtml(html);
  if ('refusal' in read) throw new Error(read.refusal);
  expect([read.text, read.entities.map(({ type, offset, length, language = '' }) => `${type} ${offset} ${length} ${language}`.trim())]).toEqual([
    text,
    entities,
  ]);
});

test.each([
  ['<b>x', `Can't find end tag corresponding to start tag "b"`],
  ['x</b>', 'Unexpected end tag at byte offset 1'],
  ['é<b>x</i>', 'Unmatched end tag at byte offset 6, expected "</b>", found "</i>"'],
  ['<h1>x</h1>', 'Unsupported start tag "h1" at byte offset 0'],
  ['1 < 2', 'Unclosed start tag at byte offset 2'],
  ['1 < 2 > 0', 'Unsupported start tag " 2 " at byte offset 2'],
  ['<span>x</span>', 'Tag "span" must have class "tg-spoiler" at byte offset 0'],
  ['<br/>', 'Unexpected symbols in the start tag "br" at byte offset 0'],
])('HTML is refused: %s', async (html, why) => {
  telegram.chats.say(ada, 'hi');
  const answer = await call('sendMessage', { chat_id: 5, text: html, parse_mode: 'HTML' });
  expect(answer).toEqual(refused(400, `Bad Request: can't parse entities: ${why}`));
  expect(telegram.chats.said(5)).toEqual([]);
});

test('calls that are wrong are refused', async () => {
  telegram.chats.say(ada, 'hi');
  expect(await call('getMe', {}, '1:other')).toEqual(refused(401, 'Unauthorized'));
  expect(await call('getMe', {}, 'other')).toEqual(refused(404, 'Not Found'));
  expect(await call('sendEverything')).toEqual(refused(404, 'Not Found: method not found'));
  expect(await call('sendMessage', { chat_id: 5 })).toEqual(refused(400, 'Bad Request: message text is empty'));
  expect(await call('sendMessage', { chat_id: 5, text: ' ' })).toEqual(refused(400, 'Bad Request: message text is empty'));
  expect(await call('sendMessage', { chat_id: 6, text: 'x' })).toEqual(refused(400, 'Bad Request: chat not found'));
  expect(await call('sendMessage', { chat_id: 5, text: 'x', txet: 'x' })).toEqual(refused(400, expect.stringContaining('unknown parameter txet')));
  expect(await call('sendMessage', { chat_id: 5, text: 'x'.repeat(4_097) })).toEqual(refused(400, 'Bad Request: message is too long'));
  const fits = `<b>${'👍'.repeat(2_048)}</b>`;
  expect(await call('sendMessage', { chat_id: 5, text: fits, parse_mode: 'HTML' })).toMatchObject({ ok: true });
  expect(await call('sendMessage', { chat_id: 5, text: `${fits}.`, parse_mode: 'HTML' })).toMatchObject({ ok: false });
  const keyboard = (data: string) => ({ inline_keyboard: [[{ text: 'x', callback_data: data }]] });
  expect(await call('sendMessage', { chat_id: 5, text: 'x', reply_markup: keyboard('é'.repeat(33)) })).toEqual(
    refused(400, 'Bad Request: BUTTON_DATA_INVALID'),
  );
});

test('an offset confirms what is below it, and nothing else does', async () => {
  for (const text of ['one', 'two', 'three']) telegram.chats.say(ada, text);
  expect(telegram.pending()).toEqual([501, 502, 503]);
  await call('getUpdates');
  await call('getUpdates', { offset: 501 });
  expect(telegram.pending()).toEqual([501, 502, 503]);
  expect(await call('getUpdates', { offset: 502, limit: 1 })).toMatchObject({ result: [{ update_id: 502 }] });
  expect(telegram.pending()).toEqual([502, 503]);
  expect(await call('getUpdates', { offset: -1 })).toMatchObject({ result: [{ update_id: 503 }] });
  expect(await call('getUpdates', { offset: 504 })).toEqual({ ok: true, result: [] });
});

test('a second poll ends the first, and kinds that nobody asked for do not come', async () => {
  const first = call('getUpdates', { timeout: 60, allowed_updates: ['callback_query'] });
  await expect.poll(() => telegram.isPolled()).toBe(true);
  telegram.chats.say(ada, 'not asked for');
  const second = call('getUpdates', { timeout: 60, allowed_updates: ['message'] });
  expect(await first).toEqual(refused(409, expect.stringContaining('terminated by other getUpdates request')));
  telegram.chats.say(ada, 'asked for');
  expect(await second).toMatchObject({ result: [{ message: { text: 'asked for' } }] });
  telegram.setWebhook();
  expect(await call('getUpdates')).toEqual(refused(409, expect.stringContaining('webhook is active')));
});
