import { toFragment } from '../../kernel/json-fragment.ts';
import { type ModelClient, ModelError, type ModelInfo, type ModelResult } from '../model.ts';
import { type Vendor, vendors } from '../vendors.ts';
import { estimateUsage } from '../wire/usage.ts';

/** The model of an installation without one: it lets every feature be tried without a network, and says that it is not a real model. */
export const offlineModel: ModelInfo = {
  provider: 'offline',
  modelId: 'offline',
  displayName: 'Offline (no model connected)',
  contextWindow: 128_000,
  maxTokens: 8192,
  input: ['text'],
  reasoning: false,
  price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  validated: true,
};

/** Its answer has a fixed form and calls nothing; options of style make no difference to it. */
export const offlineLimits: Pick<Vendor, 'name' | 'limits' | 'topK'> = {
  topK: true,
  name: 'the built-in offline answer',
  limits: ['toolChoice', 'jsonObject', 'jsonSchema'],
};

const keyNames = (['openai', 'anthropic', 'google', 'groq', 'mistral', 'openrouter', 'xai', 'deepseek'] as const)
  .map((type) => vendors[type].keyEnv[0])
  .join(', ');
const localNames = (['ollama', 'lmstudio', 'llamacpp', 'vllm'] as const)
  .map((type) => `${vendors[type].name} (port ${vendors[type].local?.port ?? 0})`)
  .join(', ');

/** Fixed, so that no part of a prompt can be repeated in it. */
export const offlineText = [
  'No language model is connected: this is the built-in offline answer of Gatehouse, the same for every question. ',
  'Your message arrived and the gateway works. ',
  'To connect a model, do one of these: ',
  '(1) open "Get started" in the dashboard, or run "gatehouse setup" in a terminal: both ask for vendor and key, and the model can be used at once; ',
  `(2) set a key in the environment and restart: ${keyNames}; `,
  `(3) start a local model server and restart: ${localNames}. `,
  'Then ask again.',
] as const;

/** Answers every request with `offlineText`, in several deltas when streamed. */
export function createOfflineClient(): ModelClient {
  return {
    async generate(request, sink) {
      const result: ModelResult = {
        text: offlineText.join(''),
        toolCalls: [],
        finish: 'stop',
        usage: estimateUsage(request, offlineText.join(''), []),
        responseId: 'offline',
      };
      let said = '';
      for (const fragment of sink === undefined ? [] : offlineText) {
        if (request.signal.aborted)
          throw new ModelError('aborted', 'The call was aborted', said === '' ? {} : { partial: { ...result, text: said }, usage: result.usage });
        sink?.text(toFragment(fragment));
        said += fragment;
        if (sink?.flush() === false) await sink.drained();
      }
      if (request.signal.aborted && said === '') throw new ModelError('aborted', 'The call was aborted');
      return result;
    },
    async [Symbol.asyncDispose]() {},
  };
}
