import type { Measures } from '../lib/measures.ts';
import { pairedRatios } from '../lib/stats.ts';
import { completionNames, type CompletionName, type Sample, type Samples } from './completions.ts';

type Figure = 'cpuPerAnswer' | 'cpuPerDelta' | 'p50' | 'p99' | 'ttft50' | 'ttft99' | 'rate';

/** Turns the samples of `subject` into the measures that the goals name, each round against the references of the same round. */
export function compareCompletions(samples: Samples, subject: string, measures: Measures): void {
  const of = (target: string, scenario: CompletionName): readonly Sample[] => samples.get(target)?.get(scenario) ?? [];
  const figures = (target: string, scenario: CompletionName, figure: Figure): number[] => of(target, scenario).map((sample) => sample[figure]);
  const ratio = (scenario: CompletionName, figure: Figure, reference: string): number[] =>
    pairedRatios(figures(subject, scenario, figure), figures(reference, scenario, figure));
  const added = (scenario: CompletionName, figure: Figure): number[] => {
    const direct = figures('direct', scenario, figure);
    return figures(subject, scenario, figure).map((value, round) => value - (direct[round] ?? NaN));
  };
  measures.add('json16 cpu/F', ...ratio('json16', 'cpuPerAnswer', 'F'));
  measures.add('json16 cpu/R', ...ratio('json16', 'cpuPerAnswer', 'R'));
  measures.add('sse-fast8 delta-cpu/R', ...ratio('sse-fast8', 'cpuPerDelta', 'R'));
  measures.add('sse-p10x32 delta-cpu/R', ...ratio('sse-p10x32', 'cpuPerDelta', 'R'));
  measures.add('json1 added p50', ...added('json1', 'p50'));
  measures.add('json1 added p99', ...added('json1', 'p99'));
  measures.add('sse-p10x32 added ttft50', ...added('sse-p10x32', 'ttft50'));
  measures.add('sse-p10x32 added ttft99', ...added('sse-p10x32', 'ttft99'));
  measures.add('json64 rate/json16', ...pairedRatios(figures(subject, 'json64', 'rate'), figures(subject, 'json16', 'rate')));
  const failed = completionNames.flatMap((name) => of(subject, name).map((sample) => sample.failed));
  if (failed.length > 0)
    measures.add(
      'errors',
      failed.reduce((sum, count) => sum + count, 0),
    );
}

/** Returns what makes figures worthless: nothing answered, deltas merged or lost, unrequested model calls. */
export function wrongAnswers(samples: Samples): string[] {
  const found: string[] = [];
  for (const [target, byName] of samples) {
    for (const [name, rounds] of byName) {
      for (const [round, sample] of rounds.entries()) {
        const where = `${target}, ${name}, round ${round + 1}`;
        if (sample.good === 0) found.push(`${where}: no good answer (${JSON.stringify(sample.errors)})`);
        else if (Math.abs(sample.deltasPerAnswer - 100) > 0.01) found.push(`${where}: ${sample.deltasPerAnswer} deltas per stream instead of 100`);
        else if (sample.failed === 0 && Math.abs(sample.upstreamPerAnswer - 1) > 0.02)
          found.push(`${where}: ${sample.upstreamPerAnswer.toFixed(2)} model calls per answer instead of 1`);
      }
    }
  }
  return found;
}
