import { countFact, textFact } from '../../records.ts';
import type { Case, CaseStep, Match, Rule } from './case.ts';

const repeatedFailures = 5;
const bloatOffLoads = 3;
const bloatChars = 32_000;

const isFailed = ({ step }: CaseStep) => step.outcome === 'error';

/** Whether a call failed because a program or module is not installed. */
export function isMissingDependency({ step }: CaseStep): boolean {
  return step.kind === 'tool' && step.outcome === 'error' && kindOf(step) === 'missing_dependency';
}

export function kindOf(step: CaseStep['step']): string {
  return textFact(step.facts?.['errorKind']) ?? step.error?.kind ?? 'unknown';
}

/** Returns the most frequent name; the first by name among equals. */
export function mostFrequent(names: readonly string[]): { readonly name: string; readonly count: number } | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const [first] = [...counts].toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  return first && { name: first[0], count: first[1] };
}

/** Name of the MCP server of a tool `mcp__server--tool`. */
export function mcpServerOf(tool: string): string | undefined {
  return /^mcp__(.+?)--/u.exec(tool)?.[1];
}

function breakerOpened({ steps, tools }: Case): Match | undefined {
  const opened = steps.find(({ step }) => step.kind === 'breaker' && step.facts?.['event'] === 'opened');
  if (opened !== undefined) return { subject: opened.step.name, count: countFact(opened.step.facts?.['failures']) };
  const most = mostFrequent(tools.filter(isFailed).map(({ step }) => step.name));
  return most !== undefined && most.count >= repeatedFailures ? { subject: most.name, count: most.count } : undefined;
}

function contextBloat({ steps }: Case): Match | undefined {
  const sizes = steps.flatMap(({ step }) => (step.kind === 'off_load' ? [countFact(step.facts?.['chars'])] : []));
  return sizes.length >= bloatOffLoads && Math.max(...sizes) >= bloatChars ? { count: sizes.length } : undefined;
}

function execDependency({ tools }: Case): Match | undefined {
  const found = tools.find(isMissingDependency);
  return found && { subject: found.step.name };
}

function orchestrateFailed({ tools }: Case): Match | undefined {
  const failed = tools.filter((one) => one.step.name === 'orchestrate' && isFailed(one)).at(-1);
  return failed && { subject: textFact(failed.step.facts?.['failureClass']) ?? kindOf(failed.step) };
}

const unreachableKinds: ReadonlySet<string> = new Set(['mcp_unavailable', 'mcp_unreachable', 'unavailable', 'network']);

function mcpUnavailable({ tools }: Case): Match | undefined {
  const failed = tools.find(
    (one) =>
      isFailed(one) && (kindOf(one.step).startsWith('mcp_') || mcpServerOf(one.step.name) !== undefined) && unreachableKinds.has(kindOf(one.step)),
  );
  return failed && { subject: mcpServerOf(failed.step.name) ?? failed.step.name };
}

function providerTimeout({ steps, isFine }: Case): Match | undefined {
  if (isFine) return undefined;
  const late = steps.find(({ step }) => (step.kind === 'model' || step.kind === 'attempt') && step.error?.kind === 'timeout');
  return late && { subject: late.step.name };
}

/** What tools and attempts did, which comes before how the turn ended. */
export const toolRules: readonly Rule[] = [
  { code: 'breaker_opened_repeated_failure', find: breakerOpened },
  { code: 'context_bloat', find: contextBloat },
  { code: 'exec_dependency', find: execDependency },
  { code: 'orchestrate_failed', find: orchestrateFailed },
  { code: 'mcp_server_unavailable', find: mcpUnavailable },
  { code: 'provider_timeout', find: providerTimeout },
];
