import { type FakeAnswer, type FakeRequest, startFakeProvider, startTestServer, type TestServerOptions } from '@gatehouse/testkit';
import * as z from 'zod';

const Body = z.object({ model: z.string(), messages: z.array(z.object({ role: z.string(), content: z.string().nullish() })) });
export type SentMessage = z.output<typeof Body>['messages'][number];

export const bodyOf = (request: FakeRequest) => Body.parse(request.body);
/** Returns the messages sent in a turn, without the system prompt. */
export const sentBy = (request: FakeRequest): SentMessage[] => bodyOf(request).messages.filter((message) => message.role !== 'system');

/** Starts a server whose agent has a window of 8000 tokens, with another model for notes. */
export async function startSmallWindow(options: Pick<TestServerOptions, 'clock' | 'homeDir'> = {}) {
  await using owned = new AsyncDisposableStack();
  const models = owned.adopt(await startFakeProvider({ deltas: 5 }), (provider) => provider.close());
  const price = { input: 1, output: 2 };
  const server = owned.use(
    await startTestServer({
      ...options,
      config: {
        providers: {
          small: {
            type: 'openai-compatible',
            baseUrl: models.url,
            apiKey: 'mock-key',
            models: [
              { id: 'talk', contextWindow: 8000, maxTokens: 1000, cost: price },
              { id: 'notes', contextWindow: 32_000, maxTokens: 2000, cost: price },
            ],
          },
        },
        agents: {
          default: {
            model: 'small/talk',
            tools: { profile: 'none' },
            operationModels: { compaction: { model: 'small/notes' }, condensation: { model: 'small/notes' } },
          },
        },
      },
    }),
  );
  /** Records the requests of turns and of the model for notes from now on. */
  function watch(notes: (request: FakeRequest, count: number) => FakeAnswer | undefined) {
    const turns: FakeRequest[] = [];
    const summaries: FakeRequest[] = [];
    models.setAnswer((request) => {
      if (bodyOf(request).model !== 'notes') {
        turns.push(request);
        return undefined;
      }
      summaries.push(request);
      return notes(request, summaries.length);
    });
    return { turns, summaries };
  }
  const all = owned.move();
  return { server, watch, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Returns about 250 tokens unique to this message. */
export const longMessage = (index: number) =>
  `Message ${index}: ${Array.from({ length: 30 }, (_, word) => `item${index}x${word} of the list`).join(', ')}`;
