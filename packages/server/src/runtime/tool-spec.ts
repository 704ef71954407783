import * as z from 'zod';
import type { ToolSpec } from '../llm/model.ts';
import type { Tool } from './tool.ts';

const specs = new WeakMap<Tool, ToolSpec>();

/** What the model is told about a tool; made once per tool. */
export function toolSpec(tool: Tool): ToolSpec {
  let spec = specs.get(tool);
  if (spec === undefined) {
    // The dialect is known to every provider; some refuse a schema that names it.
    const { $schema: _dialect, ...parameters } = tool.parameters ?? z.toJSONSchema(tool.args, { io: 'input' });
    spec = { name: tool.name, description: tool.description, parameters };
    specs.set(tool, spec);
  }
  return spec;
}
