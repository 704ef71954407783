import { toFragment } from '../kernel/json-fragment.ts';
import { AgentConfig, type AgentConfigInput } from '@gatehouse/contract';
import type { CallContext } from '../kernel/call-context.ts';
import { ModelError, type ModelInfo, type ModelResult, type ModelUsage } from '../llm/model.ts';
import type { Models } from '../llm/models.ts';
import type { TurnInput } from './turn.ts';

export const testModel: ModelInfo = {
  provider: 'test',
  modelId: 'one',
  displayName: 'One',
  contextWindow: 32_000,
  maxTokens: 4000,
  input: ['text'],
  reasoning: false,
  price: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 },
  validated: true,
};

/** What a scripted model does at one call: answers (`text`, tool calls by name and arguments), fails, or waits until it is aborted. */
export interface ScriptedAnswer {
  readonly text?: string;
  readonly calls?: readonly (readonly [name: string, args: unknown])[];
  readonly finish?: ModelResult['finish'];
  readonly usage?: Partial<ModelUsage>;
  readonly error?: ModelError;
  readonly hang?: 'until aborted' | 'forever';
}

type Call = Parameters<Models['generate']>[0];

/** Creates a scripted provider; it streams its text word by word and records its requests. The last answer repeats. */
export function createScriptedModels(...script: readonly ScriptedAnswer[]) {
  const asked: Call[] = [];
  let ids = 0;
  const models: Pick<Models, 'generate'> = {
    async generate(call, sink) {
      asked.push(call);
      const answer = script[Math.min(asked.length, script.length) - 1] ?? {};
      const [model] = call.models;
      if (model === undefined) throw new RangeError('no model');
      const usage: ModelUsage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, estimated: false, ...answer.usage };
      const book = (error: ModelError | undefined) =>
        call.onAttempt({
          model,
          usage,
          latencyMs: 1,
          startedAtMs: 1,
          ...(error === undefined ? { outcome: 'ok' } : { outcome: 'error', error }),
          responseId: `r${asked.length}`,
        });
      const text = answer.text ?? '';
      if (text !== '' && sink !== undefined) {
        for (const word of text.split(/(?<= )/)) sink.text(toFragment(word));
        sink.flush();
      }
      if (answer.hang === 'forever') await new Promise(() => {});
      if (answer.hang === 'until aborted') {
        await new Promise((resolve) => call.request.signal.addEventListener('abort', resolve, { once: true }));
        const error = new ModelError('aborted', 'aborted', text === '' ? {} : { partial: { text, toolCalls: [], finish: 'stop', usage } });
        book(error);
        throw error;
      }
      book(answer.error);
      if (answer.error !== undefined) throw answer.error;
      const toolCalls = (answer.calls ?? []).map(([name, args]) => ({
        id: `call_${(ids += 1)}`,
        name,
        arguments: typeof args === 'string' ? args : JSON.stringify(args),
      }));
      return { model, result: { text, toolCalls, finish: answer.finish ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop'), usage } };
    },
  };
  return { models, asked };
}

const agentCall: CallContext = {
  identity: { principalId: 'token:ada', tokenId: 'ada', scopes: ['rpc'] },
  traceId: '0'.repeat(32),
  requestId: 'rq_1',
  signal: new AbortController().signal,
  transport: 'process',
  agentCaller: { agentId: 'default', principalId: 'token:ada', conversationRef: 'cv_1' },
};

export function turnInput(over: Partial<Omit<TurnInput, 'agent'>> & { readonly agent?: AgentConfigInput } = {}): TurnInput {
  return {
    turnId: 'tn_1',
    traceId: '0'.repeat(32),
    agentId: 'default',
    origin: 'rpc',
    models: [testModel],
    system: ['You are Gate.'],
    messages: [{ role: 'user', content: 'Hello' }],
    tools: [],
    workspaceDir: '/nonexistent',
    conversationRef: 'cv_1',
    sessionKey: 'ada:desk',
    principalId: 'token:ada',
    call: agentCall,
    signal: new AbortController().signal,
    ...over,
    agent: AgentConfig.parse(over.agent ?? { tools: { profile: 'full' } }),
  };
}
