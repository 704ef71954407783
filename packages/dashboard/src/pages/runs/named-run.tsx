import { t } from '../../language.ts';
import { useEffect } from 'react';
import { useSession } from '../../data/context.ts';
import { useLoad } from '../../data/use-load.ts';
import { TraceLink } from '../../ui/object-link.tsx';
import { Failure, Notice } from '../../ui/parts.tsx';
import { type RootRun, runOf } from './run-state.ts';
import type { RunAsked } from './run-tree.tsx';
import { allMinutes } from './use-root-runs.ts';

/** Shows the run that the address names: scrolls to a root run, and opens the details of a sub-agent. */
export function NamedRun({
  id,
  roots,
  onAsk,
}: {
  readonly id: string;
  readonly roots: readonly RootRun[] | undefined;
  readonly onAsk: (asked: RunAsked) => void;
}) {
  return id.startsWith('sr_') ? <NamedSubAgent id={id} onAsk={onAsk} /> : <NamedRoot id={id} roots={roots} />;
}

function NamedRoot({ id, roots }: { readonly id: string; readonly roots: readonly RootRun[] | undefined }) {
  const isListed = roots?.some(({ rootRunId }) => rootRunId === id);
  useEffect(() => {
    if (isListed === true) document.querySelector(`[data-row="${CSS.escape(id)}"]`)?.scrollIntoView({ block: 'start' });
  }, [isListed, id]);
  return isListed === false ? <Gone id={id} /> : null;
}

function NamedSubAgent({ id, onAsk }: { readonly id: string; readonly onAsk: (asked: RunAsked) => void }) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['subagent.list', 'named', id], async (signal) => {
    const { runs } = await client.call('subagent.list', { recentMinutes: allMinutes }, { signal });
    return { run: runs.find(({ runId }) => runId === id) };
  });
  const run = data?.run;
  useEffect(() => {
    if (run !== undefined) onAsk({ what: 'details', run: runOf(run) });
  }, [run, onAsk]);
  if (error !== undefined) return <Failure error={error} onRetry={reload} />;
  return data !== undefined && run === undefined ? <Gone id={id} /> : null;
}

function Gone({ id }: { readonly id: string }) {
  return (
    <Notice>
      <span>
        {`${t('The run {id} is not listed: it delegated nothing, or it was removed after some time.', { id })} `}
        <TraceLink reference={id} />
      </span>
    </Notice>
  );
}
