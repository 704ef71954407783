import { AppError } from '../../kernel/app-error.ts';
import type { ModelOptions, ToolSpec } from '../../llm/model.ts';

/** Refuses duplicate names. A function's parameters are an object, even when its schema does not say so: some vendors require the keyword. */
export function toolSpecs(
  tools: readonly {
    readonly name: string;
    readonly description?: string | null | undefined;
    readonly parameters?: Readonly<Record<string, unknown>> | null | undefined;
    readonly strict?: boolean | null | undefined;
  }[],
): ToolSpec[] {
  if (new Set(tools.map((tool) => tool.name)).size < tools.length)
    throw new AppError('invalid_params', 'tools: expected a different name for each tool', { param: 'tools' });
  for (const { name, parameters } of tools)
    if (parameters != null && (parameters['type'] ?? 'object') !== 'object')
      throw new AppError('invalid_params', `tools: expected parameters of type "object" of the tool ${JSON.stringify(name)}`, { param: 'tools' });
  return tools.map((tool) => ({
    name: tool.name,
    description: tool.description ?? '',
    parameters: tool.parameters == null ? { type: 'object', properties: {} } : { ...tool.parameters, type: 'object' },
    ...(tool.strict === true && { strict: true }),
  }));
}

/** Converts a response format of both routes; its description, which is for the model, goes into the schema. */
export function jsonSchemaFormat(format: {
  readonly name: string;
  readonly description?: string | null | undefined;
  readonly schema?: Readonly<Record<string, unknown>> | undefined;
  readonly strict?: boolean | null | undefined;
}): NonNullable<ModelOptions['responseFormat']> {
  const { name, description, schema = {}, strict } = format;
  return {
    type: 'json_schema',
    name,
    schema: description == null ? schema : { description, ...schema },
    ...(strict != null && { strict }),
  };
}
