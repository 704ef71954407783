import { once } from 'node:events';
import { ResponseObject, ResponseSocketError, ResponseStreamEvent } from '@gatehouse/contract';
import { expect } from 'vitest';
import { WebSocket } from 'ws';
import { publishedEvent } from './open-responses-schema.ts';

export type ResponseSocketTurn = {
  readonly events: ResponseStreamEvent[];
  readonly final: ResponseObject | undefined;
  readonly error: ResponseSocketError | undefined;
};

/** Opens a socket on `/v1/responses` and checks every frame against the published and the declared schemas. */
export async function openResponseSocket(baseUrl: string, token: string) {
  const socket = new WebSocket(`${baseUrl.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${token}` } });
  const frames: string[] = [];
  let wake = (): void => {};
  socket.on('message', (data: Buffer) => {
    frames.push(data.toString('utf8'));
    wake();
  });
  const { promise: closed, resolve: close } = Promise.withResolvers<number>();
  socket.on('close', (code) => {
    wake();
    close(code);
  });
  await once(socket, 'open');

  async function frame(): Promise<string> {
    while (frames.length === 0) {
      if (socket.readyState !== socket.OPEN) throw new Error('the socket closed before the response ended');
      await new Promise<void>((resolve) => (wake = resolve));
    }
    return frames.shift() ?? '';
  }

  /** Reads the frames of one response, up to its last event or an error. */
  async function read(): Promise<ResponseSocketTurn> {
    const events: ResponseStreamEvent[] = [];
    for (;;) {
      const parsed: unknown = JSON.parse(await frame());
      const { success, data } = ResponseSocketError().safeParse(parsed);
      if (success) return { events, final: undefined, error: data };
      const event = ResponseStreamEvent().parse(parsed);
      publishedEvent.parse(parsed);
      expect(event.sequence_number).toBe(events.length);
      events.push(event);
      if (event.type === 'response.completed' || event.type === 'response.incomplete' || event.type === 'response.failed')
        return { events, final: ResponseObject().parse(event.response), error: undefined };
    }
  }

  const send = (body: object): void => socket.send(JSON.stringify({ type: 'response.create', ...body }));
  return {
    socket,
    closed,
    frame,
    read,
    send,
    async create(body: object): Promise<ResponseSocketTurn> {
      send(body);
      return read();
    },
    async [Symbol.asyncDispose]() {
      socket.terminate();
      await closed;
    },
  };
}
