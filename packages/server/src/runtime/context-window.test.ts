import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countTokens } from '../llm/count-tokens.ts';
import type { ModelMessage, ModelPart } from '../llm/model.ts';
import { createFence } from './fence.ts';
import { type ContextInput, createFitContext, type FittedContext, notesHead, omissionNote } from './context-window.ts';

function fit(input: ContextInput): FittedContext | undefined {
  const fitted = createFitContext(countTokens)(input);
  return 'needed' in fitted ? undefined : fitted;
}
const user = (content: string): ModelMessage => ({ role: 'user', content });
const assistant = (content: string): ModelMessage => ({ role: 'assistant', content });
let ids = 0;
function step(resultLength: number, calls = 1, argumentsLength = 10): ModelMessage[] {
  const toolCalls = Array.from({ length: calls }, () => ({
    id: `call_${(ids += 1)}`,
    name: 'read',
    arguments: JSON.stringify({ path: 'p'.repeat(argumentsLength) }),
  }));
  return [
    { role: 'assistant', content: '', toolCalls },
    ...toolCalls.map((call): ModelMessage => ({ role: 'tool', content: 'word '.repeat(resultLength / 5), toolCallId: call.id, toolName: call.name })),
  ];
}
const words = (count: number) => 'word '.repeat(count);

/** Independent of the code under test: each result directly follows the step that called it, and each call has its result. */
function expectValidPairs(messages: readonly ModelMessage[]): void {
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      expect(open.delete(message.toolCallId), `orphan result ${message.toolCallId}`).toBe(true);
      continue;
    }
    expect([...open]).toEqual([]);
    open = new Set(message.role === 'assistant' ? message.toolCalls?.map((call) => call.id) : []);
  }
  expect([...open]).toEqual([]);
}

