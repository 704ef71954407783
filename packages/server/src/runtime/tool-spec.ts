import * as z from 'zod';
import type { ToolSpec } from '../llm/model.ts';
import type { Tool } from './tool.ts';

const specs = new WeakMap<Tool, ToolSpec>();

/** Returns the tool as declared to the model; built once per tool. */
export function toolSpec(tool: Tool): ToolSpec {
  let spec = specs.get(tool);
  if (spec === undefined) {
    // Every provider knows the dialect; some refuse a schema that names it.
    const { $schema: _dialect, ...parameters } = tool.parameters ?? z.toJSONSchema(tool.args, { io: 'input' });
    spec = { name: tool.name, description: tool.description, parameters };
    specs.set(tool, spec);
  }
  return spec;
}
