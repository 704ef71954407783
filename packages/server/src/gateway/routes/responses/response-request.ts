import { effortOf, type ResponseRequest } from '@gatehouse/contract';
import type { ResponseHistory } from '../../../features/conversations/responses/api.ts';
import type { CompletionMessage, CompletionRequest } from '../../../features/conversations/turns/api.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { ModelOptions, ToolSpec } from '../../../llm/model.ts';
import { jsonSchemaFormat, toolSpecs } from '../v1-tools.ts';
import { functionsOf, offeredName } from './namespaces.ts';

/** Returns the input of the turn: everything in the request that is not about the response itself. */
export function toCompletion(
  request: ResponseRequest,
  input: readonly CompletionMessage[],
  history: ResponseHistory | undefined,
): Omit<CompletionRequest, 'completionId' | 'alongside'> {
  if (!input.some(saysSomething))
    throw new AppError('invalid_params', 'input: at least one user message or function output must not be empty', { param: 'input' });
  const { tools, toolChoice } = chosenTools(request);
  const options = optionsOf(request, toolChoice);
  const instructions = request.instructions ?? '';
  return {
    channelId: 'responses',
    model: request.model,
    messages: [
      ...(instructions === '' ? [] : [{ role: 'system' as const, content: instructions }]),
      ...(history?.system ?? []).map((content) => ({ role: 'system' as const, content })),
      ...input,
    ],
    ...(history !== undefined && { history: history.messages }),
    ...(request.truncation === 'auto' && { mayShorten: true }),
    temperature: request.temperature ?? undefined,
    maxTokens: request.max_output_tokens ?? undefined,
    ...(tools.length > 0 && { clientTools: tools }),
    ...(Object.keys(options).length > 0 && { options }),
  };
}

function saysSomething(message: CompletionMessage): boolean {
  return message.role === 'tool' || (message.role === 'user' && (message.content.trim() !== '' || message.parts !== undefined));
}

/** `allowed_tools` is a shorter list of tools and a mode. */
function chosenTools(request: ResponseRequest): {
  readonly tools: readonly ToolSpec[];
  readonly toolChoice: ModelOptions['toolChoice'];
} {
  const { tool_choice: choice } = request;
  const all = toolSpecs(functionsOf(request));
  if (choice == null || typeof choice === 'string') return { tools: all, toolChoice: choice ?? undefined };
  if (choice.type === 'function') return { tools: all, toolChoice: { name: offeredName(choice) } };
  const allowed = choice.tools.map((named, index) => {
    const name = offeredName(named);
    const tool = all.find((one) => one.name === name);
    if (tool !== undefined) return tool;
    const param = `tool_choice.tools.${index}.name`;
    throw new AppError('invalid_params', `${param}: there is no tool ${JSON.stringify(name)} in tools`, { param });
  });
  return { tools: [...new Set(allowed)], toolChoice: choice.mode };
}

function optionsOf(request: ResponseRequest, toolChoice: ModelOptions['toolChoice']): ModelOptions {
  const format = request.text?.format;
  const endUser = request.safety_identifier ?? request.user;
  return {
    ...(request.top_p != null && { topP: request.top_p }),
    ...(request.presence_penalty != null && { presencePenalty: request.presence_penalty }),
    ...(request.frequency_penalty != null && { frequencyPenalty: request.frequency_penalty }),
    ...(format?.type === 'json_object' && { responseFormat: format }),
    ...(format?.type === 'json_schema' && { responseFormat: jsonSchemaFormat(format) }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(request.parallel_tool_calls != null && { parallelToolCalls: request.parallel_tool_calls }),
    ...(request.reasoning?.effort != null && { reasoningEffort: effortOf(request.reasoning.effort) }),
    ...(endUser != null && { endUser }),
  };
}
