import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { ModelError } from '../model.ts';
import { collectingSink, testRequest } from '../testing.ts';
import { ChatStream } from './stream.ts';

const usageFrame = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}\n\n';
const ending = `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n${usageFrame}data: [DONE]\n\n`;

/** How vendors write the same delta. */
const dialects: Readonly<Record<string, (text: string, i: number) => string>> = {
  plain: (content) =>
    `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }], usage: null })}\n\n`,
  'content before other fields of the delta': (content) =>
    `data: ${JSON.stringify({ choices: [{ delta: { content, role: 'assistant', refusal: null }, index: 0 }], id: 'c' })}\n\n`,
  'spaces in the JSON': (content) =>
    `data: {"id": "c", "choices": [{"index": 0, "delta": {"content": ${JSON.stringify(content)}}, "finish_reason": null}]}\n\n`,
  'escaped beyond ASCII': (content) =>
    `data: {"id":"c","choices":[{"index":0,"delta":{"content":${JSON.stringify(content).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}}}]}\n\n`,
  'CR LF': (content) => `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content } }] })}\r\n\r\n`,
  'no space after the colon, event and comment lines': (content) =>
    `: keep\nevent: delta\ndata:${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`,
  'another number in each frame': (content, i) => `data: ${JSON.stringify({ id: 'c', seq: i, choices: [{ index: 0, delta: { content } }] })}\n\n`,
  'the text twice': (content) => `data: ${JSON.stringify({ preview: { content }, choices: [{ index: 0, delta: { content } }] })}\n\n`,
  'reasoning next to the text': (content, i) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: i % 3 === 0 ? { content: '', reasoning_content: content } : { content } }] })}\n\n`,
};

/** Returns the text as a reader that parses every frame would see it. */
function expected(stream: string): string {
  let text = '';
  for (const line of stream.split(/\r?\n/)) {
    if (!line.startsWith('data:') || line.endsWith('[DONE]')) continue;
    const content: unknown = JSON.parse(line.slice(5)).choices[0]?.delta.content;
    if (typeof content === 'string') text += content;
  }
  return text;
}

function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const edges = [0, ...cuts.map((at) => at % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge));
}

function read(chunks: readonly Buffer[], fastStreams = true) {
  const sink = collectingSink();
  const stream = new ChatStream(testRequest(), sink, fastStreams);
  for (const chunk of chunks) {
    stream.push(chunk);
    stream.advance();
  }
  return { result: stream.end(), fragments: sink.fragments };
}

const delta = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 4 }),
  fc.constantFrom('"', '\\', '\\"', '\n', '\u0000', '"}}]}\n\ndata: x', '"content":"', 'é😀', '\u2028', '", "content": "'),
);

describe('a streamed completion', () => {
  test.for(Object.entries(dialects))('reads the same text however the bytes are split: %s', ([, frame]) => {
    fc.assert(
      fc.property(fc.array(delta, { maxLength: 30 }), fc.array(fc.nat(), { maxLength: 12 }), (deltas, cuts) => {
        const text = deltas.map((content, i) => frame(content, i)).join('') + ending;
        const { result, fragments } = read(cut(Buffer.from(text), cuts));
        expect(result.text).toBe(expected(text));
        expect(fragments.join('')).toBe(result.text);
        expect(result).toMatchObject({ finish: 'stop', usage: { input: 3, output: 4, estimated: false } });
      }),
      { numRuns: 150 },
    );
  });

  test('reads the same text when every byte arrives separately', () => {
    const text = ['Grüße, ', '"quoted" \\ ', '😀', '\n'].map((content, i) => dialects['plain']?.(content, i) ?? '').join('') + ending;
    expect(read([...Buffer.from(text)].map((byte) => Buffer.from([byte]))).result.text).toBe('Grüße, "quoted" \\ 😀\n');
  });

  test('passes every delta on as a separate fragment', () => {
    const text = ['a', 'b', 'c', 'd', 'e'].map((content, i) => dialects['plain']?.(content, i) ?? '').join('') + ending;
    expect(read([Buffer.from(text)]).fragments).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  test.each([true, false])('parses each frame only when fastStreams is off: %j', (fastStreams) => {
    const texts = Array.from({ length: 40 }, (_, i) => `word ${i} `);
    const stream = texts.map((content, i) => dialects['plain']?.(content, i) ?? '').join('') + ending;
    using parse = vi.spyOn(JSON, 'parse');
    expect(read([Buffer.from(stream)], fastStreams).result.text).toBe(texts.join(''));
    const parsed = parse.mock.calls.filter(([text]) => text.includes('"content":"word')).length;
    // The first frame, from which the reader learns, and the last one, which another kind of frame follows.
    expect(parsed).toBe(fastStreams ? 2 : 40);
  });

  test('does not treat a frame with more than its text as a text delta', () => {
    const frames = [
      dialects['plain']?.('a', 0),
      dialects['plain']?.('b', 1),
      'data: {"id":"c","choices":[{"index":0,"delta":{"content":"c"},"logprobs":null,"finish_reason":"length"}],"usage":null}\n\n',
      'data: [DONE]\n\n',
    ];
    expect(read([Buffer.from(frames.join(''))]).result).toMatchObject({ text: 'abc', finish: 'length', usage: { estimated: true } });
  });

  test('learns the position of the text, not that of an earlier key of the same name', () => {
    const frame = (note: string) => `data: ${JSON.stringify({ note: { content: note }, choices: [{ index: 0, delta: { content: 'same ' } }] })}\n\n`;
    expect(read([Buffer.from(['one', 'two', 'three', 'four'].map(frame).join('') + ending)]).result.text).toBe('same same same same ');
  });

  test('accepts a last frame without its empty line', () => {
    expect(read([Buffer.from('data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]')]).result.text).toBe('x');
  });

  test('assembles tool calls, also where all have the number 0 or none', () => {
    const call = (fragment: object) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [fragment] } }] })}\n\n`;
    const stream = [
      call({ index: 0, id: 'a', function: { name: 'read', arguments: '' } }),
      call({ index: 0, function: { arguments: '{"pa' } }),
      call({ index: 0, function: { arguments: 'th":"x"}' } }),
      call({ index: 0, id: 'b', function: { name: 'write', arguments: '{}' } }),
      call({ id: 'c', function: { name: 'fetch', arguments: { url: 'u' } } }),
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ].join('');
    const { result } = read([Buffer.from(stream)]);
    expect(result.finish).toBe('tool_calls');
    expect(result.toolCalls).toEqual([
      { id: 'a', name: 'read', arguments: '{"path":"x"}' },
      { id: 'b', name: 'write', arguments: '{}' },
      { id: 'c', name: 'fetch', arguments: '{"url":"u"}' },
    ]);
  });

  test('counts reasoning tokens that a vendor omits from the completion', () => {
    const stream = `${dialects['plain']?.('x', 0) ?? ''}data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40,"prompt_tokens_details":{"cached_tokens":8}}}\n\ndata: [DONE]\n\n`;
    expect(read([Buffer.from(stream)]).result.usage).toEqual({ input: 10, output: 30, cacheRead: 8, cacheWrite: 0, estimated: false });
  });

  test('refuses a frame without end', () => {
    const stream = new ChatStream(testRequest(), collectingSink(), true);
    const chunk = Buffer.alloc(65_536, 0x61);
    expect(() => {
      for (let i = 0; i < 17; i += 1) {
        stream.push(chunk);
        stream.advance();
      }
    }).toThrow(ModelError);
  });
});
