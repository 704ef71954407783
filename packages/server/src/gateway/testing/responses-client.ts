import { ResponseObject, ResponseStreamEvent } from '@gatehouse/contract';
import { expect } from 'vitest';
import { post } from './gateway-fixture.ts';
import { type PublishedEvent, publishedEvent, publishedResponse } from './open-responses-schema.ts';

/** Calls `/v1/responses` and checks every response against the published and the declared schemas. */
export function responsesClient(baseUrl: string, token: string) {
  const url = `${baseUrl}/v1/responses`;
  return {
    send: (body: unknown) => post(url, token, body),
    async create(body: object): Promise<ResponseObject> {
      const answer = await post(url, token, body);
      const parsed: unknown = await answer.json();
      expect(answer.status, JSON.stringify(parsed)).toBe(200);
      publishedResponse.parse(parsed);
      return ResponseObject().parse(parsed);
    },
    async stream(body: object): Promise<{ readonly events: PublishedEvent[]; readonly final: ResponseObject }> {
      const answer = await post(url, token, { ...body, stream: true });
      const text = await answer.text();
      expect([answer.status, answer.headers.get('content-type')], text).toEqual([200, 'text/event-stream; charset=utf-8']);
      return readEvents(text);
    },
    get: (id: string) => fetch(`${url}/${id}`, { headers: { authorization: `Bearer ${token}` } }),
    delete: (id: string) => fetch(`${url}/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${token}` } }),
  };
}

/** Reads the events of a whole stream, checking their order and numbers; `final` is the response in the last one. */
export function readEvents(text: string): { readonly events: PublishedEvent[]; readonly final: ResponseObject } {
  const frames = text.split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'));
  expect(frames.pop()).toBe('data: [DONE]');
  const events = frames.map((frame, index) => {
    const [, name, data = ''] = /^event: (\S+)\ndata: (.*)$/.exec(frame) ?? [];
    const parsed: unknown = JSON.parse(data);
    ResponseStreamEvent().parse(parsed);
    const event = publishedEvent.parse(parsed);
    expect([event.type, event.sequence_number]).toEqual([name, index]);
    return event;
  });
  const last = events.at(-1);
  if (last === undefined || !('response' in last)) throw new Error('the stream does not end with a response');
  return { events, final: ResponseObject().parse(last.response) };
}
