import type { EvalResult, EvalRun, Result } from '@gatehouse/contract';
import { plainText, shorten } from '../render/plain.ts';
import { type Cell, renderTable } from '../render/table.ts';

export type Evaluated = Pick<Result<'eval.get'>, 'run' | 'cases'>;

const words: Readonly<Record<EvalResult['outcome'], string>> = { passed: 'passed', failed: 'FAILED', error: 'ERROR' };
const reasonLength = 160;

export const variantName = ({ agentId, model }: EvalRun['variants'][number]): string => (model === null ? agentId : `${agentId} with ${model}`);

export const usd = (value: number | null): string => (value === null ? 'unknown' : `$${Number(value.toPrecision(3))}`);

/** Returns why an answer did not pass, one line for each reason. */
export function reasonsOf({ checks, error }: EvalResult): string[] {
  if (error !== undefined) return [`${error.kind}: ${error.text}`];
  return checks
    .filter(({ passed }) => passed !== true)
    .map(
      ({ check, expected, passed, detail }) =>
        `${check} ${expected}${passed === null ? ' could not be decided' : ''}${detail === undefined ? '' : `: ${detail}`}`,
    );
}

/** Shows one row for each case and one column for each variant, then the sums, then why answers did not pass. */
export function evaluationText({ run, cases }: Evaluated): string {
  const head = ['Case', ...run.variants.map(variantName)];
  const rows = cases.map(({ case: one, results }): Cell[] => [
    shorten(plainText(one.name), 60),
    ...run.variants.map((_, at) => {
      const result = results.find(({ variant }) => variant === at);
      return result === undefined ? 'not asked' : `${words[result.outcome]}  ${usd(result.costUsd)}  ${result.latencyMs} ms`;
    }),
  ]);
  const sums = run.variants.map(({ passed, pending, costUsd, unpriced, avgLatencyMs }): Cell => {
    const left = pending === 0 ? '' : `, ${pending} not asked`;
    return `${passed} of ${run.cases} passed${left}, ${usd(costUsd)}${unpriced > 0 ? '+' : ''}${avgLatencyMs === null ? '' : `, ${avgLatencyMs} ms on average`}`;
  });
  const reasons = cases.flatMap(({ case: one, results }) =>
    results
      .filter(({ outcome }) => outcome !== 'passed')
      .flatMap((result) => {
        const variant = run.variants[result.variant];
        const place = `${plainText(one.name)}${run.variants.length > 1 && variant !== undefined ? ` (${variantName(variant)})` : ''}`;
        const trace = result.traceId === null ? [] : [`    trace ${result.traceId}`];
        return [place, ...reasonsOf(result).map((reason) => `    ${plainText(shorten(reason, reasonLength))}`), ...trace];
      }),
  );
  const end = run.state === 'completed' ? [] : ['', `Ended early (${run.state})${run.reason === undefined ? '' : `: ${plainText(run.reason)}`}`];
  return [renderTable(head, [...rows, ['all', ...sums]]), ...(reasons.length > 0 ? ['', ...reasons] : []), ...end].join('\n');
}

// XML 1.0 has no way to write most control characters.
const escapeXml = (text: string): string =>
  text.replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '�').replaceAll(/[<>&"'\n]/g, (char) => `&#${char.charCodeAt(0)};`);

/** Returns the results in the format of JUnit, which CI systems read: one suite for each variant. */
export function junitText({ run, cases }: Evaluated): string {
  const suites = run.variants.map((variant, at) => {
    const tests = cases.map(({ case: one, results }) => {
      const result = results.find((each) => each.variant === at);
      const attributes = `classname="${escapeXml(variantName(variant))}" name="${escapeXml(one.name)}" time="${(result?.latencyMs ?? 0) / 1000}"`;
      if (result === undefined) return `    <testcase ${attributes}><skipped/></testcase>`;
      if (result.outcome === 'passed') return `    <testcase ${attributes}/>`;
      const tag = result.outcome === 'failed' ? 'failure' : 'error';
      return `    <testcase ${attributes}><${tag} message="${escapeXml(reasonsOf(result).join('; '))}"/></testcase>`;
    });
    const counts = `tests="${run.cases}" failures="${variant.failed}" errors="${variant.errors}" skipped="${variant.pending}"`;
    return [`  <testsuite name="${escapeXml(variantName(variant))}" ${counts}>`, ...tests, '  </testsuite>'].join('\n');
  });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${escapeXml(run.name ?? 'gatehouse eval')}">`,
    ...suites,
    '</testsuites>',
    '',
  ].join('\n');
}
