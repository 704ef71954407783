import type { EvalCase, EvalChecks, EvalResult } from '@gatehouse/contract';
import type { TrialOutcome } from '../../../conversations/turns/api.ts';
import { type After, checkOffThread } from './check-thread.ts';
import type { Judgement } from './judge.ts';

export type CheckResult = EvalResult['checks'][number];

const maxShown = 200;
const shown = (text: string) => (text.length > maxShown ? `${text.slice(0, maxShown - 1).toWellFormed()}…` : text);

type Texts = string | readonly string[] | undefined;
const listOf = (texts: Texts): readonly string[] => (texts === undefined ? [] : typeof texts === 'string' ? [texts] : texts);

/** Tools that the model called, in order. */
export const toolsOf = ({ messages }: Pick<TrialOutcome, 'messages'>): string[] =>
  messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []).map(({ name }) => name) : []));

/** Makes the checks of a case in the order of the contract. `askJudge` is called last, only for a case that has a judge. */
export async function checkAnswer(
  { checks }: Pick<EvalCase, 'checks'>,
  outcome: TrialOutcome,
  deps: { readonly after: After; readonly askJudge: (judge: NonNullable<EvalChecks['judge']>) => Promise<Judgement> },
): Promise<CheckResult[]> {
  const answer = outcome.text;
  const lower = answer.toLowerCase();
  const tools = toolsOf(outcome);
  const called = `called ${tools.length === 0 ? 'none' : shown(tools.join(', '))}`;
  const result = (check: string, expected: string, passed: boolean | null, detail?: string): CheckResult => ({
    check,
    expected: shown(expected),
    passed,
    ...(passed !== true && detail !== undefined && { detail }),
  });
  const patterns = listOf(checks.regex);
  const slow =
    patterns.length === 0 && checks.jsonSchema === undefined
      ? { matches: [] }
      : await checkOffThread({ answer, patterns, jsonSchema: checks.jsonSchema }, deps.after);
  const found: CheckResult[] = [
    ...listOf(checks.contains).map((text) => result('contains', text, lower.includes(text.toLowerCase()))),
    ...listOf(checks.notContains).map((text) => result('notContains', text, !lower.includes(text.toLowerCase()))),
    ...patterns.map((source, at) =>
      'failed' in slow ? result('regex', source, null, slow.failed) : result('regex', source, slow.matches[at] === true),
    ),
  ];
  if (checks.jsonSchema !== undefined) {
    const reason = 'failed' in slow ? slow.failed : (slow.unusable ?? slow.problem);
    const undecided = 'failed' in slow || slow.unusable !== undefined;
    found.push(result('jsonSchema', JSON.stringify(checks.jsonSchema), undecided ? null : reason === undefined, reason));
  }
  found.push(
    ...listOf(checks.toolCalled).map((name) => result('toolCalled', name, tools.includes(name), called)),
    ...listOf(checks.toolNotCalled).map((name) => result('toolNotCalled', name, !tools.includes(name), called)),
  );
  const { maxCostUsd, maxLatencyMs, judge } = checks;
  if (maxCostUsd !== undefined) {
    const { costUsd } = outcome;
    found.push(
      costUsd === null
        ? result('maxCostUsd', `$${maxCostUsd}`, null, 'the price of the model is not known')
        : result('maxCostUsd', `$${maxCostUsd}`, costUsd <= maxCostUsd, `cost $${costUsd}`),
    );
  }
  if (maxLatencyMs !== undefined)
    found.push(result('maxLatencyMs', `${maxLatencyMs} ms`, outcome.latencyMs <= maxLatencyMs, `took ${outcome.latencyMs} ms`));
  if (judge !== undefined) {
    const { passed, reason } = await deps.askJudge(judge);
    found.push(result('judge', judge.rubric, passed, reason));
  }
  return found;
}
