import type { ModelRequest } from '../model.ts';
import { hasEfforts } from '../unsupported.ts';
import type { Vendor } from '../vendors.ts';

/** Writes the options of a call into its body in the vendor's dialect; unsupported ones were refused before, unless they change nothing. */
export function putOptions(body: Record<string, unknown>, { options = {}, tools, model }: ModelRequest, vendor: Vendor): void {
  const { responseFormat, toolChoice } = options;
  // Models with fixed sampling refuse even the values that change nothing.
  const fixed = vendor.fixedTemperature?.test(model.modelId) === true;
  const put = (field: string, value: unknown) => {
    if (value !== undefined) body[field] = value;
  };
  const knows = (limit: NonNullable<Vendor['limits']>[number]) => vendor.limits?.includes(limit) !== true;
  if (knows('topP') && !(fixed && options.topP === 1)) put('top_p', options.topP);
  if (options.stop !== undefined && options.stop.length > 0) put('stop', options.stop);
  put(vendor.seedField ?? 'seed', options.seed);
  if (knows('presencePenalty') && !(fixed && options.presencePenalty === 0)) put('presence_penalty', options.presencePenalty);
  if (knows('frequencyPenalty') && !(fixed && options.frequencyPenalty === 0)) put('frequency_penalty', options.frequencyPenalty);
  put('top_k', options.topK);
  put('reasoning_effort', options.reasoningEffort ?? (hasEfforts(model, vendor) ? effortOf(options.effort ?? options.depth) : undefined));
  if (vendor.endUser) put('user', options.endUser);
  if (responseFormat?.type === 'json_object') put('response_format', { type: 'json_object' });
  if (responseFormat?.type === 'json_schema') {
    const { name, schema, strict } = responseFormat;
    put('response_format', { type: 'json_schema', json_schema: { name, schema, ...(strict !== undefined && { strict }) } });
  }
  if (tools.length > 0 && knows('toolChoice') && toolChoice !== undefined) put('tool_choice', wireToolChoice(toolChoice, vendor));
  if (tools.length > 0 && knows('parallelToolCalls')) put('parallel_tool_calls', options.parallelToolCalls);
  if (vendor.requireParameters === true) put('provider', { require_parameters: true });
}

/** Maps to the levels that every vendor of this wire knows. */
function effortOf(effort: string | undefined): string | undefined {
  return effort === undefined || effort === 'low' || effort === 'medium' ? effort : 'high';
}

function wireToolChoice(choice: NonNullable<NonNullable<ModelRequest['options']>['toolChoice']>, vendor: Vendor): unknown {
  if (typeof choice === 'object') return { type: 'function', function: { name: choice.name } };
  return choice === 'required' ? (vendor.requiredToolChoice ?? choice) : choice;
}
