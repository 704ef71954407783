import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, dateTime, money, shortCount } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { diffTexts } from '../../ui/diff.ts';
import { DiffView } from '../../ui/diff-view.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { spanText } from '../../ui/elapsed.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Failure, Field, Skeleton } from '../../ui/parts.tsx';
import { nameOfRoot } from './labels.ts';
import type { RootRun } from './run-state.ts';

type Traced = Result<'obs.trace.get'>;

/** Compares two root runs: their facts next to each other, and how their steps differ. */
export function CompareDialog({ roots, onClose }: { readonly roots: readonly RootRun[]; readonly onClose: () => void }) {
  const [ids, setIds] = useState<readonly [string, string]>([roots[1]?.rootRunId ?? '', roots[0]?.rootRunId ?? '']);
  const [before, after] = ids.map((id) => roots.find(({ rootRunId }) => rootRunId === id));
  const choose = (at: 0 | 1, id: string): void => setIds(at === 0 ? [id, ids[1]] : [ids[0], id]);
  return (
    <Dialog title={t('Compare two runs')} wide onClose={onClose}>
      <div className="dialog-body">
        <div className="compared">
          {([0, 1] as const).map((at) => (
            <Field key={at} label={at === 0 ? t('First run') : t('Second run')}>
              {(id) => (
                <select id={id} value={ids[at]} onChange={({ target }) => choose(at, target.value)}>
                  {roots.map((root) => (
                    <option key={root.rootRunId} value={root.rootRunId}>
                      {`${nameOfRoot(root).slice(0, 80)} · ${dateTime(root.startedAt)}`}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          ))}
        </div>
        {before !== undefined && after !== undefined && <Comparison key={ids.join()} before={before} after={after} />}
      </div>
    </Dialog>
  );
}

function Comparison({ before, after }: { readonly before: RootRun; readonly after: RootRun }) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['compared runs', before.rootRunId, after.rootRunId], async (signal) =>
    Promise.all([before, after].map(({ rootRunId }) => client.call('obs.trace.get', { ref: rootRunId }, { signal }))),
  );
  const [first, second] = data ?? [];
  const steps = first !== undefined && second !== undefined ? diffTexts(stepLines(first), stepLines(second)) : undefined;
  return (
    <>
      <table className="data-table compared-facts" aria-label={t('Facts of both runs')}>
        <thead>
          <tr>
            <th scope="col">{t('Fact')}</th>
            <th scope="col">{t('First run')}</th>
            <th scope="col">{t('Second run')}</th>
          </tr>
        </thead>
        <tbody>
          {facts.map(([title, factOf]) => {
            const [one, other] = [factOf(before, first), factOf(after, second)];
            return title === 'Cause' && one === '' && other === '' ? null : (
              <tr key={title}>
                <th scope="row">{title}</th>
                <td>{one}</td>
                <td>{one === other ? other : <strong>{other}</strong>}</td>
              </tr>
            );
          })}
          <tr>
            <th scope="row">{t('Trace')}</th>
            {[before, after].map(({ rootRunId }, at) => (
              <td key={at}>
                <TraceLink reference={rootRunId} />
              </td>
            ))}
          </tr>
        </tbody>
      </table>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <Skeleton lines={4} />}
      <h3>{t('Steps')}</h3>
      {steps?.length === 0 && <p className="hint">{t('Both took the same steps.')}</p>}
      {steps !== undefined && steps.length > 0 && <DiffView hunks={steps} label={t('Steps of the first run and of the second')} />}
    </>
  );
}

type Fact = (root: RootRun, traced: Traced | undefined) => string;

/** Sums a number over the records of a run; nothing before they are loaded. */
const sumOf =
  (of: (record: Traced['records'][number]) => number): Fact =>
  (_, traced) =>
    traced === undefined ? '' : count(traced.records.reduce((sum, record) => sum + of(record), 0));

const facts: readonly (readonly [title: string, of: Fact])[] = [
  [t('Task'), nameOfRoot],
  [t('State'), ({ state }) => state],
  [t('Cause'), ({ cause = '' }) => cause],
  [t('Agent'), ({ agentId }) => agentId],
  [t('Models'), (_, traced) => [...new Set(traced?.records.flatMap(({ model }) => model ?? []))].join(', ')],
  [t('Started'), ({ startedAt }) => dateTime(startedAt)],
  [t('Duration'), ({ startedAt, endedAt }) => (endedAt === undefined ? 'runs' : spanText(endedAt - startedAt))],
  ['Sub-agents', ({ runs: { open, completed, failed } }) => t('{open}, {failed} failed', { open: open + completed + failed, failed })],
  [t('Tokens'), ({ tokens }) => shortCount(tokens)],
  [t('Cost'), ({ cost }) => (cost === null ? 'unknown' : money(cost))],
  [t('Model calls'), sumOf(({ modelCalls }) => modelCalls)],
  [t('Tool calls'), sumOf(({ toolCalls }) => toolCalls)],
  [t('Failed tool calls'), sumOf(({ toolErrors }) => toolErrors)],
];

/** Returns a line for each step, without what differs between all runs, such as times and ids. */
function stepLines({ records }: Traced): string {
  return records
    .flatMap(({ kind, agentId, outcome, endReason, steps }) => [
      ...steps.map((step) => `${agentId ?? kind}: ${step.kind} ${step.name}${step.outcome === 'ok' ? '' : `, ${step.outcome}`}\n`),
      `${agentId ?? kind}: ${kind} ended, ${outcome ?? 'runs'}${endReason === null ? '' : `, ${endReason}`}\n`,
    ])
    .join('');
}
