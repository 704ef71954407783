import { createHash } from 'node:crypto';
import { setImmediate as nextRound } from 'node:timers/promises';
import { once } from '@gatehouse/contract';
import * as z from 'zod';
import type { Tool, ToolContext, ToolResult } from '../../../../runtime/tool.ts';
import { cleanLabel } from './clean-text.ts';
import { callableName, fitsPattern } from './tool-names.ts';
import { cleanSchema, maxSchemaCharacters } from './tool-schema.ts';

const maxTools = 500;
/** Limit for all descriptions and schemas of a server together, which are part of the prompt. */
const maxCharacters = 1_048_576;
/** Characters that are read before yielding to other work. */
const perRound = 32_768;
const maxDescription = 2048;

/** What is read of a tool as a server declares it; the rest (title, annotations, icons) is not used. */
const Declared = once(() => z.object({ name: z.string().min(1).max(256), description: z.string().optional(), inputSchema: z.unknown() }));

export interface McpTool {
  /** Original name at the server. */
  readonly name: string;
  readonly description: string;
  readonly tool: Tool;
}

export interface ToolListOptions {
  readonly server: string;
  /** Program or address of the server. Part of the fingerprint. */
  readonly identity: string;
  readonly readOnlyTools: readonly string[];
  readonly timeoutMs: number;
  readonly call: (name: string, args: Readonly<Record<string, unknown>>, context: ToolContext) => Promise<ToolResult>;
}

export interface ToolList {
  readonly tools: readonly McpTool[];
  /** Beyond the limits, or not valid. */
  readonly dropped: number;
}

const Arguments = once(() => z.record(z.string(), z.unknown()));

/**
 * Creates runtime tools from what a server declares. A tool of `before` that did not change stays the same object. What
 * the server says about the risk of its tools (annotations) decides nothing.
 */
export async function buildTools(declared: readonly unknown[], options: ToolListOptions, before: readonly McpTool[]): Promise<ToolList> {
  const known = new Map(before.map((each) => [each.tool.fingerprint, each]));
  const names = new Set<string>();
  const callable = new Set<string>();
  const tools: McpTool[] = [];
  let characters = 0;
  let since = 0;
  for (const each of declared) {
    if (tools.length === maxTools) break;
    const parsed = Declared().safeParse(each);
    if (!parsed.success || names.has(parsed.data.name)) continue;
    const { name } = parsed.data;
    const schema = printSchema(parsed.data.inputSchema);
    since += schema?.length ?? perRound;
    if (since > perRound) {
      since = 0;
      await nextRound();
    }
    const parameters = schema === undefined ? undefined : cleanSchema(parsed.data.inputSchema);
    if (schema === undefined || parameters === undefined) continue;
    const description = cleanLabel(parsed.data.description ?? '', maxDescription);
    characters += schema.length + description.length;
    if (characters > maxCharacters) break;
    const called = callableName(options.server, name, callable);
    if (callable.has(called)) continue;
    names.add(name);
    callable.add(called);
    const fingerprint = createHash('sha256')
      .update(JSON.stringify([options.server, options.identity, name, called, parsed.data.description ?? '', schema]))
      .digest('hex');
    tools.push(known.get(fingerprint) ?? { name, description, tool: makeTool(name, called, description, parameters, fingerprint, options) });
  }
  return { tools, dropped: declared.length - tools.length };
}

/** Undefined for what is too large, or nested too deeply for the printer. */
function printSchema(schema: unknown): string | undefined {
  try {
    const text = JSON.stringify(schema);
    return text !== undefined && text.length <= maxSchemaCharacters ? text : undefined;
  } catch {
    return undefined;
  }
}

function makeTool(
  name: string,
  called: string,
  description: string,
  parameters: Readonly<Record<string, unknown>>,
  fingerprint: string,
  { server, readOnlyTools, timeoutMs, call }: ToolListOptions,
): Tool<ReturnType<typeof Arguments>> {
  const readOnly = fitsPattern(name, readOnlyTools);
  return {
    name: called,
    // The server wrote this text, and the reader must know that.
    description: `Tool of the MCP server "${server}", described by the server as: ${description === '' ? '(no description)' : description}`,
    get args() {
      return Arguments();
    },
    parameters,
    source: `mcp:${server}`,
    fingerprint,
    risk: readOnly ? 'read' : 'write',
    effect: readOnly ? 'pure' : 'once',
    readsPrivate: true,
    promotable: true,
    // The connection enforces the deadline of the call and notifies the server; this one is a fallback.
    timeoutMs: timeoutMs + 1000,
    describe: (args) => cleanLabel(`${server}: ${name} ${JSON.stringify(args)}`.replaceAll(/\s+/g, ' '), 200),
    run: (args, context) => call(name, args, context),
  };
}
