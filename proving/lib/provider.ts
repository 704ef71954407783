import * as z from 'zod';
import { type FakeAnswer, type FakeProvider, type FakeRequest, startFakeProvider } from '../../packages/testkit/src/fake-provider.ts';

/** Makes a term that occurs in one message only, so that every stored or sent copy of it can be counted. */
export function nonceOf(parts: readonly (string | number)[]): string {
  return `nonce-${parts.join('-')}-end`;
}

const noncePattern = /nonce-[A-Za-z0-9-]+?-end/g;

/** Returns the nonces in a text or in a provider's request, each once, in their order. */
export function noncesIn(value: unknown): string[] {
  return [...new Set((typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).match(noncePattern))];
}

/** Text of the user's message that carries a nonce, and the text of the answer to it. */
export const askWith = (nonce: string) => `Please note ${nonce}`;
export const answerTo = (nonce: string) => `noted ${nonce}`;

/** Starts a fake provider that answers with the nonce of the newest user message. */
export function startEchoProvider(): Promise<FakeProvider> {
  return startFakeProvider({
    journal: 0,
    answer: (request) =>
      request.path.endsWith('/chat/completions') ? { text: answerTo(newestNonce(request)), usage: { input: 20, output: 10 } } : undefined,
  });
}

/** Makes the reviewing provider first list the folder with the name of the nonce. */
export const looking = 'and look there';

/** Keeps the reviewing provider from answering. */
export const holding = 'and hold on';

/** Answers like that provider; a review of a conversation finds in it each message that carries a nonce. */
export function startReviewingProvider(options: { readonly delayMs?: number; readonly journal?: number } = {}): Promise<FakeProvider> {
  return startFakeProvider({
    journal: options.journal ?? 0,
    answer: (request) => {
      if (!request.path.endsWith('/chat/completions')) return undefined;
      const text = JSON.stringify(request.body);
      if (text.includes(holding) && !text.includes('You review a conversation')) return { hang: true };
      if (text.includes(looking) && !text.includes('"role":"tool"'))
        return { toolCalls: [{ id: 'call_1', name: 'ls', arguments: JSON.stringify({ path: newestNonce(request) }) }] };
      if (!text.includes('You review a conversation'))
        return {
          text: answerTo(newestNonce(request)),
          usage: { input: 20, output: 10 },
          ...(options.delayMs !== undefined && { delayMs: options.delayMs }),
        };
      const found = new Set(text.match(noncePattern));
      return { text: JSON.stringify([...found].map((nonce) => ({ content: `The user cares for ${nonce}`, type: 'semantic' }))) };
    },
  });
}

function newestNonce(request: FakeRequest): string {
  const body = request.body as { messages?: readonly { role: string; content: unknown }[] };
  const last = body.messages?.findLast((message) => message.role === 'user');
  return (
    JSON.stringify(last?.content ?? '')
      .match(noncePattern)
      ?.at(-1) ?? 'nothing'
  );
}

const Messages = z.object({ messages: z.array(z.object({ role: z.string(), content: z.unknown() })) });

/** Text of a message that makes the model of `makeAskedCall` call this tool. */
export const askForCall = (tool: string, args: object): string => JSON.stringify({ tool, args });

/** A model that makes the call that the newest message requests, and reports its result. */
export function makeAskedCall(request: FakeRequest): FakeAnswer | undefined {
  const last = Messages.safeParse(request.body).data?.messages.at(-1);
  const asked = /\{"tool":.*\}/su.exec(typeof last?.content === 'string' ? last.content : '')?.[0];
  if (last?.role === 'tool') return { text: String(last.content) };
  if (asked === undefined) return { text: 'Done' };
  const { tool, args } = z.object({ tool: z.string(), args: z.unknown() }).parse(JSON.parse(asked));
  return { toolCalls: [{ id: 'call_1', name: tool, arguments: JSON.stringify(args) }] };
}

/** Configuration of a daemon under proof: one provider, limits high enough not to matter. */
export function proofConfig(
  providerUrl: string,
  more: {
    readonly gateway?: object;
    /** Further providers over the same fake, which has this address. */
    readonly providers?: (url: string) => object;
    readonly agents?: object;
    readonly embedding?: object;
    readonly approvals?: object;
    readonly mcp?: object;
    readonly webhooks?: object;
    readonly channels?: object;
    readonly media?: object;
    readonly tts?: object;
    readonly imageGen?: object;
    /** Browsers of agents; off otherwise, so that proofs that call every method start no Chromium. */
    readonly browser?: object;
  } = {},
) {
  return {
    gateway: {
      rateLimit: { windowMs: 60_000, maxRequests: 10_000_000 },
      wsMessageRateLimit: { maxMessages: 10_000_000, windowMs: 60_000 },
      wsMaxInFlight: 1000,
      ...more.gateway,
    },
    providers: {
      local: {
        type: 'openai-compatible',
        baseUrl: providerUrl,
        apiKey: 'sk-of-the-fake-provider',
        models: [{ id: 'test-model', contextWindow: 128_000, maxTokens: 8192, cost: { input: 1, output: 2 } }],
      },
      ...more.providers?.(providerUrl),
    },
    // No model calls that a test did not ask for.
    models: { discover: false, titles: false },
    browser: more.browser ?? { enabled: false },
    agents: { default: { name: 'Gate', model: 'local/test-model', maxConcurrentRuns: 1000 }, ...more.agents },
    ...(more.embedding !== undefined && { embedding: more.embedding }),
    ...(more.approvals !== undefined && { approvals: more.approvals }),
    ...(more.mcp !== undefined && { mcp: more.mcp }),
    ...(more.webhooks !== undefined && { webhooks: more.webhooks }),
    ...(more.channels !== undefined && { channels: more.channels }),
    ...(more.media !== undefined && { media: more.media }),
    ...(more.tts !== undefined && { tts: more.tts }),
    ...(more.imageGen !== undefined && { imageGen: more.imageGen }),
  };
}
