import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A Bot API that answers immediately, with what waits as long polls do, and knows when updates were confirmed. */
export interface BotApi extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  /** Milliseconds from each answer with updates to the poll that confirmed them. */
  readonly confirmedMs: number[];
  /** Messages that were sent. */
  sent(): number;
  /** Queues a message of each of so many people, who never wrote before. */
  say(text: string, people: number): void;
  /** Resolves when nothing waits any more. */
  confirmed(): Promise<void>;
  /** Resolves when somebody polls. */
  polled(): Promise<void>;
}

interface Update {
  readonly update_id: number;
}

const atOnce = 100;
const bot = { id: 4242, is_bot: true, first_name: 'Gate', username: 'gate_test_bot' };
const lookMs = 5;

export async function startBotApi(): Promise<BotApi> {
  const token = `${bot.id}:bench_token`;
  const confirmedMs: number[] = [];
  let updates: Update[] = [];
  let people = 0;
  let sends = 0;
  let answeredAt: number | undefined;
  let waiting: ServerResponse | undefined;

  function answer(response: ServerResponse): void {
    waiting = undefined;
    if (updates.length > 0) answeredAt = performance.now();
    json(response, updates.slice(0, atOnce));
  }

  function poll({ offset = 0, timeout = 0 }: { readonly offset?: number; readonly timeout?: number }, response: ServerResponse): void {
    if (answeredAt !== undefined) confirmedMs.push(performance.now() - answeredAt);
    answeredAt = undefined;
    const first = updates.findIndex(({ update_id: id }) => id >= offset);
    updates = first === -1 ? [] : updates.slice(first);
    if (updates.length > 0 || timeout === 0) answer(response);
    else waiting = response;
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const method = request.url?.split('/').at(-1) ?? '';
    const body = await bodyOf(request);
    if (method === 'getMe') return json(response, bot);
    if (method === 'getUpdates') return poll(body, response);
    if (!method.startsWith('send')) return json(response, true);
    if (method === 'sendMessage') sends += 1;
    const { chat_id: id = 0, text = '' } = body;
    json(response, { message_id: sends, date: 0, chat: { id, type: 'private', first_name: 'Ada' }, text });
  }

  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token,
    confirmedMs,
    sent: () => sends,
    say(text, count) {
      for (let index = 0; index < count; index += 1) updates.push(updateOf((people += 1), text));
      if (waiting !== undefined) answer(waiting);
    },
    async confirmed() {
      while (updates.length > 0) await sleep(lookMs);
    },
    async polled() {
      while (waiting === undefined) await sleep(lookMs);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function updateOf(person: number, text: string): Update {
  const id = 10_000 + person;
  const who = { id, first_name: 'Ada', last_name: `The ${person}th`, username: `ada_${person}` };
  const chat = { ...who, type: 'private' };
  const entities = text.startsWith('/') ? [{ type: 'bot_command', offset: 0, length: text.length }] : [];
  const message = { message_id: 1, from: { ...who, is_bot: false, language_code: 'en' }, chat, date: 1_790_000_000, text, entities };
  return { update_id: person, message } as Update;
}

function json(response: ServerResponse, result: unknown): void {
  const text = JSON.stringify({ ok: true, result });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }).end(text);
}

async function bodyOf(request: IncomingMessage): Promise<{ offset?: number; timeout?: number; chat_id?: number; text?: string }> {
  const parts: Buffer[] = [];
  for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
  const text = Buffer.concat(parts).toString();
  return text === '' ? {} : (JSON.parse(text) as object);
}