describe('context window', () => {
  it('returns the same list when it fits', () => {
    const messages = [user('a'), assistant('b'), user('c')];
    const fitted = fit({ messages, fixedTokens: 10, limit: 100 });
    expect(fitted?.messages).toBe(messages);
    expect(fitted?.tokens).toBe(10 + 3 * 5);
  });

  it('keeps the fence of a result that it cuts and the pointer to its rest, and marks omissions once', () => {
    const fence = createFence({ key: new Uint8Array(32) });
    const pointer =
      '[60000 characters in all, in 60 lines of the file .gatehouse/offload/tn_1.txt: open what you need of it with "read", offset and limit]';
    const result = `${fence.wrap(words(1200), { source: 'web' })}\n${pointer}`;
    const long = Array.from({ length: 3 }, () => step(100).map((message) => (message.role === 'tool' ? { ...message, content: result } : message)));
    let messages: readonly ModelMessage[] = [user('look'), ...long.flat()];
    for (let limit = 2500; limit >= 600; limit -= 100) {
      messages = fit({ messages, fixedTokens: 0, limit })?.messages ?? [];
      const results = messages.filter((message) => message.role === 'tool').map((message) => message.content);
      expect(results.length, `${limit}`).toBeGreaterThan(0);
      for (const content of results)
        expect(content, `${limit}`).toMatch(
          /^(?:\[\d{3,} characters left out to save room\]|<<<UNTRUSTED-TEXT ([0-9a-f]{32}) source="web">>>\n[^<]*\n<<<END-UNTRUSTED-TEXT \1>>>)\n\[60000 characters in all, [^\n]*\]$/,
        );
    }
  });

  it('removes the context found for a question before the question itself', () => {
    const fence = createFence({ key: new Uint8Array(32) });
    const question = `${fence.wrap(words(300), { source: 'memory' })}\n\nBEGIN ${words(40)} END`;
    const [asked] = fit({ messages: [user(question)], fixedTokens: 0, limit: 120 })?.messages ?? [];
    expect(asked?.content).toMatch(/BEGIN[\s\S]*END$/);
    expect(asked?.content).not.toContain('<<<');
  });

  it('omits old tool results first, and spares the recent ones', () => {
    const messages = [
      user('start'),
      ...step(2000),
      ...step(2000),
      ...step(2000),
      ...step(2000),
      ...step(2000),
      ...step(2000),
      assistant('done'),
      user('continue'),
    ];
    const fitted = fit({ messages, fixedTokens: 0, limit: 2300 });
    expect(fitted?.messages).toHaveLength(messages.length);
    const results = fitted?.messages.filter((message) => message.role === 'tool').map((message) => message.content.startsWith('['));
    expect(results).toEqual([true, true, false, false, false, false]);
  });

  it('then drops whole exchanges from the oldest on and notes it', () => {
    const messages = [
      user('one'),
      assistant(words(400)),
      user('two'),
      ...step(100),
      assistant(words(400)),
      user('three'),
      assistant(words(300)),
      user('four'),
    ];
    const fitted = fit({ messages, fixedTokens: 0, limit: 600 });
    expect(fitted?.messages[0]).toEqual(user(omissionNote));
    expect(fitted?.messages.slice(1)).toEqual(messages.slice(-3));
    const again = fit({ messages: [...(fitted?.messages ?? []), assistant(words(300)), user('five')], fixedTokens: 0, limit: 600 });
    expect(again?.messages.map((message) => message.content)).toEqual([omissionNote, 'four', words(300), 'five']);
  });

  it('never cuts the question’s own text, and reports the sizes when it does not fit', () => {
    const question = `BEGIN ${words(5000)} END`;
    const fitted = createFitContext(countTokens)({ messages: [user('old'), assistant('older'), user(question)], fixedTokens: 50, limit: 1000 });
    expect(fitted).toEqual({ needed: expect.any(Number) });
    expect('needed' in fitted && fitted.needed).toBeGreaterThan(countTokens(question) + 50);
  });

  it.each([
    ['a question that cannot be cut', user('x'.repeat(500_000))],
    ['an answer of which the end costs most', assistant(`${words(60_000)}${'漢'.repeat(200_000)}`)],
  ])('counts %s a few times only', (_, message) => {
    let counted = 0;
    const count = (text: string) => ((counted += text.length), countTokens(text));
    createFitContext(count)({ messages: [user('question'), message], fixedTokens: 0, limit: 20_000 });
    expect(counted).toBeLessThan(6 * 500_000);
  });

  it('keeps most of an attachment when the question is a few tokens too long', () => {
    const question = `Sum up: ${createFence({ key: new Uint8Array(32) }).wrap(words(10_000), { source: 'attachment' })}`;
    const whole = fit({ messages: [user(question)], fixedTokens: 0, limit: 1_000_000 })?.tokens ?? 0;
    const [asked] = fit({ messages: [user(question)], fixedTokens: 0, limit: whole - 5 })?.messages ?? [];
    expect(asked?.content.length).toBeGreaterThan(question.length / 2);
  });

  it('cuts untrusted attachments of the question', () => {
    const fence = createFence({ key: new Uint8Array(32) });
    const question = `BEGIN ${words(100)} END\n\n${fence.wrap(words(5000), { source: 'attachment' })}`;
    const fitted = fit({ messages: [user(question)], fixedTokens: 50, limit: 1000 });
    expect(fitted?.messages[0]?.content).toMatch(
      /^BEGIN (?:word ){100} END\n\n<<<UNTRUSTED[^\n]*\n[^<]*characters left out[^<]*<<<END-UNTRUSTED-TEXT \w+>>>$/,
    );
    expect(fitted?.tokens).toBeGreaterThan(700);
    expect(fitted?.leftOut).toBe(1);
  });

  it('cuts the largest message of an exchange, not those around it', () => {
    const messages = [user('what is in it?'), ...step(100), ...step(200_000)];
    const fitted = fit({ messages, fixedTokens: 0, limit: 2000 });
    expect(fitted?.messages.slice(0, -1)).toEqual(messages.slice(0, -1));
    expect(fitted?.messages.at(-1)?.content).toContain('characters left out');
  });

  it('gives up when the fixed part leaves no space for the question', () => {
    expect(fit({ messages: [user('x')], fixedTokens: 1000, limit: 1000 })).toBeUndefined();
    expect(fit({ messages: [user(words(500))], fixedTokens: 980, limit: 1000 })).toBeUndefined();
  });

  it('never exceeds the limit, keeps the question, keeps pairs whole and decides the same each time', () => {
    const text = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.integer({ min: 0, max: 3000 }).map(words),
      fc.string({ unit: 'binary', maxLength: 500 }),
      fc.integer({ min: 0, max: 4000 }).map((length) => '漢'.repeat(length)),
    );
    const steps = fc.array(
      fc.record({
        results: fc.array(text, { minLength: 1, maxLength: 3 }),
        args: fc.integer({ min: 0, max: 5000 }),
        said: fc.string({ maxLength: 20 }),
      }),
      { maxLength: 6 },
    );
    const exchange = fc.record({ asked: text, steps, answer: fc.option(text) });
    fc.assert(
      fc.property(
        fc.array(exchange, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 100, max: 4000 }),
        fc.integer({ min: 0, max: 500 }),
        (exchanges, limit, fixedTokens) => {
          const messages = exchanges.flatMap(({ asked, steps: taken, answer }, at): ModelMessage[] => [
            user(asked),
            ...taken.flatMap(({ results, args, said }, number): ModelMessage[] => {
              const toolCalls = results.map((_, index) => ({
                id: `c${at}-${number}-${index}`,
                name: 'read',
                arguments: JSON.stringify({ a: 'a'.repeat(args) }),
              }));
              return [
                { role: 'assistant', content: said, toolCalls },
                ...results.map((content, index): ModelMessage => ({
                  role: 'tool',
                  content,
                  toolCallId: `c${at}-${number}-${index}`,
                  toolName: 'read',
                })),
              ];
            }),
            // The last exchange is still being answered.
            ...(answer === null || at === exchanges.length - 1 ? [] : [assistant(answer)]),
          ]);
          const fitted = fit({ messages, fixedTokens, limit });
          if (fitted === undefined) {
            // Only when a note, the smallest step and the question do not fit.
            const asked = messages.findLast((message) => message.role === 'user')?.content ?? '';
            expect(limit - fixedTokens).toBeLessThan(600 + countTokens(asked));
            return;
          }
          expect(fitted.tokens).toBeLessThanOrEqual(limit);
          // Counted again, without the cache of the counter.
          const recount = fit({ messages: structuredClone(fitted.messages), fixedTokens, limit });
          expect(recount?.tokens).toBe(fitted.tokens);
          expectValidPairs(fitted.messages);
          const question = messages.findLast((message) => message.role === 'user')?.content ?? '';
          const kept = fitted.messages.findLast((message) => message.role === 'user')?.content ?? '';
          expect(kept).toBe(question);
          expect(fitted.messages[0]?.role).toBe('user');
          expect(fit({ messages, fixedTokens, limit })?.messages).toEqual(fitted.messages);
        },
      ),
      { numRuns: 300 },
    );
  });

  describe('with images and files', () => {
    const image = { type: 'image' as const, url: 'data:image/png;base64,AAAA' };
    const withParts = (text: string, ...parts: readonly ModelPart[]): ModelMessage => ({
      role: 'user',
      content: text,
      parts: [{ type: 'text', text }, ...parts],
    });

    it('counts what is sent, not the content that represents it', () => {
      const pdf = (bytes: number) => ({ type: 'file' as const, name: 'a.pdf', url: `data:application/pdf;base64,${'A'.repeat((bytes * 4) / 3)}` });
      const tokensOf = (...parts: readonly ModelPart[]) =>
        fit({ messages: [withParts('hi', ...parts)], fixedTokens: 0, limit: 1_000_000 })?.tokens ?? 0;
      const plain = tokensOf();
      expect(tokensOf(image, image) - plain).toBe(3200);
      expect(tokensOf(pdf(300)) - plain).toBe(500);
      expect(tokensOf(pdf(60_000)) - plain).toBeCloseTo(10_000, -2);
      expect(tokensOf(pdf(3_000_000)) - plain).toBe(100_000);
    });

    it('shortens an attached text of the question and leaves its image', () => {
      const attached = createFence({ key: new Uint8Array(32) }).wrap(words(5000), { source: 'attachment' });
      const fitted = fit({ messages: [withParts('What is in it?', image, { type: 'text', text: attached })], fixedTokens: 0, limit: 3000 });
      expect(fitted?.tokens).toBeLessThanOrEqual(3000);
      expect(fitted?.messages[0]).toMatchObject({
        parts: [{ text: 'What is in it?' }, image, { text: expect.stringContaining('characters left out') }],
      });
      expect(fit({ messages: [withParts(words(5000), image)], fixedTokens: 0, limit: 3000 })).toBeUndefined();
    });

    it('gives up when the images alone are too many', () => {
      expect(fit({ messages: [withParts('what?', image, image)], fixedTokens: 0, limit: 3000 })).toBeUndefined();
    });

    it('drops old exchanges with their images before it touches the question', () => {
      const messages = [withParts('old', image), assistant('seen'), withParts('new', image)];
      const fitted = fit({ messages, fixedTokens: 0, limit: 2500 });
      expect(fitted?.messages).toEqual([user(omissionNote), messages[2]]);
    });
  });

  it('keeps notes on the earlier part while older exchanges are dropped, and drops them only when they do not fit', () => {
    const notes = user(`${notesHead}, messages 1 to 90.]\n${words(50)}`);
    const messages = [notes, user(words(300)), assistant(words(300)), user(words(300)), assistant(words(300)), user('the question')];
    const fitted = fit({ messages, fixedTokens: 0, limit: 800 });
    expect(fitted?.messages[0]).toBe(notes);
    expect(fitted?.messages[1]?.content).toBe(omissionNote);
    expect(fitted?.messages.at(-1)?.content).toBe('the question');
    const tight = fit({ messages: [notes, user(words(100))], fixedTokens: 0, limit: 130 });
    expect(tight?.messages.map((message) => message.content)).toEqual([omissionNote, words(100)]);
    // A first message that starts the same way is not treated as a note.
    expect(fit({ messages: [user(`${notesHead} ${words(300)}`)], fixedTokens: 0, limit: 100 })?.messages[0]?.content).toContain(notesHead);
  });

  it('leaves the pointer to an off-loaded result in place', () => {
    const pointer =
      '[90000 characters in all, in 900 lines of the file .gatehouse/offload/a.txt: open what you need of it with "read", offset and limit]';
    const [call, result] = step(2000);
    const offLoaded = { ...result!, content: `${result!.content}\n${pointer}` };
    const messages = [user('one'), call!, offLoaded, ...Array.from({ length: 4 }, () => step(100)).flat(), assistant('done'), user('two')];
    const fitted = fit({ messages, fixedTokens: 0, limit: 500 });
    expect(fitted?.messages[2]?.content).toBe(`[${offLoaded.content.length} characters left out to save room]\n${pointer}`);
  });
});
