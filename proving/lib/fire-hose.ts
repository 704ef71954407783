import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A provider whose answers never end; it sends as fast as it is read, and no faster. */
export interface FireHose {
  /** Base URL, ending in /v1. */
  readonly url: string;
  /** Bytes that the other side accepted. */
  sentBytes(): number;
  /** Answers in progress. */
  open(): number;
  close(): Promise<void>;
}

export async function startFireHose(): Promise<FireHose> {
  const piece = `data: ${JSON.stringify({
    id: 'chatcmpl-hose',
    object: 'chat.completion.chunk',
    created: 0,
    model: 'hose',
    choices: [{ index: 0, delta: { content: 'x'.repeat(4_000) }, finish_reason: null }],
  })}\n\n`;
  const open = new Set<ServerResponse>();
  let sent = 0;
  function pour(response: ServerResponse): void {
    while (!response.destroyed) {
      sent += piece.length;
      if (!response.write(piece)) return;
    }
  }
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => {
      open.add(response);
      response.on('close', () => open.delete(response)).on('drain', () => pour(response));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      pour(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    sentBytes: () => sent,
    open: () => open.size,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
