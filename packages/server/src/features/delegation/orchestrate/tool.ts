import * as z from 'zod';
import type { Tool, ToolContext, ToolResult } from '../../../runtime/tool.ts';
import { callableTools } from './scripts/callable-tools.ts';

const maxTimeoutMs = 300_000;
/** Longer than any script: the tool stops its script itself and returns the output so far. */
const graceMs = 15_000;
const maxScriptCharacters = 256 * 1024;

const argsFor = (languages: readonly ['ts', 'js', ...'py'[]]) =>
  z.strictObject({
    script: z.string().min(1).max(maxScriptCharacters).describe('Source of the script; top-level await is allowed in ts and js.'),
    language: z.enum(languages).default('ts'),
    timeoutMs: z.int().min(1000).max(maxTimeoutMs).default(60_000).describe('Milliseconds after which the script is stopped.'),
    captureStdout: z.boolean().default(true).describe('When false, returns only whether it succeeded.'),
  });
export type OrchestrateArgs = z.output<ReturnType<typeof argsFor>>;

/** `orchestrate`: runs a script of the agent in the jail, where it calls tools; returns only its output. */
export function createOrchestrateTool({
  hasPython,
  run,
}: {
  readonly hasPython: boolean;
  readonly run: (args: OrchestrateArgs, context: ToolContext) => Promise<ToolResult>;
}): Tool<ReturnType<typeof argsFor>> {
  const args = argsFor(hasPython ? ['ts', 'js', 'py'] : ['ts', 'js']);
  const python = hasPython ? ' In Python: `tools.call(name, args)` returns a dict.' : '';
  return {
    name: 'orchestrate',
    description: `Runs a script in a sandbox without network; only its printed output is returned, so use it for many tool calls whose results you need in condensed form. In it, \`await tools.call(name, args)\` calls ${callableTools.join(', ')} with the same arguments that you would use, and returns {text, ref?}: a long result is in the file ref.path, and text is its beginning. Refusals are thrown as errors.${python} The workspace is at /workspace.`,
    args,
    risk: 'write',
    effect: 'once',
    readsPrivate: true,
    runsPrograms: () => true,
    capability: 'orch:analyze',
    timeoutMs: maxTimeoutMs + graceMs,
    describe: ({ language, script }) => `run a ${language} script: ${script.replaceAll(/\s+/g, ' ')}`,
    run,
  };
}
