import type { EventPayload } from '@gatehouse/contract';
import type { ToolResult } from '../../../../runtime/tool.ts';
import type { OrchestrateArgs } from '../tool.ts';
import type { ScriptRun } from './run-script.ts';
import type { ActiveScript } from './scripts.ts';

const charactersPerToken = 4;

const why: Readonly<Record<NonNullable<ScriptRun['failureClass']>, string>> = {
  timeout: 'it did not end in time and was stopped',
  stdout_cap: 'it wrote more than 1 MiB and was stopped',
  nonzero_exit: 'it ended with an error',
  spawn_fail: 'it could not be started',
  lease_absent: 'this run was stopped, so its scripts get no lease',
  killed: 'it was stopped from outside',
};

const overBound: Readonly<Record<NonNullable<ScriptRun['bound']>, string>> = {
  memory: 'it exceeded its memory limit',
  processes: 'it exceeded its process limit',
  workspace: 'the workspace exceeds its limit; delete files first',
  disk: 'the disk of the workspace is almost full',
};

/** Returns the report to the agent about a script that has ended. */
export function resultOf(
  { failureClass, exitCode, bound, stdout, stderr }: ScriptRun,
  { captureStdout }: Pick<OrchestrateArgs, 'captureStdout'>,
  { durationMs, clean }: { readonly durationMs: number; readonly clean: boolean },
): ToolResult {
  const outside = { source: 'script', clean };
  const seconds = (durationMs / 1000).toFixed(1);
  const shown = captureStdout ? stdout : '';
  if (failureClass === undefined) return { content: `[ok, ${seconds} s]\n${shown === '' ? '(no output)' : shown}`, outside };
  const code = exitCode === null ? '' : ` (exit code ${exitCode})`;
  const limit = bound === undefined ? '' : `: ${overBound[bound]}`;
  const parts = [`[${failureClass}: ${why[failureClass]}${code}${limit}, ${seconds} s]`, shown, stderr === '' ? '' : `[standard error]\n${stderr}`];
  return { content: parts.filter((part) => part !== '').join('\n'), isError: true, outside };
}

/** Returns the summary event of a script: its calls, and the tokens saved because their results did not reach the model. */
export function summaryOf(
  { context, runId, leaseId, rootRunId, calls, results }: ActiveScript,
  { failureClass, exitCode, stdout }: ScriptRun,
  { durationMs, timestamp }: { readonly durationMs: number; readonly timestamp: number },
): EventPayload<'orchestrate:run_summary'> {
  const saved = Math.max(0, results.bytes - Buffer.byteLength(stdout));
  return {
    agentId: context.agentId,
    runId,
    leaseId,
    rootRunId,
    outcome: failureClass === undefined ? 'ok' : 'failed',
    ...(failureClass !== undefined && { failureClass }),
    durationMs,
    exitCode,
    toolCalls: [...calls.values()],
    resultRefs: { count: results.files, bytes: results.fileBytes },
    savings: { estSavedTokens: Math.floor(saved / charactersPerToken), savedRatio: results.bytes === 0 ? 0 : saved / results.bytes },
    timestamp,
  };
}

/** Returns the same for the trace of the turn, where the calls are steps. */
export function tracedSummary({
  runId,
  leaseId,
  failureClass,
  exitCode,
  resultRefs,
  savings,
}: EventPayload<'orchestrate:run_summary'>): NonNullable<ToolResult['traced']> {
  return {
    ...(failureClass !== undefined && { errorKind: failureClass }),
    facts: {
      runId,
      leaseId,
      ...(failureClass !== undefined && { failureClass }),
      ...(exitCode !== null && { exitCode }),
      resultRefs: resultRefs.count,
      resultRefBytes: resultRefs.bytes,
      estSavedTokens: savings.estSavedTokens,
      savedRatio: savings.savedRatio,
    },
  };
}
