import type { TestServer } from '@gatehouse/testkit';
import { expect } from 'vitest';

export interface StreamEvent {
  readonly event: string;
  readonly id?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export function postApi(server: TestServer, path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(server.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Yields the events of a stream as they arrive, without comments. Breaking out of the loop closes the stream. */
export async function* eventsOf(response: Response): AsyncGenerator<StreamEvent, void> {
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]));
      const id = fields.get('id');
      const event = fields.get('event');
      if (event !== undefined) yield { event, ...(id !== undefined && { id }), data: JSON.parse(fields.get('data') ?? '') };
    }
  }
  expect(text).toBe('');
}

export async function allEvents(response: Response): Promise<StreamEvent[]> {
  return Array.fromAsync(eventsOf(response));
}

/** Joins the text of the `token` events. */
export function textOf(events: readonly StreamEvent[]): string {
  return events
    .filter(({ event }) => event === 'token')
    .map(({ data }) => String(data['delta']))
    .join('');
}
