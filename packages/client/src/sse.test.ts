import { expect, test } from 'vitest';
import { readEventStream, type StreamEvent, type StreamPosition } from './sse.ts';

function streamOf(parts: readonly (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(typeof part === 'string' ? encoder.encode(part) : part);
      controller.close();
    },
  });
}

async function read(parts: readonly (string | Uint8Array)[], position?: StreamPosition): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  const options = { idleTimeoutMs: 5000, ...(position === undefined ? {} : { position }) };
  for await (const event of readEventStream(streamOf(parts), options)) events.push(event);
  return events;
}

test('parses types, ids, data over several lines, comments and a byte order mark', async () => {
  const position: StreamPosition = { lastEventId: '', retryMs: undefined };
  const text = '\uFEFFretry: 3000\n\n: hello\n\nevent: a\nid: 7\ndata: one\ndata:two\n\nevent: lost\n\ndata\n\nid\ndata:  x\n\ndata: cut off';
  expect(await read([text], position)).toEqual([
    { type: 'a', data: 'one\ntwo', id: '7' },
    { type: 'message', data: '', id: '7' },
    { type: 'message', data: ' x', id: '' },
  ]);
  expect(position).toEqual({ lastEventId: '', retryMs: 3000 });
});

test.each(['\n', '\r\n', '\r'])('lines that end with %j may be split anywhere', async (end) => {
  const text = 'event: grüße\ndata: 世界 👋\nid: 1\n\ndata: two\n\n'.replaceAll('\n', end);
  const bytes = new TextEncoder().encode(text);
  const expected = [
    { type: 'grüße', data: '世界 👋', id: '1' },
    { type: 'message', data: 'two', id: '1' },
  ];
  for (const size of [1, 2, 3, 5, bytes.length]) {
    const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, index * size + size));
    expect(await read(parts)).toEqual(expected);
  }
});

test('the position does not move past an incomplete event', async () => {
  const position: StreamPosition = { lastEventId: '', retryMs: undefined };
  expect(await read(['id: 1\ndata: x\n\nid: 2\ndata: y\n'], position)).toHaveLength(1);
  expect(position.lastEventId).toBe('1');
});

test('ignores an id with a null character and a retry value that is not a number', async () => {
  const position: StreamPosition = { lastEventId: 'before', retryMs: 5 };
  expect(await read(['id: a\0b\nretry: soon\ndata: x\n\n'], position)).toEqual([{ type: 'message', data: 'x', id: 'before' }]);
  expect(position.retryMs).toBe(5);
});

test.each([
  ['one line', () => 'data: '.padEnd(100_000, 'x')],
  ['many lines', () => `data: ${'x'.repeat(99_990)}\n`],
])('refuses an endless event, in %s, before it fills the memory', async (_what, more) => {
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1;
      controller.enqueue(new TextEncoder().encode(more()));
    },
  });
  const reading = (async () => {
    for await (const event of readEventStream(endless, { idleTimeoutMs: 5000 })) expect(event).toBeUndefined();
  })();
  await expect(reading).rejects.toMatchObject({ code: 'bad_reply', message: expect.stringContaining('8388608') });
  expect(sent).toBeLessThan(100);
});
